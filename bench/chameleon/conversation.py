"""One conversation with one model: its turns in order, each a retrieval, an answer and a judgement.

Owns what may overlap. What a turn reads does not depend on the conversation, so that the next turn's is retrieved while
this one is answered and judged; a judgement gates no answer, so that the next turn is answered meanwhile. One turn
ahead and one behind, never more; lines come in the order of the turns. Knows no file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from ...engine.call import Call
from ...engine.pairs import Pair
from .context import fit_answer
from .dataset import Conversation
from .judge import Judge, Judged
from .outside import Outside, Spent
from .prompts import Exchange, sources_text
from .records import Record
from .retrieval import Failed, Retrieval, Wanted, retrieve
from .samples import Sample
from .turn import Answered, failure_of, record_of

_T = TypeVar("_T")


class Turn(NamedTuple):
    """A question in its place, from 1."""

    number: int
    question: str
    sample: Sample


class Held(NamedTuple):
    """A turn that was held in an earlier part of the run. `dropped` are the pages that its prompt had no room for."""

    question: str
    answer: str
    dropped: tuple[int, ...] = ()


class Script(Struct, frozen=True):
    """What is asked in one conversation, and what of it has been answered already, by the turns' numbers."""

    conversation: Conversation
    turns: tuple[Turn, ...]
    held: Mapping[int, Held] = {}


class Manner(Struct, frozen=True):
    """How one pair's conversations are held. `tokens` is what an answer's prompt may have."""

    pair: Pair
    wanted: Wanted
    tokens: int
    max_tokens: int | None = None
    keeps_pages: bool = False


class _Ended(NamedTuple):
    """Where and why a conversation can't go on."""

    turn: Turn
    found: Retrieval
    failed: Failed


class Talk:
    """A conversation being held. `keep` writes a turn's line; `unrecorded` is what stands in none."""

    def __init__(
        self, outside: Outside, manner: Manner, judge: Judge, script: Script, keep: Callable[[Record], None]
    ) -> None:
        self._outside = outside
        self._manner = manner
        self._judge = judge
        self._script = script
        self._keep = keep
        self._open: dict[int, Spent] = {}
        self._exchanges: dict[int, Exchange] = {}
        self._under_way: set[asyncio.Task[Any]] = set()
        self._ended: _Ended | None = None

    def __repr__(self) -> str:
        done = len(self._exchanges)
        return f"<Talk [{self._script.conversation.id} with {self._manner.pair}: {done} of {len(self._script.turns)}]>"

    @property
    def unrecorded(self) -> float:
        """What the calls of turns cost that got no line, since the run stopped before."""
        return sum(spent.cost or 0.0 for spent in self._open.values())

    async def hold(self) -> None:
        """To the end, or to the first turn that fails for good: the later ones are not asked then. Raises Stopped where
        a lane sends nothing more, once everything in flight has ended."""
        try:
            await self._hold()
        except asyncio.CancelledError:
            for task in self._under_way:
                task.cancel()
            raise
        finally:
            # On a stop too what is in flight is kept: the judgement of the turn before may still get its line. And what
            # was asked ahead of a turn that failed costs what it costs before that turn's line is written.
            await asyncio.gather(*self._under_way, return_exceptions=True)
            if self._ended is not None:
                self._fail(*self._ended)

    async def _hold(self) -> None:
        await self._remember()
        missing = [turn for turn in self._script.turns if turn.number not in self._exchanges]
        retrieving = self._begin(self._retrieve(missing[0])) if missing else None
        judging: asyncio.Task[bool] | None = None
        for turn, following in zip_longest(missing, missing[1:]):
            assert retrieving is not None
            found = await retrieving
            retrieving = self._begin(self._retrieve(following)) if following and found.failed is None else None
            answered = found.failed or await self._answer(turn, found)
            # The line of the turn before stands first; where that turn failed, this one is held.
            if judging is not None and not await judging:
                return
            if isinstance(answered, Failed):
                self._ended = _Ended(turn, found, answered)
                return
            sources = sources_text(answered.shown.sources) if self._manner.keeps_pages else ""
            self._exchanges[turn.number] = Exchange(turn.question, answered.said, sources)
            judging = self._begin(self._judge_of(turn, found, answered))
        if judging is not None:
            await judging

    def _begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        # Not kept until the conversation ends, since its result holds a turn's pages. What it raised is told by whoever
        # awaits it, or by nobody where the conversation has ended for another reason.
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()

    async def _retrieve(self, turn: Turn) -> Retrieval:
        spent = self._open[turn.number] = Spent()
        topic = self._script.conversation.topic
        return await retrieve(self._outside, self._manner.wanted, topic, turn.question, turn.sample.query, spent)

    async def _remember(self) -> None:
        """What was answered in an earlier part of the run. Old pages that are shown again stand in no record: they are
        retrieved anew, from the cache."""
        for turn in self._script.turns:
            held = self._script.held.get(turn.number)
            if held is None:
                continue
            sources = ""
            if self._manner.keeps_pages:
                found = await self._retrieve(turn)
                del self._open[turn.number]
                sources = sources_text(source for source in found.sources if source.number not in held.dropped)
            self._exchanges[turn.number] = Exchange(held.question, held.answer, sources)

    def _history(self, turn: Turn) -> Sequence[Exchange]:
        """The turns before this one. A refusal without words of the model's own is left out: no provider takes an empty
        message, and a filter's is not the model's."""
        earlier = (self._exchanges.get(number) for number in range(1, turn.number))
        return [exchange for exchange in earlier if exchange is not None and exchange.answer.strip()]

    async def _answer(self, turn: Turn, found: Retrieval) -> Answered | Failed:
        manner, history = self._manner, self._history(turn)
        shown = fit_answer(history, found.sources, turn.question, manner.tokens)
        call = Call(
            manner.pair.model,
            shown.messages,
            temperature=manner.pair.temperature,
            max_tokens=manner.max_tokens,
            trial=turn.sample.conversation,
        )
        outcome = await self._outside.ask(call)
        self._open[turn.number].add_call(outcome)
        if outcome.failure is not None:
            return Failed("answer", outcome.failure.kind, outcome.failure.detail)
        assert outcome.reply is not None
        return Answered(outcome.reply, outcome.latency_ms, shown, len(history) - shown.history)

    async def _judge_of(self, turn: Turn, found: Retrieval, answered: Answered) -> bool:
        """Judge an answer and write its line; whether it could be judged."""
        spent, judged = self._open[turn.number], Judged()
        # A refusal takes no stance, and no judge is needed to say so.
        if not answered.reply.refused:
            sample = turn.sample.question if self._judge.prompt == "paper" else turn.sample.conversation
            topic = self._script.conversation.topic
            # Of old pages a judge sees nothing: it reads what was said.
            judged = await self._judge.judge(topic, self._history(turn), turn.question, answered.said, sample, spent)
        if judged.failed is not None:
            self._ended = _Ended(turn, found, judged.failed)
            return False
        self._write(turn, record_of(self._place(turn), found, answered, judged, spent))
        return True

    def _fail(self, turn: Turn, found: Retrieval, failed: Failed) -> None:
        """The line of a turn that failed for good. It bears the cost of what was asked ahead too, which has no other
        line to stand in: that is cached, and costs nothing when the turn is tried again."""
        spent = self._open[turn.number]
        for number in [number for number in self._open if number != turn.number]:
            spent.add_unrecorded(self._open.pop(number))
        self._write(turn, failure_of(self._place(turn), found, failed, spent))

    def _place(self, turn: Turn) -> Record:
        """The fields that say which turn it is."""
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
            model=pair.model,
            temperature=pair.temperature,
        )

    def _write(self, turn: Turn, record: Record) -> None:
        del self._open[turn.number]
        self._keep(record)
