"""A Chameleon run: the conversations of all its pairs at once.

Owns how a conversation is made from the data set. The open folder and the engine that calls, searches and reads are
passed in; prints nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any

from ...engine.fault import Stop
from ...engine.runs.pairs import FinishedItems
from ...engine.runs.run_folder import RunFolder
from ..evaluation.ask import Ask
from ..evaluation.item import Item
from ..evaluation.outside import Outside
from ..evaluation.sending import SendPlan, send_steps_of
from ..evaluation.steps import AT_ONCE as AT_ONCE
from ..evaluation.steps import AT_ONCE_MAX as AT_ONCE_MAX
from .conversation import ConversationDriver, ScriptTurn
from .dataset import ConversationSet
from .judge import TurnJudge
from .options import TITLE
from .order import places_in_order
from .records import Record as TurnRecord
from .recount import TurnLine
from .run_spec import ConversationSpec, turns_of
from .samples import Samples

# A turn asks the model under test twice and takes some half a minute.
_CONVERSATIONS_PER_RPM = 0.25


def at_once_of(lanes: Iterable[tuple[int, float | None]]) -> int:
    """Returns how many conversations keep the lanes of the models under test busy: at least 64, more if their requests
    a minute allow, at most their calls in flight. `lanes`: the calls in flight and the requests a minute of each (None:
    not declared)."""
    wanted = sum(min(in_flight, (rpm or 0) * _CONVERSATIONS_PER_RPM) for in_flight, rpm in lanes)
    return max(AT_ONCE, min(AT_ONCE_MAX, round(wanted)))


class Conversations:
    """The conversations of a run as items, each turn a step."""

    title = TITLE
    Record = TurnRecord

    def __init__(self, dataset: ConversationSet, asked: ConversationSpec) -> None:
        self._dataset = dataset
        self._asked = asked
        self._samples = Samples(dataset.whole or dataset.conversations, asked.turns, asked.order, asked.seed)
        tokens = asked.tokens[asked.judge]
        self._judge = TurnJudge(
            asked.judge, asked.judge_prompt, tokens, asked.judge_temperature, effort=asked.judge_effort
        )

    def items(self, options: Any) -> Iterator[Item]:
        turns = turns_of(self._dataset, self._asked.turns)
        for conversation in self._dataset.conversations:
            yield Item(conversation.id, conversation, turns[conversation.id], is_numbered=True)

    def run(
        self, item: Item, ask: Ask, done: Mapping[int, TurnRecord]
    ) -> AsyncIterator[Coroutine[Any, Any, TurnRecord]]:
        conversation = item.data
        places = places_in_order(conversation, self._asked.turns, self._asked.order, self._asked.seed)
        turns = [
            ScriptTurn(number, conversation.questions[place], self._samples.of(item.id, number))
            for number, place in enumerate(places, 1)
        ]
        return ConversationDriver(conversation, turns, self._asked, self._judge, ask).records(done)


async def run_sweep(
    outside: Outside,
    folder: RunFolder,
    dataset: ConversationSet,
    asked: ConversationSpec,
    done: FinishedItems,
    item_ended: Callable[[], None] = lambda: None,
    at_once: int = AT_ONCE,
) -> list[Stop]:
    """Holds all unfinished conversations; one with a failed turn is skipped until its failures are retried. Returns the
    stops that left turns pending; raises LocalFault once nothing is in flight. `item_ended` is called after every
    line."""
    plan = SendPlan(asked.pairs, asked, done, turns_of(dataset, asked.turns), at_once, line=TurnLine)
    return await send_steps_of(Conversations(dataset, asked), outside, folder, plan, item_ended)
