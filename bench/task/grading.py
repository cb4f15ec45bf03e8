"""The scores that ask models: judges and async functions, about one answer; and the same once more from its record.

Owns which of them are asked and what the record keeps of their calls.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from ...engine.call import Call, Reply
from ..evaluation.door.ask import Ask
from .asking_scorer import AskingScorer, NotKept
from .judge import Exchange, Judge
from .judge_call import ask_judge
from .messages import Said
from .records import JudgeCall, Record, silence_of
from .rows import TaskRow
from .scorers import Score
from .task import AnyScorer


class Graded(Struct, frozen=True):
    """What the models said that scorers asked about one answer.

    scores: by scorer.
    calls: as the record keeps them.
    """

    scores: Mapping[str, Score] = {}
    calls: tuple[JudgeCall, ...] = ()


UNGRADED = Graded()


def exchange_of(talk: str, result: str | None) -> Exchange:
    """Returns a conversation as a judge reads it. `result`: the text that its `run` returned."""
    return Exchange("", "" if result is None or talk.endswith(result.strip()) else result, conversation=talk)


_Send: TypeAlias = Callable[[Call], Awaitable[Reply]]


async def graded(scorers: Mapping[str, AnyScorer], exchange: Exchange, reply: Reply, row: TaskRow, ask: Ask) -> Graded:
    """Asks the judges about an exchange, and carries out the async functions about its reply."""
    scores: dict[str, Score] = {}
    calls: list[JudgeCall] = []
    for name, scorer in scorers.items():
        if isinstance(scorer, Judge):
            made, scores[name] = await ask_judge(name, scorer, scorer.call(exchange, row), ask)
            calls.append(made)
        elif isinstance(scorer, AskingScorer):
            asker = ScorerAsk(name, scorer, lambda call: ask(call, role="judge"))
            scores[name] = await scorer.scored_by(asker, reply, row)
            ask.check_ended()  # even if the author's code caught it
            calls += asker.made()
    return Graded(scores, tuple(calls))


class ScorerAsk:
    """`ask` as an async score function has it; keeps what was asked and answered."""

    def __init__(self, name: str, scorer: AskingScorer, send: _Send) -> None:
        self._name, self._scorer, self._send = name, scorer, send
        self._made: dict[int, JudgeCall | None] = {}

    async def __call__(self, messages: Said, *, model: str | None = None, sample: int = 0, **parameters: Any) -> Reply:
        call = self._scorer.call(messages, model, sample, parameters)
        # Calls that run at once are kept in the order in which they began.
        place = len(self._made)
        self._made[place] = None
        reply = await self._send(call)
        self._made[place] = JudgeCall(
            scorer=self._name,
            model=call.model,
            text=reply.text,
            asked=_digest(call),
            refused=True if reply.refused else UNSET,
        )
        return reply

    def made(self) -> list[JudgeCall]:
        """Returns the calls that were answered."""
        return [call for call in self._made.values() if call is not None]


class KeptGrades:
    """The scores that asked models, from records: a judge's recorded grade is taken, and a function is carried out by
    the runner with the recorded answers. Nothing is sent."""

    def __init__(self, scorers: Mapping[str, AnyScorer], runner: asyncio.Runner | None) -> None:
        self._scorers, self._runner = scorers, runner

    def of(self, record: Record) -> dict[str, Score]:
        """Returns the scores by scorer."""
        kept = record.judge or ()
        scores = {each.scorer: Score(each.score, problem="not judged" if each.score is None else None) for each in kept}
        reply = record.reply()
        for name, scorer in self._scorers.items():
            if isinstance(scorer, AskingScorer) and self._runner is not None and silence_of(reply) is None:
                answers = _Kept(kept)
                asker = ScorerAsk(name, scorer, answers.answer)
                score = self._runner.run(scorer.scored_by(asker, reply, record.as_row()))
                # Even if the author's code caught it, and returned a score.
                scores[name] = score if answers.missing is None else Score(None, problem=answers.missing)
        return scores


class _Kept:
    """The answers that a record holds of its scorers' calls."""

    def __init__(self, calls: Sequence[JudgeCall]) -> None:
        self._replies = {each.asked: Reply(each.text, refused=each.refused is True) for each in calls}
        self.missing: str | None = None
        """The sentence on a call that has no answer here; None: every call had one."""

    async def answer(self, call: Call) -> Reply:
        reply = self._replies.get(_digest(call))
        if reply is None:
            self.missing = f"its call to {call.model} is not in the record, and score sends nothing: run the task again"
            raise NotKept(self.missing)
        return reply


def _digest(call: Call) -> str:
    return hashlib.sha256(msgspec.json.encode(call)).hexdigest()[:32]
