"""Asks the judge: one fixed model, about every answer, and once more if its reply can't be read.

Owns the repair request, and that a judge which rejects a temperature is asked without one. Shared by all conversations
of a run; knows none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ...engine.call import Call, Message, Outcome
from ..evaluation.outside import CallCosts, Outside
from .context import fit_judge
from .judgement import UNCLEAR, TurnJudgement, UnusableJudgement, read_judgement
from .prompts import JudgePrompt, PastTurn, repair_messages
from .retrieval import FailedStep

RAW_MAX = 16_000


class JudgeResult(Struct, frozen=True):
    """The judgement of an answer, UNCLEAR if the judge's reply was unreadable. `is_repaired`: the judge was asked a
    second time, for a readable reply; `raw` is a reply that was unreadable even so, else None. `forgotten` is how
    many turns were omitted from the judge's prompt; `temperature` None: none was sent; `failed`: the step that
    failed, so that there is no judgement."""

    judgement: TurnJudgement = UNCLEAR
    temperature: float | None = None
    is_repaired: bool = False
    raw: str | None = None
    forgotten: int = 0
    failed: FailedStep | None = None


class AnsweredTurn(NamedTuple):
    """A turn as its judge is asked about it: the answer, and the turns before it. `sample` is the trial number of the
    judge's calls."""

    topic: str
    history: Sequence[PastTurn]
    question: str
    answer: str
    sample: int = 0


class TurnJudge:
    """The judge model, which reads an answer and returns its judgement. `tokens` is the most that its prompt may have;
    the oldest turns are left out first."""

    def __init__(self, model: str, prompt: JudgePrompt, tokens: int, temperature: float | None = 0.0) -> None:
        self.model = model
        self.prompt = prompt
        self.temperature = temperature
        self._tokens = tokens
        self._is_settled = temperature is None
        self._settling = asyncio.Lock()

    def __repr__(self) -> str:
        told = "its own temperature" if self.temperature is None else f"temperature {self.temperature:g}"
        return f"<TurnJudge {self.model} at {told}>"

    def call(self, turn: AnsweredTurn) -> Call:
        """Returns the first call about an answer, at the temperature that is sent so far."""
        messages, _ = fit_judge(self.prompt, turn.topic, turn.history, turn.question, turn.answer, self._tokens)
        return self._call(messages, turn.sample, self.temperature)

    async def judge(self, turn: AnsweredTurn, outside: Outside, spent: CallCosts) -> JudgeResult:
        """Asks about an answer, twice if the first reply can't be read, and adds what that cost to `spent`."""
        messages, shown = fit_judge(self.prompt, turn.topic, turn.history, turn.question, turn.answer, self._tokens)
        forgotten = len(turn.history) - shown if self.prompt == "extended" else 0
        asking = _Asking(outside, turn.sample, spent)
        outcome = await self._ask(messages, asking)
        read = self._read(outcome)
        if isinstance(read, FailedStep):
            return JudgeResult(failed=read)
        text, is_repaired = _text(outcome), False
        if isinstance(read, UnusableJudgement) and not _is_refused(outcome):
            repair = repair_messages(messages, text[:RAW_MAX], str(read))
            outcome = await self._ask(repair, asking)
            read, is_repaired = self._read(outcome), True
            if isinstance(read, FailedStep):
                return JudgeResult(failed=FailedStep("repair", read.kind, read.detail))
            text = _text(outcome) or text
        temperature = outcome.call.temperature
        if isinstance(read, UnusableJudgement):
            return JudgeResult(UNCLEAR, temperature, is_repaired, text[:RAW_MAX], forgotten)
        return JudgeResult(read, temperature, is_repaired, None, forgotten)

    def _read(self, outcome: Outcome) -> TurnJudgement | UnusableJudgement | FailedStep:
        if outcome.failure is not None:
            return FailedStep("judge", outcome.failure.kind, outcome.failure.detail)
        if _is_refused(outcome):
            return UnusableJudgement("the judge refused")
        try:
            return read_judgement(_text(outcome), self.prompt)
        except UnusableJudgement as error:
            return error

    async def _ask(self, messages: tuple[Message, ...], asking: _Asking) -> Outcome:
        if self._is_settled:
            outcome = await asking.outside.ask(self._call(messages, asking.sample, self.temperature))
        else:
            # The first call decides for all: otherwise a judge that rejects a temperature would get as many rejected
            # calls as there are conversations.
            async with self._settling:
                outcome = await self._first(messages, asking)
        asking.spent.add_judgement(outcome)
        return outcome

    async def _first(self, messages: tuple[Message, ...], asking: _Asking) -> Outcome:
        outcome = await asking.outside.ask(self._call(messages, asking.sample, self.temperature))
        if self._is_settled or not _may_lie_in_temperature(outcome):
            self._is_settled = self._is_settled or outcome.reply is not None
            return outcome
        without = await asking.outside.ask(self._call(messages, asking.sample, None))
        if without.reply is None:
            return outcome
        self._is_settled, self.temperature = True, None
        return without

    def _call(self, messages: tuple[Message, ...], sample: int, temperature: float | None) -> Call:
        return Call(self.model, messages, temperature=temperature, trial=sample)


class _Asking(NamedTuple):
    """Where one answer's calls are sent, their trial number, and the costs that they are added to."""

    outside: Outside
    sample: int
    spent: CallCosts


def _may_lie_in_temperature(outcome: Outcome) -> bool:
    """Returns whether the temperature may be why a call failed: its rejection mentions it, or, in a run from the cache
    alone, the answer is not cached, as for every rejected call."""
    failure = outcome.failure
    if failure is None:
        return False
    return failure.kind == "not_cached" or (failure.kind == "rejected" and "temperature" in failure.detail.lower())


def _is_refused(outcome: Outcome) -> bool:
    return outcome.reply is not None and outcome.reply.refused


def _text(outcome: Outcome) -> str:
    return "" if outcome.reply is None else outcome.reply.text
