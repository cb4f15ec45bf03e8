"""Runs a probe: sends what its steps ask for, under hard caps on calls and cost that are reserved before each call.

Owns the caps, the pauses that the provider asks for, and the end. The clock, sleep and the sending of a call are passed
in; other modules decide what to send.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from ...engine.attempts.money import CostBudget
from ...engine.remarks import remark
from ...format import count_text
from .requests import RequestProbe
from .result import FoundQuota, ProbeResult
from .steps import Answer, Ask, Steps, TimedAnswer, Wait
from .tokens import TokenProbe

FAILURES_MAX = 5
# A longer pause that the provider asks for is not waited for.
WAIT_MAX_S = 200.0
REST_S = 62.0
# After this many rounds in a row that admit nothing, despite the waits, the cause is no quota a minute.
REFUSED_MAX = 12
_MINUTE_S = 60.0
_QUIET_WAITS = 3


class Costs(Protocol):
    """The interface of a price list: the most that a call can cost, in dollars."""

    def worst_cost(self, model: str, tokens: int) -> float: ...


class Outside(Costs, Protocol):
    """The interface of the provider and the clock. `ask` never raises for what the provider does: that is an answer.
    `quiet_in_s`: the seconds until the last minute holds no call of any program to the model."""

    def quiet_in_s(self, model: str) -> float: ...

    async def ask(self, model: str, tokens: int) -> Answer: ...

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Watcher(Protocol):
    """The interface of an observer of a probe. `unsent`: calls of a round that were not sent because an earlier one was
    refused; `is_at_end`: the wait lets used quota come back after everything is found."""

    def begins(self, model: str) -> None: ...

    def got(self, model: str, seen: Sequence[TimedAnswer], unsent: int) -> None: ...

    def waits(self, model: str, seconds: float, *, is_at_end: bool) -> None: ...


class _Nobody:
    """A watcher that does nothing."""

    def begins(self, model: str) -> None: ...

    def got(self, model: str, seen: Sequence[TimedAnswer], unsent: int) -> None: ...

    def waits(self, model: str, seconds: float, *, is_at_end: bool) -> None: ...


class Bounds(Struct, frozen=True):
    """The caps of a probe: calls and dollars in all, and for each model the calls in flight, the requests and tokens a
    minute and the tokens of one call that it may try."""

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
    """The most calls and dollars that a probe will use."""

    calls: int
    cost: float

    def line(self) -> str:
        most = count_text(self.calls, "call")
        return f"a probe sends at most {most} and spends at most ${self.cost:,.4f}; most end far below"


def forecast(models: Iterable[str], outside: Costs, bounds: Bounds) -> ProbeForecast:
    """Returns the most calls and dollars that a probe of these models can use. Sends nothing."""
    dearest = max((outside.worst_cost(model, bounds.tokens_a_call) for model in models), default=0.0)
    return ProbeForecast(bounds.max_calls, min(bounds.max_cost, bounds.max_calls * dearest))


class _ModelEnd(Exception):
    """Raised to end the probe of one model; its text is the reason."""


class _PartEnd(Exception):
    """Raised to end one part of a model's probe (requests or tokens): the next round would pass the cap of tokens."""


class Probe:
    """A probe of several models, one after the other, under one cap of calls and one of cost. `calls`, `cost` and
    `probed` are right at any instant. `at_once`: the most calls of each model that were admitted together."""

    def __init__(self, outside: Outside, bounds: Bounds, watcher: Watcher | None = None) -> None:
        self._outside = outside
        self._bounds = bounds
        self._watcher: Watcher = _Nobody() if watcher is None else watcher
        self.budget = CostBudget(bounds.max_cost)
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
        return self.budget.spent

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
                await self._await_quiet(model)
                await self._follow(model, found, requests.steps())
                if model not in self.untold_usage:
                    await self._follow(model, found, self._tokens(found, self.calls - before, requests).steps())
            except _ModelEnd as why:
                found.ended = str(why)
        await self._rest()
        return self.probed()

    async def _await_quiet(self, model: str) -> None:
        """Waits until no earlier call counts against the quota, since what it used would be missing in what is found.
        Raises _ModelEnd if other programs go on sending."""
        for _ in range(_QUIET_WAITS):
            seconds = self._outside.quiet_in_s(model)
            if seconds <= 0:
                return
            remark(f"{model} was called in the last minute: waits {seconds + 1:.0f} s until that no longer counts")
            self._watcher.waits(model, seconds + 1, is_at_end=False)
            await self._outside.sleep(seconds + 1)
        raise _ModelEnd(f"{model}: another program goes on calling it: probe again when none does")

    def _tokens(self, found: FoundQuota, calls: int, requests: RequestProbe) -> TokenProbe:
        # A probe may use three minutes' worth of calls where the limit a minute is known.
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
        """Sends the calls of one step one right after the other and returns their answers; stops at the first refusal,
        or when no further call can succeed."""
        if sum(step.sizes) > max(self._bounds.tokens, len(step.sizes)):
            raise _PartEnd
        worst = [self._outside.worst_cost(model, size) for size in step.sizes]
        self._check_caps(model, len(worst), sum(worst))
        tasks: list[asyncio.Task[TimedAnswer]] = []
        self._is_round_over = False
        try:
            async with asyncio.TaskGroup() as group:
                for size, most in zip(step.sizes, worst, strict=True):
                    # Answers that arrived meanwhile are handled before the next call goes.
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
        if not self.budget.fits(cost):
            raise _ModelEnd(
                f"{model}: {count:,} more calls can cost ${cost:.4f}, of ${self._bounds.max_cost:.4f} "
                f"${self.cost:.4f} are spent: raise --max-cost"
            )

    async def _one(self, model: str, size: int, worst: float) -> TimedAnswer:
        self.calls += 1
        # All calls of the step fitted when it began; what others released meanwhile has to be reserved again.
        self.budget.fits(worst)
        self.budget.reserve(worst)
        sent_s = self._latest_s = self._outside.now()
        # A call without a reported price counts at its worst cost.
        spent = unsure = worst
        try:
            answer = await self._outside.ask(model, size)
            if answer.verdict != "failed":
                spent, unsure = answer.cost, 0.0
        finally:
            self.budget.settle(worst, spent, unsure=unsure)
        self._failures = self._failures + 1 if answer.verdict == "failed" else 0
        is_over = answer.verdict == "refused" or answer.is_fatal or self._failures >= FAILURES_MAX
        self._is_round_over = self._is_round_over or is_over
        return TimedAnswer(size, sent_s, self._outside.now(), answer)

    def _judge(self, model: str, seen: list[TimedAnswer]) -> None:
        """Notes what a round shows besides what was admitted: a pause before the next call, or a model that reports no
        usage. Raises _ModelEnd if the probe of the model must end."""
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
        """Waits until no minute holds any of the probe's calls and every bucket is full again, so that the quota found
        can be used in full from then on."""
        seconds = self._latest_s + REST_S - self._outside.now()
        if seconds > 0 and any(found.rpm or found.tpm for found in self._lanes.values()):
            self._watcher.waits("", seconds, is_at_end=True)
            await self._outside.sleep(seconds)


def _note(found: FoundQuota, seen: list[TimedAnswer]) -> None:
    """Sets in `found` the requests and tokens a minute that headers of these answers report; the last report counts,
    and without one the field stays as it is."""
    for one in seen:
        for limit in one.answer.limits:
            if limit.limit is not None and limit.window_s == _MINUTE_S:
                if limit.of == "requests":
                    found.told_rpm = limit.limit
                elif limit.of == "tokens":
                    found.told_tpm = limit.limit
