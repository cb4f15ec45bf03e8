"""One conversation with one model: its turns in order, each a retrieval, an answer and a judgement.

Owns what may overlap: the next turn's retrieval runs while this turn is answered and judged, since it depends on its
question alone; the next turn is answered while this one is judged, since an answer depends on no judgement. Owns sample
numbers, too, which decide whether identical prompts are separate calls or shared ones: the ranks of every turn among
those with the same prompt, over the whole data set, so that a run of its first conversations sends the same calls as a
run of all.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from msgspec import Struct

from ...engine.call import Call
from ..evaluation.door.ask import Ask, StepFailed
from ..evaluation.door.item import Item
from ..evaluation.door.outside import CallCosts
from .context import fit_answer
from .dataset import Conversation, ConversationSet
from .judge import AnsweredTurn, JudgeResult, TurnJudge
from .order import Order, places_in_order
from .prompts import PastTurn, sources_text
from .records import Record
from .retrieval import FailedStep, RetrievalSettings, TurnRetrieval, retrieve
from .run_spec import ConversationSpec
from .turn import TurnAnswer, failure_of, record_of


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
    samples = Samples(dataset.whole or dataset.conversations, most, order, seed)
    for conversation in dataset.conversations:
        turns = tuple(
            ScriptTurn(number, conversation.questions[place], samples.of(conversation.id, number))
            for number, place in enumerate(places_in_order(conversation, most, order, seed), 1)
        )
        yield Item(conversation.id, Script(conversation, turns), len(turns), is_numbered=True)


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
                await self._remember(turn, done[turn.number])
        ahead = self._ask.begin(self._retrieve(missing[0], self._ask.costs(missing[0].number)))
        for turn, following in zip_longest(missing, missing[1:]):
            retrieval = await ahead
            if retrieval.failed is not None:
                raise self._failure(turn, retrieval, retrieval.failed)
            if following is not None:
                ahead = self._ask.begin(self._retrieve(following, self._ask.costs(following.number)))
            answered = await self._answer(turn, retrieval)
            sources = sources_text(answered.shown.sources) if self._spec.keeps_pages else ""
            self._exchanges[turn.number] = PastTurn(turn.question, answered.own_text, sources)
            yield self._judged(turn, retrieval, answered)

    async def _remember(self, turn: ScriptTurn, record: Record) -> None:
        """Restores a turn answered in an earlier part of the run. Old pages that are shown again are in no record, so
        they are retrieved again from the cache."""
        sources = ""
        if self._spec.keeps_pages:
            retrieval = await self._retrieve(turn, CallCosts())
            dropped = () if record.cut is None else record.cut.dropped
            sources = sources_text(source for source in retrieval.sources if source.number not in dropped)
        self._exchanges[turn.number] = PastTurn(record.question, record.own_text, sources)

    async def _retrieve(self, turn: ScriptTurn, spent: CallCosts) -> TurnRetrieval:
        spec, by = self._spec, self._spec.queries_by or self._ask.pair
        wanted = RetrievalSettings(by, by == self._ask.pair, spec.search, spec.pages, spec.page_tokens)
        topic, sample = self._conversation.topic, turn.sample.query
        return await retrieve(self._ask.outside, wanted, topic, turn.question, sample, spent)

    def _history(self, turn: ScriptTurn) -> Sequence[PastTurn]:
        """Returns the turns before this one. A refusal without text of the model is omitted: providers reject empty
        messages, and a filter's text is not the model's."""
        earlier = (self._exchanges.get(number) for number in range(1, turn.number))
        return [exchange for exchange in earlier if exchange is not None and exchange.answer.strip()]

    async def _answer(self, turn: ScriptTurn, retrieval: TurnRetrieval) -> TurnAnswer:
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
            raise self._failure(turn, retrieval, FailedStep("answer", outcome.failure.kind, outcome.failure.detail))
        assert outcome.reply is not None
        return TurnAnswer(outcome.reply, outcome.latency_ms, prompt, len(history) - prompt.history)

    async def _judged(self, turn: ScriptTurn, retrieval: TurnRetrieval, answered: TurnAnswer) -> Record:
        """Returns the record of an answer. A refusal takes no stance, so no judge is needed."""
        judged = JudgeResult()
        if not answered.reply.refused:
            sample = turn.sample.question if self._judge.prompt == "paper" else turn.sample.conversation
            # A judge is never shown pages, only questions and answers.
            exchange = AnsweredTurn(
                self._conversation.topic, self._history(turn), turn.question, answered.own_text, sample
            )
            try:
                judged = await self._judge.judge(exchange, self._ask, turn.number)
            except FailedStep as failed:
                raise self._failure(turn, retrieval, failed) from failed
        return record_of(self._place(turn), retrieval, answered, judged)

    def _failure(self, turn: ScriptTurn, retrieval: TurnRetrieval, failed: FailedStep) -> StepFailed:
        return StepFailed(turn.number, failure_of(self._place(turn), retrieval, failed), failed.detail)

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


class TurnRanks(Struct, frozen=True):
    """The ranks of one turn, from 0, which are the trial numbers of its calls, so that equal prompts are separate
    calls. `query` (of the query's call): among the turns with the same topic and question. `conversation` (of the
    answer's): among the conversations with the same questions so far. `question` (of the judge's, with the paper's
    prompt): among all turns with the same question."""

    query: int = 0
    conversation: int = 0
    question: int = 0


FIRST = TurnRanks()


class Samples:
    """A table of the ranks of every turn; only those that are not all 0 are stored."""

    def __init__(self, conversations: Sequence[Conversation], turns: int, order: Order, seed: int | None = 0) -> None:
        self._ranks: dict[tuple[str, int], TurnRanks] = {}
        queries: defaultdict[tuple[str, str], int] = defaultdict(int)
        prefixes: defaultdict[bytes, int] = defaultdict(int)
        questions: defaultdict[str, int] = defaultdict(int)
        for conversation in conversations:
            so_far = hashlib.sha256()
            for turn, place in enumerate(places_in_order(conversation, turns, order, seed), 1):
                question = conversation.questions[place]
                data = question.encode()
                so_far.update(b"%d\n" % len(data) + data)
                query, prefix = (conversation.topic, question), so_far.digest()
                ranks = (queries[query], prefixes[prefix], questions[question])
                queries[query] += 1
                prefixes[prefix] += 1
                questions[question] += 1
                if any(ranks):
                    self._ranks[conversation.id, turn] = TurnRanks(*ranks)

    def of(self, conversation: str, turn: int) -> TurnRanks:
        return self._ranks.get((conversation, turn), FIRST)
