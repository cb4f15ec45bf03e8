"""Runs a probe: sends what its steps ask for, under hard caps on calls and cost that are reserved before each call.

Owns the caps, the pauses that the provider asks for, and the end. How a call is sent, the clock and sleep are passed
in; what to send is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from ...engine.attempts.money import CostBudget
from ...format import count_text
from .requests import RequestProbe
from .result import FoundQuota, ProbeResult
from .steps import Answer, Ask, Steps, TimedAnswer, Wait
from .tokens import TokenProbe

FAILURES_MAX = 5
# A provider that asks for more than some minutes' pause is not waited for.
WAIT_MAX_S = 200.0
REST_S = 62.0
# So many rounds in a row that admit nothing, whatever was waited between them, and it is not for a quota of a minute.
REFUSED_MAX = 12
_MINUTE_S = 60.0


class Costs(Protocol):
    """What a call can cost at the most, in dollars."""

    def worst_cost(self, model: str, tokens: int) -> float: ...


class Outside(Costs, Protocol):
    """The provider, and time. `ask` never raises for what the provider does: that is an answer."""

    async def ask(self, model: str, tokens: int) -> Answer: ...

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Watcher(Protocol):
    """Is told what goes on, as it does. `unsent`: calls that were not sent any more since one before was refused.
    `is_at_end`: all is found, and what was used comes back."""

    def begins(self, model: str) -> None: ...

    def got(self, model: str, seen: Sequence[TimedAnswer], unsent: int) -> None: ...

    def waits(self, model: str, seconds: float, *, is_at_end: bool) -> None: ...


class _Nobody:
    """Watches nothing."""

    def begins(self, model: str) -> None: ...

    def got(self, model: str, seen: Sequence[TimedAnswer], unsent: int) -> None: ...

    def waits(self, model: str, seconds: float, *, is_at_end: bool) -> None: ...


class Bounds(Struct, frozen=True):
    """What a probe may use: all its calls and dollars, whatever they bring, and for each model how many calls in
    flight, how many requests and tokens a minute and how many tokens a call it may try."""

    max_calls: int
    max_cost: float
    in_flight: int = 1_024
    requests: int = 22_000
    tokens_a_call: int = 30_000
    tokens: float = math.inf

    def __post_init__(self) -> None:
        for name in ("max_calls", "in_flight", "requests", "tokens_a_call", "tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"probe: {name} ({getattr(self, name)}) must be >= 1")
        if not self.max_cost >= 0:
            raise ValueError(f"probe: max_cost ({self.max_cost:g}) must be dollars, 0 or more")


class ProbeForecast(Struct, frozen=True):
    """What a probe will use at the most, told before it starts."""

    calls: int
    cost: float

    def line(self) -> str:
        most = count_text(self.calls, "call")
        return f"a probe sends at most {most} and spends at most ${self.cost:,.4f}; most end far below"


def forecast(models: Iterable[str], outside: Costs, bounds: Bounds) -> ProbeForecast:
    """The most that can be used. Sends nothing."""
    dearest = max((outside.worst_cost(model, bounds.tokens_a_call) for model in models), default=0.0)
    return ProbeForecast(bounds.max_calls, min(bounds.max_cost, bounds.max_calls * dearest))


class _ModelEnd(Exception):
    """Nothing more can be sent for this model."""


class _PartEnd(Exception):
    """The rest of this part is not to be tried."""


class Probe:
    """Several models, one after the other, under one pair of caps. `calls`, `cost` and what `probed` gives are true at
    any instant. `at_once`: the most calls of each model that were admitted together."""

    def __init__(self, outside: Outside, bounds: Bounds, watcher: Watcher | None = None) -> None:
        self._outside = outside
        self._bounds = bounds
        self._watcher: Watcher = _Nobody() if watcher is None else watcher
        self.purse = CostBudget(bounds.max_cost)
        self._lanes: dict[str, FoundQuota] = {}
        self._failures = self._refused = 0
        self._not_before = -math.inf
        self._latest_s = -math.inf
        self._is_round_over = False
        self._seen: list[TimedAnswer] = []
        self.untold_usage: set[str] = set()
        self.at_once: dict[str, int] = {}
        self.calls = 0

    @property
    def cost(self) -> float:
        return self.purse.spent

    def probed(self) -> ProbeResult:
        return ProbeResult(dict(self._lanes), self.calls, self.cost)

    async def run(self, models: Iterable[str]) -> ProbeResult:
        for model in models:
            found = self._lanes[model] = FoundQuota()
            self._failures = self._refused = 0
            self._not_before, before = -math.inf, self.calls
            self._watcher.begins(model)
            self._seen.clear()
            requests = RequestProbe(found, in_flight_max=self._bounds.in_flight, requests_max=self._bounds.requests)
            try:
                await self._follow(model, found, requests.steps())
                if model not in self.untold_usage:
                    await self._follow(model, found, self._tokens(found, self.calls - before, requests).steps())
            except _ModelEnd as why:
                found.ended = str(why)
        await self._rest()
        return self.probed()

    def _tokens(self, found: FoundQuota, calls: int, requests: RequestProbe) -> TokenProbe:
        # Three minutes' worth of calls is what a probe may cost where a minute has a number.
        left = None if found.rpm is None else int(3 * found.rpm) - 1 - calls
        return TokenProbe(
            found,
            now_s=self._outside.now(),
            tokens_a_call=self._bounds.tokens_a_call,
            calls_left=left,
            at_once=requests.at_once,
            beside=requests.beside,
            before=tuple(self._seen),
            tokens_most=self._bounds.tokens,
        )

    async def _follow(self, model: str, found: FoundQuota, steps: Steps) -> None:
        try:
            step = next(steps)
            while True:
                match step:
                    case Wait(until_s):
                        await self._wait(model, until_s)
                        seen: list[TimedAnswer] = []
                    case Ask():
                        await self._wait(model, self._not_before)
                        seen = await self._send(model, step)
                        self._seen += seen
                        _note(found, seen)
                step = steps.send(seen)
        except (StopIteration, _PartEnd):
            return
        finally:
            steps.close()

    async def _wait(self, model: str, until_s: float) -> None:
        seconds = until_s - self._outside.now()
        if seconds <= 0:
            return
        if seconds > WAIT_MAX_S:
            raise _ModelEnd(
                f"{model}: the provider asks for a pause of {seconds / _MINUTE_S:,.0f} min: probe again then"
            )
        self._watcher.waits(model, seconds, is_at_end=False)
        await self._outside.sleep(seconds)

    async def _send(self, model: str, step: Ask) -> list[TimedAnswer]:
        """The calls of one step, one right after the other; but none any more once one of them was refused, or no
        other will fare better."""
        if sum(step.sizes) > max(self._bounds.tokens, len(step.sizes)):
            raise _PartEnd
        worst = [self._outside.worst_cost(model, size) for size in step.sizes]
        self._check_caps(model, len(worst), sum(worst))
        tasks: list[asyncio.Task[TimedAnswer]] = []
        self._is_round_over = False
        try:
            async with asyncio.TaskGroup() as group:
                for size, most in zip(step.sizes, worst, strict=True):
                    # What came back meanwhile is looked at before the next one goes.
                    await self._outside.sleep(0.0)
                    if self._is_round_over:
                        break
                    tasks.append(group.create_task(self._one(model, size, most)))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        seen = [task.result() for task in tasks]
        self.at_once[model] = max(self.at_once.get(model, 0), sum(one.is_admitted for one in seen))
        self._watcher.got(model, seen, len(worst) - len(seen))
        self._judge(model, seen)
        return seen

    def _check_caps(self, model: str, count: int, cost: float) -> None:
        if self.calls + count > self._bounds.max_calls:
            raise _ModelEnd(
                f"{model}: {count:,} more calls would pass the limit of {self._bounds.max_calls:,} ({self.calls:,} are "
                "sent): raise --max-calls"
            )
        if not self.purse.fits(cost):
            raise _ModelEnd(
                f"{model}: {count:,} more calls can cost ${cost:.4f}, of ${self._bounds.max_cost:.4f} "
                f"${self.cost:.4f} are spent: raise --max-cost"
            )

    async def _one(self, model: str, size: int, worst: float) -> TimedAnswer:
        self.calls += 1
        # All calls of the step fit when it began; what others gave back meanwhile has to be drawn again.
        self.purse.fits(worst)
        self.purse.reserve(worst)
        sent_s = self._latest_s = self._outside.now()
        # What was sent and brought no word of its price counts at its worst.
        spent = unsure = worst
        try:
            answer = await self._outside.ask(model, size)
            if answer.verdict != "failed":
                spent, unsure = answer.cost, 0.0
        finally:
            self.purse.settle(worst, spent, unsure=unsure)
        self._failures = self._failures + 1 if answer.verdict == "failed" else 0
        is_over = answer.verdict == "refused" or answer.is_fatal or self._failures >= FAILURES_MAX
        self._is_round_over = self._is_round_over or is_over
        return TimedAnswer(size, sent_s, self._outside.now(), answer)

    def _judge(self, model: str, seen: list[TimedAnswer]) -> None:
        """What a round tells beside its numbers: the end, a pause, or that tokens are not counted."""
        for one in seen:
            if one.answer.is_fatal or self._failures >= FAILURES_MAX:
                raise _ModelEnd(f"{model}: {one.answer.detail}")
            pause_s = one.answer.retry_after_s or 0.0
            if one.answer.verdict == "failed":
                pause_s = 2.0 ** (self._failures - 1)
            elif one.is_admitted and one.answer.tokens == 0:
                self.untold_usage.add(model)
            self._not_before = max(self._not_before, one.done_s + pause_s)
        self._refused = 0 if any(one.is_admitted for one in seen) else self._refused + 1
        if self._refused >= REFUSED_MAX:
            said = next((f" ({one.answer.detail})" for one in seen if one.answer.detail), "")
            raise _ModelEnd(f"{model}: {self._refused} times in a row it admitted nothing{said}: probe again later")

    async def _rest(self) -> None:
        """Until no minute holds any of the probe's calls and every bucket is full again: so that whoever keeps to what
        was found can use all of it from now on, and meets no refusal."""
        seconds = self._latest_s + REST_S - self._outside.now()
        if seconds > 0 and any(found.rpm or found.tpm for found in self._lanes.values()):
            self._watcher.waits("", seconds, is_at_end=True)
            await self._outside.sleep(seconds)


def _note(found: FoundQuota, seen: list[TimedAnswer]) -> None:
    """What the headers say of a minute."""
    for one in seen:
        for limit in one.answer.limits:
            if limit.limit is not None and limit.window_s == _MINUTE_S:
                if limit.of == "requests":
                    found.told_rpm = limit.limit
                elif limit.of == "tokens":
                    found.told_tpm = limit.limit
