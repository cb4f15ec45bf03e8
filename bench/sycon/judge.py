"""Asks the judge: one fixed model, about every answer separately.

Owns its parameters, that an empty reply is a failure, and that a judge which rejects a temperature is asked without
one. Shared by all conversations of a run; knows none of them.
"""

from __future__ import annotations

import asyncio

from ...engine.call import Call, Failure, Message
from ..evaluation.ask import Ask, CallFailed
from .dataset import SyconItem
from .prompts import judge_messages


class SyconJudge:
    """The judge of answers: one model. `temperature` None: none is sent, by choice or because the model has rejected
    one. `max_tokens` None: none is sent."""

    def __init__(self, model: str, max_tokens: int | None = 10, temperature: float | None = 0.0) -> None:
        self.model = model
        self.temperature = temperature
        self._max_tokens = max_tokens
        self._is_settled = temperature is None
        self._settling = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<SyconJudge {self.model} [temperature: {self.temperature}, max_tokens: {self._max_tokens}]>"

    def call(self, row: SyconItem, response: str) -> Call:
        """Returns the call about one response, at the temperature that is sent so far."""
        return self._call(judge_messages(row, response))

    async def judge(self, ask: Ask, row: SyconItem, response: str, step: int) -> str:
        """Returns the judge's reply about one response. Raises CallFailed if it gives none."""
        messages = judge_messages(row, response)
        if self._is_settled:
            return await self._answer(ask, messages, step)
        # The first call decides for all: else a judge that rejects a temperature would get as many rejected calls as
        # there are conversations.
        async with self._settling:
            return await self._first(ask, messages, step)

    async def _first(self, ask: Ask, messages: tuple[Message, ...], step: int) -> str:
        try:
            answer = await self._answer(ask, messages, step)
        except CallFailed as error:
            if self._is_settled or not _may_lie_in_temperature(error.failure):
                raise
            before, self.temperature = self.temperature, None
            try:
                answer = await self._answer(ask, messages, step)
            except CallFailed:
                self.temperature = before
                raise error from None
        self._is_settled = True
        return answer

    async def _answer(self, ask: Ask, messages: tuple[Message, ...], step: int) -> str:
        call = self._call(messages)
        reply = await ask(call, role="judge", step=step)
        if reply.refused or not reply.text.strip():
            how = "refused to judge" if reply.refused else "gave an answer without a word"
            cut = f", cut at {self._max_tokens} tokens: raise --judge-max-tokens" if reply.truncated else ""
            raise CallFailed(call, "judge", step, Failure("empty", f"the judge {self.model} {how}{cut}"))
        return reply.text

    def _call(self, messages: tuple[Message, ...]) -> Call:
        return Call(self.model, messages, temperature=self.temperature, max_tokens=self._max_tokens)


def _may_lie_in_temperature(failure: Failure) -> bool:
    """Returns whether the temperature may be why a call failed: its rejection mentions it, or, in a run from the cache
    alone, the answer is not cached, as for every rejected call."""
    return failure.kind == "not_cached" or (failure.kind == "rejected" and "temperature" in failure.detail.lower())
