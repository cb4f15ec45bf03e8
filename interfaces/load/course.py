"""One load test under way: its single run of all models at once, or the steps of each model's search for a goal.

Owns the order of the runs, what they share (the purse, the clock's zero) and how all of them end. Calls go out through
an `ask` that is passed in; signals, files and the screen are others'.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Protocol

from msgspec import structs

from ...bench.load.arrivals import at_rate
from ...bench.load.budget import Budget, Ending, Reason
from ...bench.load.goal import Goal, Over, Search, highest_rate
from ...bench.load.meter import Meter
from ...bench.load.meter import Part as Counted
from ...bench.load.plan import Plan
from ...bench.load.run import Ask, Measured, Result, run_load
from ...bench.load.timing import Clock, Timed
from ...bench.load.watch import Verdict, Watch
from ...engine.money import Price, Purse
from .asked import asked_between, in_parts, spans
from .measured import Step, Whole, Window
from .order import Order

# A step of a search ends when its calls are through; one that can't send them takes no longer than so many times that.
_STEP_LONGEST = 2.0
# Ends of a step's run after which the next one may begin.
_STEP_ENDS: tuple[Reason, ...] = ("calls", "duration")


class Witness(Protocol):
    """Sees the test as it goes: each call as it ends, each run as it begins. `begins_s`: when its run did."""

    def run_opened(self, plan: Plan, models: Mapping[str, Measured], begins_s: float) -> None: ...

    def call_began(self, model: str) -> None: ...

    def call_ended(
        self, model: str, timed: Timed, step: int, begins_s: float, cost: float, *, measured: bool
    ) -> None: ...


class Course:
    """`run` it once; `wholes` has what each model measured, at any time. `purse`: what all of it may cost."""

    def __init__(
        self,
        order: Order,
        ask: Ask,
        prices: Mapping[str, Price | None],
        witnesses: tuple[Witness, ...] = (),
        *,
        clock: Clock = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.order = order
        self.ending: Ending | None = None
        self.wholes = {model: Whole(order.plan.promise) for model in order.models}
        self.purse = Purse(order.plan.limits.max_cost)
        # Of a single run: its seconds that were sent and left out, at its beginning and at its end.
        self.left_out = (0.0, 0.0)
        self.standings: dict[str, str] = {}
        self._ask = ask
        self._prices = prices
        self._witnesses = witnesses
        self._clock = clock
        self._cpu = cpu
        self._budgets: list[Budget] = []
        self._zero = clock()

    def __repr__(self) -> str:
        return f"<Course [{len(self._budgets)} runs under way, {self.ending.reason if self.ending else 'open'}]>"

    def is_priced(self, model: str) -> bool:
        return self._prices.get(model) is not None

    def since(self) -> float:
        """Seconds since the start of the test."""
        return self._clock() - self._zero

    def end(self, reason: Reason, detail: str = "") -> None:
        """Nothing more is begun; what is in flight is waited for. The first reason stays."""
        if self.ending is None:
            self.ending = Ending(reason, detail)
        for budget in self._budgets:
            budget.end(reason, detail)

    def drop(self) -> None:
        """Wait no more for what is in flight either."""
        for budget in self._budgets:
            budget.drop()

    async def run(self) -> None:
        """To its end. Raises what a call should never raise."""
        self._zero = self._clock()
        if self.order.goal is None or self.order.search is None:
            await self._run_once()
        else:
            hunts = [self._hunt(model, self.order.goal, self.order.search) for model in self.order.models]
            await _together(hunts)
            self.end("goal")

    # One run

    async def _run_once(self) -> None:
        plan = structs.replace(self.order.plan, arrivals=in_parts(self.order.plan.arrivals))
        watches = _PartWatches(plan, self.since, self._cpu)
        try:
            result, begins_s = await self._one(plan, self.order.models, 0, None)
        except Over:
            return
        finally:
            await watches.end()
        warm_up_s = min(plan.warm_up_s, result.ended_s)
        self.left_out = (warm_up_s, max(0.0, result.ended_s - warm_up_s - result.seconds))
        for model, own in result.models.items():
            whole = self.wholes[model]
            whole.take_only(own, _window(plan, begins_s, result), result.verdicts[model])
            for number, (low, high) in enumerate(spans(plan.arrivals, result.ended_s)):
                counted = own.meter.steps.get(number)
                low, high = max(low, plan.warm_up_s), min(high, plan.warm_up_s + result.seconds)
                if counted is not None and high > low:
                    asked = asked_between(plan.arrivals, low, high)
                    rate = None if asked is None else asked / (high - low)
                    is_bound = watches.is_bound(number, counted, result.verdicts[model])
                    whole.steps.append(Step(rate, begins_s + low, high - low, counted, is_bound))
        self.end(result.ending.reason, result.ending.detail)

    async def _one(self, plan: Plan, models: tuple[str, ...], number: int, step: int | None) -> tuple[Result, float]:
        """A run, and when it began. `number`: of its calls; `step`: where a whole run is one."""
        if self.ending is not None:
            raise Over
        budget = Budget(plan.limits, models, self._prices, self.purse)
        self._budgets.append(budget)
        calls = {model: self.order.calls(model, number) for model in models}
        begins_s = self.since()
        relay = _Relay(self._witnesses, plan, begins_s, step)
        try:
            result = await run_load(
                plan,
                calls,
                self._ask,
                prices=self._prices,
                clock=self._clock,
                cpu=self._cpu,
                budget=budget,
                observer=relay,
                begins_s=begins_s,
            )
        finally:
            self._budgets.remove(budget)
        return result, begins_s

    # A search

    async def _hunt(self, model: str, goal: Goal, search: Search) -> None:
        whole, number = self.wholes[model], 0

        async def run(rate: float, calls: int) -> tuple[Meter, Verdict]:
            nonlocal number
            is_repeat = bool(whole.steps) and whole.steps[-1].rate == rate
            step = len(whole.steps) - is_repeat
            plan = self._step_plan(rate, calls, number)
            self.standings[model] = _told(whole, step, rate)
            result, begins_s = await self._one(plan, (model,), number, step)
            number += 1
            own, verdict = result.models[model], result.verdicts[model]
            window = _window(plan, begins_s, result)
            whole.take(own, window, verdict, rate)
            _note_step(whole, own.meter, window, rate, verdict, goal, is_repeat=is_repeat)
            if result.ending.reason not in _STEP_ENDS:
                # Cut short: the search decided nothing here, whatever these calls show.
                whole.steps[-1].standing = "open"
                self.end(result.ending.reason, result.ending.detail)
                raise Over
            return own.meter, verdict

        whole.found = await highest_rate(goal, search, run)
        for known, step in zip(whole.found.steps, whole.steps, strict=False):
            step.standing = known.standing

    def _step_plan(self, rate: float, calls: int, number: int) -> Plan:
        """Its calls, and before them those of the warm-up."""
        order = self.order
        warm_up_s = order.plan.warm_up_s
        limits = structs.replace(
            order.plan.limits,
            calls=calls + math.ceil(rate * warm_up_s),
            duration_s=warm_up_s + _STEP_LONGEST * calls / rate,
        )
        # No two steps have the same arrivals, and those of another seed have none of them.
        seed = int.from_bytes(f"{order.plan.seed} {number}".encode())
        arrivals = at_rate(rate, order.process, order.burstiness)
        return structs.replace(
            order.plan, arrivals=arrivals, limits=limits, warm_up_s=warm_up_s, cool_down_s=0.0, seed=seed
        )


class _Relay:
    """Tells the witnesses of one run's calls."""

    def __init__(self, witnesses: tuple[Witness, ...], plan: Plan, begins_s: float, step: int | None) -> None:
        self._witnesses = witnesses
        self._plan = plan
        self._begins_s = begins_s
        self._step = step

    def opened(self, models: Mapping[str, Measured]) -> None:
        for witness in self._witnesses:
            witness.run_opened(self._plan, models, self._begins_s)

    def began(self, model: str) -> None:
        for witness in self._witnesses:
            witness.call_began(model)

    def ended(self, model: str, timed: Timed, cost: float, *, counts: bool) -> None:
        step = self._plan.step_of(timed.due) if self._step is None else self._step
        for witness in self._witnesses:
            witness.call_ended(model, timed, step, self._begins_s, cost, measured=counts)


class _PartWatches:
    """Watches the client in each step of one run by itself: the last of them may ask too much of it, and the first
    ones not."""

    def __init__(self, plan: Plan, since: Clock, cpu: Callable[[], float]) -> None:
        self._spans = spans(plan.arrivals, math.inf)
        self._since = since
        self._cpu = cpu
        self._watches: list[Watch] = []
        is_one = len(self._spans) == 1
        self._task = None if is_one else asyncio.create_task(self._watch(), name="load step watch")

    async def _watch(self) -> None:
        began = self._since()
        for _, high in self._spans:
            watch = Watch(self._since, self._cpu)
            self._watches.append(watch)
            watch.begin()
            try:
                await (asyncio.Event().wait() if math.isinf(high) else asyncio.sleep(began + high - self._since()))
            finally:
                await watch.end()

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def is_bound(self, number: int, counted: Counted, verdict: Verdict) -> bool:
        if number >= len(self._watches):
            return verdict.is_client_bound
        return self._watches[number].verdict(counted.latency, counted.latency, due=0, begun=0).is_client_bound


async def _together(works: Iterable[Coroutine[None, None, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def _window(plan: Plan, begins_s: float, result: Result) -> Window:
    low = begins_s + plan.warm_up_s
    return Window(low, low + result.seconds, plan.arrivals, begins_s)


def _note_step(
    whole: Whole, meter: Meter, window: Window, rate: float, verdict: Verdict, goal: Goal, *, is_repeat: bool
) -> None:
    """What is known of a rate, with the repeats so far."""
    counted = Counted(window.begins_s, digits=3)
    for part in meter.steps.values():
        counted.merge(part)
    # Of many steps, the slices of each would be held; the whole has them.
    meter.slices.clear()
    if not is_repeat:
        whole.steps.append(Step(rate, window.begins_s, window.seconds, counted, verdict.is_client_bound))
        whole.steps[-1].standing = goal.standing(meter)
        return
    step = whole.steps[-1]
    step.counted.merge(counted)
    step.seconds += window.seconds
    step.is_client_bound |= verdict.is_client_bound


def _told(whole: Whole, step: int, rate: float) -> str:
    kept = max((each.rate or 0.0 for each in whole.steps if each.standing == "kept"), default=None)
    missed = min((each.rate or 0.0 for each in whole.steps if each.standing == "missed"), default=None)
    known = [
        *([] if kept is None else [f"kept at {kept:.4g}/s"]),
        *([] if missed is None else [f"missed at {missed:.4g}/s"]),
    ]
    return f"step {step + 1}: {rate:.4g}/s" + (f" ({', '.join(known)})" if known else "")
