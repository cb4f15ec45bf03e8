"""The judge at work: one fixed model, asked about every answer, once more where its reply can't be read.

Owns the repair request, and that a judge which refuses a temperature is asked without one. Is shared by all
conversations of a run; knows none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from ...engine.call import Call, Message, Outcome
from .context import fit_judge
from .judgement import UNCLEAR, Judgement, UnusableJudgement, read_judgement
from .outside import Outside, Spent
from .prompts import Exchange, JudgePrompt, repair_messages
from .retrieval import Failed

RAW_MAX = 16_000


class Judged(Struct, frozen=True):
    """`raw` is the reply that could not be read even when it had been asked for again, else None. `forgotten` is how
    many turns of the conversation the judge was not shown for want of room; `temperature` None: none was sent."""

    judgement: Judgement = UNCLEAR
    temperature: float | None = None
    is_repaired: bool = False
    raw: str | None = None
    forgotten: int = 0
    failed: Failed | None = None


class Judge:
    """`tokens` is what its prompt may have."""

    def __init__(
        self, outside: Outside, model: str, prompt: JudgePrompt, tokens: int, temperature: float | None = 0.0
    ) -> None:
        self.model = model
        self.prompt = prompt
        self.temperature = temperature
        self._outside = outside
        self._tokens = tokens
        self._is_settled = temperature is None
        self._settling = asyncio.Lock()

    def __repr__(self) -> str:
        told = "its own temperature" if self.temperature is None else f"temperature {self.temperature:g}"
        return f"<Judge {self.model} at {told}>"

    async def judge(
        self, topic: str, history: Sequence[Exchange], question: str, answer: str, sample: int, spent: Spent
    ) -> Judged:
        messages, shown = fit_judge(self.prompt, topic, history, question, answer, self._tokens)
        forgotten = len(history) - shown if self.prompt == "extended" else 0
        outcome = await self._ask(messages, sample, spent)
        read = self._read(outcome)
        if isinstance(read, Failed):
            return Judged(failed=read)
        text, is_repaired = _text(outcome), False
        if isinstance(read, UnusableJudgement) and not _is_refused(outcome):
            repair = repair_messages(messages, text[:RAW_MAX], str(read))
            outcome = await self._ask(repair, sample, spent)
            read, is_repaired = self._read(outcome), True
            if isinstance(read, Failed):
                return Judged(failed=Failed("repair", read.kind, read.detail))
            text = _text(outcome) or text
        temperature = outcome.call.temperature
        if isinstance(read, UnusableJudgement):
            return Judged(UNCLEAR, temperature, is_repaired, text[:RAW_MAX], forgotten)
        return Judged(read, temperature, is_repaired, None, forgotten)

    def _read(self, outcome: Outcome) -> Judgement | UnusableJudgement | Failed:
        if outcome.failure is not None:
            return Failed("judge", outcome.failure.kind, outcome.failure.detail)
        if _is_refused(outcome):
            return UnusableJudgement("the judge refused")
        try:
            return read_judgement(_text(outcome), self.prompt)
        except UnusableJudgement as error:
            return error

    async def _ask(self, messages: tuple[Message, ...], sample: int, spent: Spent) -> Outcome:
        if self._is_settled:
            outcome = await self._outside.ask(self._call(messages, sample, self.temperature))
        else:
            # One call finds out for all: a judge that refuses would else be sent as many refused calls as there are
            # conversations.
            async with self._settling:
                outcome = await self._first(messages, sample)
        spent.add_judgement(outcome)
        return outcome

    async def _first(self, messages: tuple[Message, ...], sample: int) -> Outcome:
        outcome = await self._outside.ask(self._call(messages, sample, self.temperature))
        if self._is_settled or not _may_lie_in_temperature(outcome):
            self._is_settled = self._is_settled or outcome.reply is not None
            return outcome
        without = await self._outside.ask(self._call(messages, sample, None))
        if without.reply is None:
            return outcome
        self._is_settled, self.temperature = True, None
        return without

    def _call(self, messages: tuple[Message, ...], sample: int, temperature: float | None) -> Call:
        return Call(self.model, messages, temperature=temperature, trial=sample)


def _may_lie_in_temperature(outcome: Outcome) -> bool:
    """A run that is repeated from the cache alone finds there what was answered, and never what was refused."""
    failure = outcome.failure
    if failure is None:
        return False
    return failure.kind == "not_cached" or (failure.kind == "rejected" and "temperature" in failure.detail.lower())


def _is_refused(outcome: Outcome) -> bool:
    return outcome.reply is not None and outcome.reply.refused


def _text(outcome: Outcome) -> str:
    return "" if outcome.reply is None else outcome.reply.text
