"""One conversation with one model: its turns in order, each a retrieval, an answer and a judgement.

Owns what may overlap. The next turn's retrieval runs while this turn is answered and judged; the next turn is answered
while this one is judged, since an answer depends on no judgement. At most one turn runs ahead and one behind; lines are
written in the order of the turns. Knows no file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from ...engine.call import Call
from ...engine.runs.pairs import Pair
from ..evaluation.outside import CallCosts, Outside
from .context import fit_answer
from .dataset import Conversation
from .judge import AnsweredTurn, JudgeResult, TurnJudge
from .prompts import PastTurn, sources_text
from .records import Record
from .retrieval import FailedStep, RetrievalSettings, TurnRetrieval, retrieve
from .samples import TurnRanks
from .turn import TurnAnswer, failure_of, record_of

_T = TypeVar("_T")


class ScriptTurn(NamedTuple):
    """One turn to be asked: its number, from 1, its question, and the trial numbers of its calls (`sample`)."""

    number: int
    question: str
    sample: TurnRanks


class RecordedTurn(NamedTuple):
    """A turn recorded in an earlier part of the run. `dropped` are the pages that its prompt had no room for."""

    question: str
    answer: str
    dropped: tuple[int, ...] = ()


class ConversationScript(Struct, frozen=True):
    """One conversation to be held: its turns, and those that an earlier part of the run recorded, by number (`held`;
    empty: none)."""

    conversation: Conversation
    turns: tuple[ScriptTurn, ...]
    held: Mapping[int, RecordedTurn] = {}


class ConversationSettings(Struct, frozen=True):
    """The settings of one pair's conversations. `wanted`: what is searched and read; `tokens`: the most that an
    answer's prompt may have; `max_tokens` None: not sent; `keeps_pages`: later prompts repeat the pages of earlier
    turns."""

    pair: Pair
    wanted: RetrievalSettings
    tokens: int
    max_tokens: int | None = None
    keeps_pages: bool = False


class _FailedTurn(NamedTuple):
    """The turn that failed for good, so that its conversation can't continue: what was retrieved for it (`found`), and
    the step that failed."""

    turn: ScriptTurn
    found: TurnRetrieval
    failed: FailedStep


class ConversationDriver:
    """The conversation of one pair while it is held, turn after turn. `keep` writes a turn's line; `unrecorded` is the
    dollars of turns without a line."""

    def __init__(
        self,
        outside: Outside,
        manner: ConversationSettings,
        judge: TurnJudge,
        script: ConversationScript,
        keep: Callable[[Record], None],
    ) -> None:
        self._outside = outside
        self._manner = manner
        self._judge = judge
        self._script = script
        self._keep = keep
        self._open: dict[int, CallCosts] = {}
        self._exchanges: dict[int, PastTurn] = {}
        self._under_way: set[asyncio.Task[Any]] = set()
        self._ended: _FailedTurn | None = None

    def __repr__(self) -> str:
        turns = f"{len(self._exchanges)} of {len(self._script.turns)} turns"
        return f"<ConversationDriver [{self.id} with {self._manner.pair}: {turns}]>"

    @property
    def id(self) -> str:
        return self._script.conversation.id

    @property
    def unrecorded(self) -> float:
        """The dollars of turns that have no line because the run stopped before."""
        return sum(spent.cost or 0.0 for spent in self._open.values())

    async def run(self) -> None:
        """Holds the conversation to its end, or to the first turn that fails for good; later turns are then not asked.
        Raises Stopped if a lane is stopped, once nothing is in flight."""
        try:
            await self._run()
        except asyncio.CancelledError:
            for task in self._under_way:
                task.cancel()
            raise
        finally:
            # Calls in flight are finished also after a stop, so that the previous turn's judgement can still get its
            # line. Calls made ahead of a failed turn must have their cost before its line is written.
            await asyncio.gather(*self._under_way, return_exceptions=True)
            if self._ended is not None:
                self._fail(*self._ended)

    async def _run(self) -> None:
        await self._remember()
        missing = [turn for turn in self._script.turns if turn.number not in self._exchanges]
        retrieving = self._begin(self._retrieve(missing[0])) if missing else None
        judging: asyncio.Task[bool] | None = None
        for turn, following in zip_longest(missing, missing[1:]):
            assert retrieving is not None
            found = await retrieving
            retrieving = self._begin(self._retrieve(following)) if following and found.failed is None else None
            answered = found.failed or await self._answer(turn, found)
            # The line of the previous turn comes first; if that turn failed, this one is dropped.
            if judging is not None and not await judging:
                return
            if isinstance(answered, FailedStep):
                self._ended = _FailedTurn(turn, found, answered)
                return
            sources = sources_text(answered.shown.sources) if self._manner.keeps_pages else ""
            self._exchanges[turn.number] = PastTurn(turn.question, answered.said, sources)
            judging = self._begin(self._judge_of(turn, found, answered))
        if judging is not None:
            await judging

    def _begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        # Discarded now, since its result holds a turn's pages. The code that awaits the task gets its exception; if the
        # conversation has ended for another reason, no one does.
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()

    async def _retrieve(self, turn: ScriptTurn) -> TurnRetrieval:
        spent = self._open[turn.number] = CallCosts()
        topic = self._script.conversation.topic
        return await retrieve(self._outside, self._manner.wanted, topic, turn.question, turn.sample.query, spent)

    async def _remember(self) -> None:
        """Restores the turns answered in an earlier part of the run. Old pages that are shown again are in no record,
        so they are retrieved again from the cache."""
        for turn in self._script.turns:
            held = self._script.held.get(turn.number)
            if held is None:
                continue
            sources = ""
            if self._manner.keeps_pages:
                found = await self._retrieve(turn)
                del self._open[turn.number]
                sources = sources_text(source for source in found.sources if source.number not in held.dropped)
            self._exchanges[turn.number] = PastTurn(held.question, held.answer, sources)

    def _history(self, turn: ScriptTurn) -> Sequence[PastTurn]:
        """Returns the turns before this one. A refusal without text of the model is omitted: providers reject empty
        messages, and a filter's text is not the model's."""
        earlier = (self._exchanges.get(number) for number in range(1, turn.number))
        return [exchange for exchange in earlier if exchange is not None and exchange.answer.strip()]

    async def _answer(self, turn: ScriptTurn, found: TurnRetrieval) -> TurnAnswer | FailedStep:
        manner, history = self._manner, self._history(turn)
        shown = fit_answer(history, found.sources, turn.question, manner.tokens)
        call = Call(
            manner.pair.model,
            shown.messages,
            temperature=manner.pair.temperature,
            reasoning_effort=manner.pair.effort,
            max_tokens=manner.max_tokens,
            trial=turn.sample.conversation,
        )
        outcome = await self._outside.ask(call)
        self._open[turn.number].add_call(outcome)
        if outcome.failure is not None:
            return FailedStep("answer", outcome.failure.kind, outcome.failure.detail)
        assert outcome.reply is not None
        return TurnAnswer(outcome.reply, outcome.latency_ms, shown, len(history) - shown.history)

    async def _judge_of(self, turn: ScriptTurn, found: TurnRetrieval, answered: TurnAnswer) -> bool:
        """Judges an answer and writes its line; returns whether it was judged."""
        spent, judged = self._open[turn.number], JudgeResult()
        # A refusal takes no stance, so no judge is needed.
        if not answered.reply.refused:
            sample = turn.sample.question if self._judge.prompt == "paper" else turn.sample.conversation
            topic = self._script.conversation.topic
            # A judge is never shown pages, only questions and answers.
            asked = AnsweredTurn(topic, self._history(turn), turn.question, answered.said, sample)
            judged = await self._judge.judge(asked, self._outside, spent)
        if judged.failed is not None:
            self._ended = _FailedTurn(turn, found, judged.failed)
            return False
        self._write(turn, record_of(self._place(turn), found, answered, judged, spent))
        return True

    def _fail(self, turn: ScriptTurn, found: TurnRetrieval, failed: FailedStep) -> None:
        """Writes the line of a turn that failed for good. Its cost includes calls made ahead, which have no other line:
        they are cached, and cost nothing when the turn is tried again."""
        spent = self._open[turn.number]
        for number in [number for number in self._open if number != turn.number]:
            spent.add_unrecorded(self._open.pop(number))
        self._write(turn, failure_of(self._place(turn), found, failed, spent))

    def _place(self, turn: ScriptTurn) -> Record:
        """Returns a record with the fields that identify the turn."""
        conversation, pair = self._script.conversation, self._manner.pair
        return Record(
            id=f"{conversation.id}/{turn.number}",
            conversation=conversation.id,
            domain=conversation.domain,
            topic=conversation.topic,
            turn=turn.number,
            question=turn.question,
            stance="unclear",
            judge=self._judge.model,
            search=self._manner.wanted.search,
            **pair._asdict(),
        )

    def _write(self, turn: ScriptTurn, record: Record) -> None:
        del self._open[turn.number]
        self._keep(record)
