"""A Chameleon run: the conversations of all its pairs at once.

Owns how a conversation is made from the data set, and which of its turns are done. The open folder and an `Outside`
that calls, searches and reads are passed in; builds no engine, prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...engine.fault import Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ..evaluation.journals import OpenItems, encode
from ..evaluation.outside import Outside
from ..evaluation.steps import AT_ONCE as AT_ONCE
from ..evaluation.steps import AT_ONCE_MAX as AT_ONCE_MAX
from ..evaluation.steps import StepSweep
from .conversation import ConversationDriver, ConversationScript, ConversationSettings, ScriptTurn
from .dataset import Conversation, ConversationSet
from .histories import TurnLine, held_of
from .judge import TurnJudge
from .order import places_in_order
from .records import Record
from .retrieval import RetrievalSettings
from .run_spec import ConversationSpec, turn_ids, turns_of
from .samples import Samples

# A turn asks the model under test twice and takes some half a minute.
_CONVERSATIONS_PER_RPM = 0.25


def at_once_of(lanes: Iterable[tuple[int, float | None]]) -> int:
    """Returns how many conversations keep the lanes of the models under test busy: at least 64, more if their requests
    a minute allow, at most their calls in flight. `lanes`: the calls in flight and the requests a minute of each (None:
    not declared)."""
    wanted = sum(min(in_flight, (rpm or 0) * _CONVERSATIONS_PER_RPM) for in_flight, rpm in lanes)
    return max(AT_ONCE, min(AT_ONCE_MAX, round(wanted)))


async def run_sweep(
    outside: Outside,
    folder: RunFolder,
    dataset: ConversationSet,
    asked: ConversationSpec,
    done: FinishedItems,
    item_ended: Callable[[], None] = lambda: None,
    at_once: int = AT_ONCE,
) -> list[Stop]:
    """Holds all unfinished conversations. Returns the stops that left turns pending; raises LocalFault once nothing is
    in flight. `item_ended` is called after every line."""
    sweep = StepSweep(outside, folder, item_ended)
    tokens = asked.tokens[asked.judge]
    judge = TurnJudge(asked.judge, asked.judge_prompt, tokens, asked.judge_temperature, effort=asked.judge_effort)
    samples = Samples(dataset.whole or dataset.conversations, asked.turns, asked.order, asked.seed)
    open_ones = OpenItems(folder, done, turns_of(dataset, asked.turns), TurnLine)

    def keep(record: Record) -> None:
        sweep.write(encode(record), is_failure=record.stance is None)

    def talks(pair: Pair) -> Iterator[ConversationDriver]:
        manner = manner_of(asked, pair)
        for script in scripts(dataset.conversations, asked, samples, pair, open_ones):
            yield ConversationDriver(outside, manner, judge, script, keep)

    return await sweep.run({pair: talks(pair) for pair in asked.pairs}, at_once)


def manner_of(asked: ConversationSpec, pair: Pair) -> ConversationSettings:
    by = asked.queries_by or pair
    return ConversationSettings(
        pair=pair,
        wanted=RetrievalSettings(
            by=by,
            is_own=asked.queries_by is None or by == pair,
            search=asked.search,
            pages=asked.pages,
            page_tokens=asked.page_tokens,
        ),
        tokens=asked.tokens[pair.model],
        max_tokens=asked.max_tokens,
        keeps_pages=asked.keeps_pages,
    )


def scripts(
    conversations: Iterable[Conversation], asked: ConversationSpec, samples: Samples, pair: Pair, open_ones: OpenItems
) -> Iterator[ConversationScript]:
    """Yields lazily a script for each unfinished conversation of one pair: all of its turns, and the records of those
    already done. A conversation with a failed turn is skipped until its failures are retried."""
    for conversation in conversations:
        places = places_in_order(conversation, asked.turns, asked.order, asked.seed)
        lines = open_ones.lines_of(pair, conversation.id, turn_ids(conversation.id, len(places)))
        if lines is None:
            continue
        turns = tuple(
            ScriptTurn(number, conversation.questions[place], samples.of(conversation.id, number))
            for number, place in enumerate(places, 1)
        )
        yield ConversationScript(conversation, turns, held_of(lines))
