"""Sends a probe's calls to one model: in bursts that end with a refusal, under caps on calls and cost.

Owns the caps, which are reserved before each call, and the pauses that the provider asks for. The clock, sleep and the
sending of a call are passed in. Decides neither what is sent nor what it shows.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, structs

from ...engine.attempts.money import CostBudget
from ...engine.remarks import remark
from .answers import Answer
from .caps import IN_FLIGHT, MAX_COST, TOKENS_A_CALL

FAILURES_MAX = 5
# A longer pause that the provider asks for is not waited for.
WAIT_MAX_S = 200.0
_QUIET_WAITS = 3


class Outside(Protocol):
    """The interface of the provider and the clock. `ask` never raises for what the provider does: that is an answer.
    `quiet_in_s`: the seconds until the last minute holds no call of any program to the model; `worst_cost`: the most
    that a call can cost, in dollars."""

    def worst_cost(self, model: str, tokens: int) -> float: ...

    def quiet_in_s(self, model: str) -> float: ...

    async def ask(self, model: str, tokens: int) -> Answer: ...

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Watcher:
    """An observer of a probe, which shows nothing. `unsent`: calls of a burst that were not sent because an earlier one
    was refused."""

    def begins(self, model: str) -> None:
        """Notes that the probe of a model begins."""

    def got(self, model: str, seen: Sequence[Answer], unsent: int) -> None:
        """Notes the answers of a burst."""

    def waits(self, model: str, seconds: float) -> None:
        """Notes that nothing is sent for this time."""

    def close(self) -> None:
        """Removes what is shown, so that others can write to the stream."""


class Bounds(Struct, frozen=True):
    """The caps of a probe: calls and dollars in all, and for each model the calls in flight, the requests and tokens a
    minute and the tokens of one call that it may try."""

    max_calls: int
    max_cost: float = MAX_COST
    in_flight: int = IN_FLIGHT
    requests: int = 22_000
    tokens_a_call: int = TOKENS_A_CALL
    tokens: float = math.inf

    def __post_init__(self) -> None:
        for name in ("max_calls", "in_flight", "requests", "tokens_a_call", "tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"probe: {name} ({getattr(self, name)}) must be >= 1")
        if not self.max_cost >= 0:
            raise ValueError(f"probe: max_cost ({self.max_cost:g}) must be dollars, 0 or more")


class ModelEnd(Exception):
    """Raised to end the probe of one model; its text is the reason."""


class Caps:
    """What all models together may still use. `calls` and `budget` are right at any instant."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.budget = CostBudget(bounds.max_cost)
        self.calls = 0

    def check(self, model: str, costs: Sequence[float]) -> None:
        """Raises ModelEnd if calls of these costs would pass a cap."""
        more = f"{len(costs):,} more call{'s' if len(costs) > 1 else ''}"
        if self.calls + len(costs) > self.bounds.max_calls:
            raise ModelEnd(
                f"{model}: {more} would pass the limit of {self.bounds.max_calls:,} ({self.calls:,} are "
                "sent): raise --max-calls"
            )
        if not self.budget.fits(sum(costs)):
            raise ModelEnd(
                f"{model}: {more} can cost ${sum(costs):.4f}, of ${self.bounds.max_cost:.4f} "
                f"${self.budget.spent:.4f} are spent: raise --max-cost"
            )


class ModelCalls:
    """The calls of a probe to one model. `sent_at`: when each call was sent; `seen`: all answers; `earliest_s`: when
    the pause is over that the provider asked for."""

    def __init__(self, model: str, outside: Outside, caps: Caps, watcher: Watcher) -> None:
        self.model = model
        self._outside, self._caps, self._watcher = outside, caps, watcher
        self.now = outside.now
        self.sent_at: list[float] = []
        self.seen: list[Answer] = []
        self.earliest_s = -math.inf
        self._tasks: set[asyncio.Task[None]] = set()
        # The burst: its answers, how many of it were not sent, and whether it is over.
        self._first, self._unsent, self._is_over = 0, 0, False
        self._failures = 0

    @property
    def has_usage(self) -> bool:
        """Whether every answer reports the tokens that its call used."""
        return all(one.tokens for one in self.seen if one.is_admitted)

    async def await_quiet(self) -> None:
        """Waits until no earlier call counts against the quota, since what it used would be missing in what is found.
        Raises ModelEnd if other programs go on sending."""
        for _ in range(_QUIET_WAITS):
            seconds = self._outside.quiet_in_s(self.model)
            if seconds <= 0:
                return
            remark(f"{self.model} was called in the last minute: waits {seconds + 1:.0f} s until that no longer counts")
            await self.wait(self.now() + seconds + 1)
        raise ModelEnd(f"{self.model}: another program goes on calling it: probe again when none does")

    async def wait(self, until_s: float) -> None:
        """Waits until this moment, and as long as the provider asks to. Raises ModelEnd if that is too long, or if not
        one call could be sent then."""
        seconds = max(until_s, self.earliest_s) - self.now()
        if seconds <= 0:
            return
        if seconds > WAIT_MAX_S:
            raise ModelEnd(f"{self.model}: the provider asks for a pause of {seconds / 60:,.0f} min: probe again then")
        self.check((1,))
        self._watcher.waits(self.model, seconds)
        await self._outside.sleep(seconds)

    def check(self, sizes: Sequence[int]) -> list[float]:
        """Returns the most that each of these calls can cost, in dollars. Raises ModelEnd if they would pass a cap."""
        worst = [self._outside.worst_cost(self.model, size) for size in sizes]
        self._caps.check(self.model, worst)
        return worst

    async def send(self, sizes: Sequence[int], moment_s: float = 0.0) -> bool:
        """Begins calls together, as many as may be in flight, waits a moment for their answers, and returns whether the
        burst may go on: none of it was refused or failed so far. Raises ModelEnd if they would pass a cap."""
        worst = self.check(sizes)
        for place, (size, most) in enumerate(zip(sizes, worst, strict=True)):
            # Answers that arrived meanwhile are handled before the next call goes.
            await self._outside.sleep(0.0)
            while len(self._tasks) >= self._caps.bounds.in_flight and not self._is_over:
                await self._join(asyncio.FIRST_COMPLETED)
            if self._is_over:
                self._unsent += len(sizes) - place
                break
            self._tasks.add(asyncio.create_task(self._one(size, most)))
        await self._join(asyncio.ALL_COMPLETED, moment_s)
        return not self._is_over

    async def answers(self) -> list[Answer]:
        """Waits for all calls in flight and returns the burst's answers, with which it ends, and notes the pause before
        the next call. Raises ModelEnd if no other call can succeed."""
        await self._join(asyncio.ALL_COMPLETED)
        burst, unsent = self.seen[self._first :], self._unsent
        self._first, self._unsent, self._is_over = len(self.seen), 0, False
        if not burst:
            return []
        self._watcher.got(self.model, burst, unsent)
        for one in burst:
            if one.is_fatal or self._failures >= FAILURES_MAX:
                raise ModelEnd(f"{self.model}: {one.detail}")
            pause_s = 2.0 ** (self._failures - 1) if one.is_failed else one.retry_after_s or 0.0
            self.earliest_s = max(self.earliest_s, one.done_s + pause_s) if pause_s else self.earliest_s
        return burst

    async def close(self) -> None:
        """Drops what is in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _join(self, what: str, timeout_s: float | None = None) -> None:
        if self._tasks:
            done, self._tasks = await asyncio.wait(self._tasks, timeout=timeout_s, return_when=what)
            for task in done:
                task.result()

    async def _one(self, size: int, worst: float) -> None:
        caps, sent_s = self._caps, self.now()
        caps.calls += 1
        self.sent_at.append(sent_s)
        # All calls of the burst's part fitted when it began; what others released meanwhile has to be reserved again.
        caps.budget.fits(worst)
        caps.budget.reserve(worst)
        # A call without a reported price counts at its worst cost.
        spent = unsure = worst
        try:
            answer = await self._outside.ask(self.model, size)
            if not answer.is_failed:
                spent, unsure = answer.cost, 0.0
        finally:
            caps.budget.settle(worst, spent, unsure=unsure)
        self._failures = self._failures + 1 if answer.is_failed else 0
        self._is_over = self._is_over or not answer.is_admitted
        self.seen.append(structs.replace(answer, size=size, sent_s=sent_s, done_s=self.now()))
