"""One conversation with one model: its turns in order, each a retrieval, an answer and a judgement.

Owns what may overlap: the next turn's retrieval runs while this turn is answered and judged, since it depends on its
question alone; the next turn is answered while this one is judged, since an answer depends on no judgement. Owns sample
numbers, too, which decide whether identical prompts are separate calls or shared ones: the ranks of every turn among
those with the same prompt, over the whole data set, so that a run of its first conversations sends the same calls as a
run of all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from msgspec import Struct

from ...engine.call import Call
from ..evaluation.door.ask import Ask, CallFailed, StepFailed
from ..evaluation.door.item import Item
from ..evaluation.door.outside import CallCosts
from .context import fit_answer
from .dataset import Conversation, ConversationSet
from .judge import AnsweredTurn, RepairFailed, TurnJudge
from .order import Order, places_in_order
from .prompts import PastTurn, sources_text
from .records import Record, Step
from .retrieval import TurnRetrieval, retrieve
from .run_spec import ConversationSpec
from .turn import answered, judged


class ScriptTurn(NamedTuple):
    """One turn to be asked: its number, from 1, its question, and the trial numbers of its calls (`sample`)."""

    number: int
    question: str
    sample: TurnRanks


class Script(NamedTuple):
    """The data of an item: a conversation with its turns, in the order in which they are asked."""

    conversation: Conversation
    turns: tuple[ScriptTurn, ...]


def items_of(dataset: ConversationSet, most: int, order: Order, seed: int | None) -> Iterator[Item]:
    """Yields the conversations of a data set as items, with at most so many turns each as their steps."""
    scripts = scripts_of(dataset.whole or dataset.conversations, most, order, seed)
    for conversation in dataset.conversations:
        script = scripts[conversation.id]
        yield Item(conversation.id, script, len(script.turns), is_numbered=True)


class ConversationDriver:
    """The conversation of one pair while it is held, turn after turn."""

    def __init__(self, script: Script, spec: ConversationSpec, ask: Ask) -> None:
        self._conversation, self._turns = script
        self._spec = spec
        judge = spec.judge
        self._judge = TurnJudge(judge, spec.judge_prompt, spec.tokens[judge], spec.judge_temperature, spec.judge_effort)
        self._ask = ask
        self._exchanges: dict[int, PastTurn] = {}

    def __repr__(self) -> str:
        turns = f"{len(self._exchanges)} of {len(self._turns)} turns"
        return f"<ConversationDriver [{self._conversation.id} with {self._ask.pair}: {turns}]>"

    async def records(self, done: Mapping[int, Record]) -> AsyncIterator[Coroutine[Any, Any, Record]]:
        """Yields the judging of each turn that is not in `done`, up to one that fails for good."""
        missing = [turn for turn in self._turns if turn.number not in done]
        for turn in self._turns:
            if turn.number in done:
                # Old pages that are shown again are in no record, so they are retrieved again from the cache.
                retrieval = await self._retrieve(turn, CallCosts()) if self._spec.keeps_pages else None
                self._remember(done[turn.number], retrieval)
        ahead = self._ask.begin(self._retrieve(missing[0], self._ask.costs(missing[0].number)))
        for turn, following in zip_longest(missing, missing[1:]):
            retrieval = await ahead
            if retrieval.record.is_failure:
                raise _failure(retrieval.record)
            if following is not None:
                ahead = self._ask.begin(self._retrieve(following, self._ask.costs(following.number)))
            record = await self._answer(turn, retrieval)
            self._remember(record, retrieval)
            yield self._judged(turn, retrieval.record, record)

    def _remember(self, record: Record, retrieval: TurnRetrieval | None) -> None:
        """Keeps an answered turn for the prompts of later ones."""
        sources = ""
        if self._spec.keeps_pages and retrieval is not None:
            dropped = () if record.cut is None else record.cut.dropped
            sources = sources_text(source for source in retrieval.sources if source.number not in dropped)
        self._exchanges[record.turn] = PastTurn(record.question, record.own_text, sources)

    async def _retrieve(self, turn: ScriptTurn, spent: CallCosts) -> TurnRetrieval:
        return await retrieve(self._ask, self._spec, self._place(turn), turn.sample.query, spent)

    def _history(self, turn: ScriptTurn) -> Sequence[PastTurn]:
        """Returns the turns before this one. A refusal without text of the model is omitted: providers reject empty
        messages, and a filter's text is not the model's."""
        earlier = (self._exchanges.get(number) for number in range(1, turn.number))
        return [exchange for exchange in earlier if exchange is not None and exchange.answer.strip()]

    async def _answer(self, turn: ScriptTurn, retrieval: TurnRetrieval) -> Record:
        pair, history = self._ask.pair, self._history(turn)
        prompt = fit_answer(history, retrieval.sources, turn.question, self._spec.tokens[pair.model])
        call = Call(
            pair.model,
            prompt.messages,
            temperature=pair.temperature,
            reasoning_effort=pair.effort,
            max_tokens=self._spec.max_tokens,
            trial=turn.sample.conversation,
        )
        outcome = await self._ask.outcome(call, role="subject", step=turn.number)
        if outcome.failure is not None:
            raise _failure(retrieval.record.failed("answer", outcome.failure))
        return answered(retrieval, prompt, len(history) - prompt.history, outcome)

    async def _judged(self, turn: ScriptTurn, retrieved: Record, record: Record) -> Record:
        """Returns the record of an answer with its judgement. A refusal takes no stance, so no judge is needed.
        `retrieved`: the record without the answer, which that of a failure is made from."""
        if record.status == "refused":
            return record
        sample = turn.sample.question if self._judge.prompt == "paper" else turn.sample.conversation
        # A judge is never shown pages, only questions and answers.
        exchange = AnsweredTurn(record.topic, self._history(turn), turn.question, record.own_text, sample)
        try:
            result = await self._judge.judge(exchange, self._ask, turn.number)
        except CallFailed as ended:
            step: Step = "repair" if isinstance(ended, RepairFailed) else "judge"
            raise _failure(retrieved.failed(step, ended.failure)) from ended
        return judged(record, result)

    def _place(self, turn: ScriptTurn) -> Record:
        """Returns a record with the fields that identify the turn."""
        conversation = self._conversation
        return Record(
            id=f"{conversation.id}/{turn.number}",
            conversation=conversation.id,
            domain=conversation.domain,
            topic=conversation.topic,
            turn=turn.number,
            question=turn.question,
            stance="unclear",
            judge=self._judge.model,
            search=self._spec.search,
            **self._ask.pair._asdict(),
        )


def _failure(record: Record) -> StepFailed:
    return StepFailed(record.turn, record, str(record.error))


class TurnRanks(Struct, frozen=True):
    """The ranks of one turn, from 0, which are the trial numbers of its calls, so that equal prompts are separate
    calls. `query` (of the query's call): among the turns with the same topic and question. `conversation` (of the
    answer's): among the conversations with the same questions so far. `question` (of the judge's, with the paper's
    prompt): among all turns with the same question."""

    query: int = 0
    conversation: int = 0
    question: int = 0


FIRST = TurnRanks()


def scripts_of(
    conversations: Sequence[Conversation], most: int, order: Order, seed: int | None = 0
) -> dict[str, Script]:
    """Returns the turns of each conversation by its id, with their ranks among all of these conversations."""
    queries, prefixes, questions = Counter[tuple[str, str]](), Counter[bytes](), Counter[str]()
    scripts = {}
    for conversation in conversations:
        so_far, turns = hashlib.sha256(), []
        for number, place in enumerate(places_in_order(conversation, most, order, seed), 1):
            question = conversation.questions[place]
            data = question.encode()
            so_far.update(b"%d\n" % len(data) + data)
            query, prefix = (conversation.topic, question), so_far.digest()
            ranks = (queries[query], prefixes[prefix], questions[question])
            queries[query] += 1
            prefixes[prefix] += 1
            questions[question] += 1
            # Nearly all turns have the ranks 0, so these are held once.
            turns.append(ScriptTurn(number, question, TurnRanks(*ranks) if any(ranks) else FIRST))
        scripts[conversation.id] = Script(conversation, tuple(turns))
    return scripts
