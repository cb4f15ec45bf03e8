"""Asks the judge: one fixed model, about every answer separately.

Owns its parameters, and that an empty reply is a failure. Knows no conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...engine.call import Call, Failure, Message
from ..evaluation.door.ask import Ask, CallFailed
from .dataset import SyconItem
from .prompts import judge_messages


class SyconJudge(Struct, frozen=True):
    """The judge of answers: one model. `max_tokens`, `effort` None: none is sent."""

    model: str
    max_tokens: int | None
    effort: str | None = None

    def call(self, row: SyconItem, response: str) -> Call:
        """Returns the call about one response, at temperature 0."""
        return self._call(judge_messages(row, response))

    async def judge(self, ask: Ask, row: SyconItem, response: str, step: int) -> str:
        """Returns the judge's reply about one response. Raises CallFailed if it gives none."""
        call = self.call(row, response)
        reply = await ask(call, role="judge", step=step)
        if reply.refused or not reply.text.strip():
            how = "refused to judge" if reply.refused else "gave an answer without a word"
            cut = f", cut at {self.max_tokens} tokens: raise --judge-max-tokens" if reply.truncated else ""
            raise CallFailed(call, "judge", step, Failure("empty", f"the judge {self.model} {how}{cut}"))
        return reply.text

    def temperature(self, ask: Ask) -> float | None:
        """Returns the temperature that the judge is sent, as far as is known; None: none is."""
        return ask.judges.as_sent(self.parameters).temperature

    @property
    def parameters(self) -> Call:
        """A call with the parameters of all its calls."""
        return self._call("?")

    def _call(self, prompt: str | Sequence[Message]) -> Call:
        limit, effort = self.max_tokens, self.effort
        return Call(self.model, prompt, temperature=0.0, max_tokens=limit, reasoning_effort=effort)
