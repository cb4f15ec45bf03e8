"""Runs a probe: sends what its steps ask for, under hard caps on calls and cost that are reserved before each call.

Owns the caps and the end. How a call is sent, the clock and sleep are passed in; what to send is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from ...engine.money import Purse
from .probe_requests import RequestProbe
from .probe_result import Found, Probed
from .probe_steps import Answer, Ask, Seen, Steps, Wait
from .probe_tokens import TokenProbe

FAILURES_MAX = 5


class Outside(Protocol):
    """The provider, and time. `ask` never raises for what the provider does: that is an answer."""

    async def ask(self, model: str, tokens: int) -> Answer: ...

    def worst_cost(self, model: str, tokens: int) -> float: ...

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Bounds(Struct, frozen=True):
    """What a probe may use: all its calls and dollars, whatever they bring, and for each model how many calls in
    flight, how many requests a minute and how many tokens a call it may try."""

    max_calls: int
    max_cost: float
    in_flight: int = 1_024
    requests: int = 22_000
    tokens_a_call: int = 30_000

    def __post_init__(self) -> None:
        for name in ("max_calls", "in_flight", "requests", "tokens_a_call"):
            if getattr(self, name) < 1:
                raise ValueError(f"probe: {name} ({getattr(self, name)}) must be >= 1")
        if not self.max_cost >= 0:
            raise ValueError(f"probe: max_cost ({self.max_cost:g}) must be dollars, 0 or more")


class Expected(Struct, frozen=True):
    """What a probe will use at the most, told before it starts."""

    calls: int
    cost: float

    def line(self) -> str:
        return f"a probe sends at most {self.calls:,} calls and spends at most ${self.cost:,.4f}; most end far below"


def plan(models: Iterable[str], outside: Outside, bounds: Bounds) -> Expected:
    """The most that can be used. Sends nothing."""
    dearest = max((outside.worst_cost(model, bounds.tokens_a_call) for model in models), default=0.0)
    return Expected(bounds.max_calls, min(bounds.max_cost, bounds.max_calls * dearest))


class _Ended(Exception):
    """Nothing more can be sent for this model."""


class Probe:
    """Several models, one after the other, under one pair of caps. `calls` and `cost` are true at any instant."""

    def __init__(self, outside: Outside, bounds: Bounds) -> None:
        self._outside = outside
        self._bounds = bounds
        self._purse = Purse(bounds.max_cost)
        self._failures = 0
        self.calls = 0

    @property
    def cost(self) -> float:
        return self._purse.spent

    async def run(self, models: Iterable[str]) -> Probed:
        lanes: dict[str, Found] = {}
        for model in models:
            found = lanes[model] = Found()
            self._failures, before = 0, self.calls
            requests = RequestProbe(found, in_flight_max=self._bounds.in_flight, requests_max=self._bounds.requests)
            try:
                await self._follow(model, found, requests.steps())
                tokens = self._tokens(found, self.calls - before, requests)
                await self._follow(model, found, tokens.steps())
            except _Ended as why:
                found.ended = str(why)
        return Probed(lanes, self.calls, self.cost)

    def _tokens(self, found: Found, calls: int, requests: RequestProbe) -> TokenProbe:
        # Three minutes' worth of calls is what a probe may cost where a minute has a number.
        left = None if found.rpm is None else int(3 * found.rpm) - 1 - calls
        return TokenProbe(
            found,
            now_s=self._outside.now(),
            tokens_a_call=self._bounds.tokens_a_call,
            calls_left=left,
            at_once=requests.at_once,
            beside=requests.beside,
        )

    async def _follow(self, model: str, found: Found, steps: Steps) -> None:
        try:
            step = next(steps)
            while True:
                match step:
                    case Wait(until_s):
                        await self._outside.sleep(max(0.0, until_s - self._outside.now()))
                        seen: list[Seen] = []
                    case Ask():
                        seen = await self._send(model, step)
                        _note(found, seen)
                step = steps.send(seen)
        except StopIteration:
            return
        finally:
            steps.close()

    async def _send(self, model: str, step: Ask) -> list[Seen]:
        worst = [self._outside.worst_cost(model, size) for size in step.sizes]
        count, sum_s = len(step.sizes), sum(worst)
        if self.calls + count > self._bounds.max_calls:
            raise _Ended(
                f"{model}: {count} more calls would pass the limit of {self._bounds.max_calls:,} ({self.calls:,} are "
                "sent): raise --max-calls"
            )
        if not self._purse.fits(sum_s):
            raise _Ended(
                f"{model}: {count} more calls can cost ${sum_s:.4f}, of ${self._bounds.max_cost:.4f} "
                f"${self.cost:.4f} are spent: raise --max-cost"
            )
        self.calls += count
        self._purse.reserve(sum_s)
        delays = [0.0] * (count - 1) + [step.last_after_s]
        sent = zip(step.sizes, worst, delays, strict=True)
        seen = list(await asyncio.gather(*(self._one(model, *each) for each in sent)))
        for one in seen:
            self._failures = self._failures + 1 if one.answer.verdict == "failed" else 0
            if one.answer.is_fatal or self._failures >= FAILURES_MAX:
                raise _Ended(f"{model}: {one.answer.detail}")
        return seen

    async def _one(self, model: str, size: int, worst: float, delay_s: float) -> Seen:
        if delay_s:
            await self._outside.sleep(delay_s)
        sent_s = self._outside.now()
        # What was sent and brought no word of its price counts at its worst.
        spent = worst
        try:
            answer = await self._outside.ask(model, size)
            if answer.verdict != "failed":
                spent = answer.cost
        finally:
            self._purse.settle(worst, spent)
        return Seen(size, sent_s, self._outside.now(), answer)


def _note(found: Found, seen: list[Seen]) -> None:
    """What the headers say of a minute."""
    for one in seen:
        for limit in one.answer.limits:
            if limit.limit is not None and limit.window_s == 60.0:
                if limit.of == "requests":
                    found.told_rpm = limit.limit
                elif limit.of == "tokens":
                    found.told_tpm = limit.limit
