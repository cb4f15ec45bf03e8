"""One load test under way: one run of all models at once, or each model's search for a goal in steps.

Owns the order of the runs, what they share (money, time zero) and how they end. Calls go through a `SendCall` that is
passed in. Knows no signal, no file and no screen.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import structs

from ...engine.attempts.money import CostBudget
from ...engine.attempts.prices import Price
from .arrivals import OpenLoop, asked_between, at_rate, in_parts, spans
from .budget import Budget, LoadEnd, Reason
from .goal import Goal, Search, SearchCutShort, highest_rate
from .measurements import MeasuredStep, ModelMeasurement, Window
from .meter import LoadMeter, StepMeter
from .plan import LoadPlan
from .run import LoadResult, ModelRun, SendCall, run_load, run_together
from .spec import LoadSpec
from .timing import CallTimes, Clock
from .watch import ClientVerdict, ClientWatch

# A step of a search that can't send its calls in time ends after this multiple of their time.
_STEP_LONGEST = 2.0
# Reasons for the end of a step after which the next one may begin.
_STEP_ENDS: tuple[Reason, ...] = ("calls", "duration")


class Witness(Protocol):
    """The interface of an observer of a whole test: of each run as it begins, at second `begins_s`, and of each call as
    it begins and ends."""

    def run_opened(self, plan: LoadPlan, models: Mapping[str, ModelRun], begins_s: float) -> None: ...

    def call_began(self, model: str) -> None: ...

    def call_ended(
        self, model: str, timed: CallTimes, step: int, begins_s: float, cost: float, *, measured: bool
    ) -> None: ...


class DisplayWitness(Witness, Protocol):
    """An observer of a whole test that also shows it to a person."""

    def showing(self, session: LoadSession) -> AbstractContextManager[None]:
        """Returns a context that shows the test, from its first call to its last."""
        ...


class LoadSession:
    """A load test under way; call `run` once. `wholes` has each model's measurements at any time, `money` the cost of
    all of them."""

    def __init__(
        self,
        spec: LoadSpec,
        ask: SendCall,
        prices: Mapping[str, Price | None],
        witnesses: tuple[Witness, ...] = (),
        *,
        clock: Clock = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self.spec = spec
        self.ending: LoadEnd | None = None
        self.wholes = {model: ModelMeasurement(spec.plan.promise) for model in spec.models}
        self.money = CostBudget(spec.plan.limits.max_cost)
        # Seconds of a single run that were sent but not measured, at its beginning and at its end.
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
        return f"<LoadSession [{len(self._budgets)} runs under way, {self.ending.reason if self.ending else 'open'}]>"

    def is_priced(self, model: str) -> bool:
        return self._prices.get(model) is not None

    def since(self) -> float:
        """Returns the seconds since `run` began; before that, since this session was made."""
        return self._clock() - self._zero

    def end(self, reason: Reason, detail: str = "") -> None:
        """Ends the test: nothing more begins, and calls in flight are waited for. The first reason given is kept."""
        if self.ending is None:
            self.ending = LoadEnd(reason, detail)
        for budget in self._budgets:
            budget.end(reason, detail)

    def drop(self) -> None:
        """Cancels the calls in flight; they count as unfinished. Does not end the test: call `end` first."""
        for budget in self._budgets:
            budget.drop()

    async def run(self) -> None:
        """Runs the test to its end. Raises the errors that a call must never raise, such as a fault in the program."""
        self._zero = self._clock()
        if self.spec.goal is None or self.spec.search is None:
            await self._run_once()
        else:
            hunts = [self._hunt(model, self.spec.goal, self.spec.search) for model in self.spec.models]
            await run_together(hunts)
            self.end("goal")

    # One run

    async def _run_once(self) -> None:
        plan = structs.replace(self.spec.plan, arrivals=in_parts(self.spec.plan.arrivals))
        watches = _PartWatches(plan, self.since, self._cpu)
        try:
            result, begins_s = await self._one(plan, self.spec.models, 0, None)
        except SearchCutShort:
            return
        finally:
            await watches.end()
        warm_up_s = min(plan.warm_up_s, result.ended_s)
        self.left_out = (warm_up_s, max(0.0, result.ended_s - warm_up_s - result.seconds))
        for model, run in result.models.items():
            whole = self.wholes[model]
            whole.take_only(run, _window(plan, begins_s, result), result.verdicts[model])
            for number, (low, high) in enumerate(spans(plan.arrivals, result.ended_s)):
                counted = run.meter.steps.get(number)
                low, high = max(low, plan.warm_up_s), min(high, plan.warm_up_s + result.seconds)
                if counted is not None and high > low:
                    expected = asked_between(plan.arrivals, low, high)
                    rate = None if expected is None else expected / (high - low)
                    is_bound = watches.is_bound(number, counted, result.verdicts[model])
                    whole.steps.append(MeasuredStep(rate, begins_s + low, high - low, counted, is_bound))
        self.end(result.ending.reason, result.ending.detail)

    async def _one(
        self, plan: LoadPlan, models: tuple[str, ...], number: int, step: int | None
    ) -> tuple[LoadResult, float]:
        """Returns a run's result and the second at which it began. `number` selects its calls; `step` is given if the
        whole run is one step. Raises SearchCutShort if the test has ended."""
        if self.ending is not None:
            raise SearchCutShort
        budget = Budget(plan.limits, models, self._prices, self.money)
        self._budgets.append(budget)
        calls = {model: self.spec.calls(model, number) for model in models}
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

        async def run(rate: float, calls: int) -> tuple[LoadMeter, ClientVerdict]:
            nonlocal number
            is_repeat = bool(whole.steps) and whole.steps[-1].rate == rate
            step = len(whole.steps) - is_repeat
            plan = self._step_plan(rate, calls, number)
            self.standings[model] = _standing_text(whole, step, rate)
            result, begins_s = await self._one(plan, (model,), number, step)
            number += 1
            measured, verdict = result.models[model], result.verdicts[model]
            window = _window(plan, begins_s, result)
            whole.take(measured, window, verdict, rate)
            _note_step(whole, measured.meter, window, rate, verdict, goal, is_repeat=is_repeat)
            if result.ending.reason not in _STEP_ENDS:
                # Cut short: the search decided nothing here, even if these calls would.
                whole.steps[-1].standing = "open"
                self.end(result.ending.reason, result.ending.detail)
                raise SearchCutShort
            return measured.meter, verdict

        whole.found = await highest_rate(goal, search, run)
        for tried, step in zip(whole.found.steps, whole.steps, strict=False):
            step.standing = tried.standing

    def _step_plan(self, rate: float, calls: int, number: int) -> LoadPlan:
        """Returns the plan of step `number` of a search: its calls, after those of the warm-up. The number decides its
        seed."""
        spec = self.spec
        warm_up_s = spec.plan.warm_up_s
        limits = structs.replace(
            spec.plan.limits,
            calls=calls + math.ceil(rate * warm_up_s),
            duration_s=warm_up_s + _STEP_LONGEST * calls / rate,
        )
        # Arrivals differ between any two steps and between seeds.
        seed = int.from_bytes(f"{spec.plan.seed} {number}".encode())
        first = spec.plan.arrivals
        assert isinstance(first, OpenLoop)
        arrivals = at_rate(rate, first.process, first.burstiness)
        return structs.replace(
            spec.plan, arrivals=arrivals, limits=limits, warm_up_s=warm_up_s, cool_down_s=0.0, seed=seed
        )


class _Relay:
    """An observer of one run that forwards its events to all witnesses. `begins_s` is where the run begins in the
    session's seconds; `step` its number in a search, from 0 (None: the plan's own steps)."""

    def __init__(self, witnesses: tuple[Witness, ...], plan: LoadPlan, begins_s: float, step: int | None) -> None:
        self._witnesses = witnesses
        self._plan = plan
        self._begins_s = begins_s
        self._step = step

    def opened(self, models: Mapping[str, ModelRun]) -> None:
        for witness in self._witnesses:
            witness.run_opened(self._plan, models, self._begins_s)

    def began(self, model: str) -> None:
        for witness in self._witnesses:
            witness.call_began(model)

    def ended(self, model: str, timed: CallTimes, cost: float, *, counts: bool) -> None:
        step = self._plan.step_of(timed.due) if self._step is None else self._step
        for witness in self._witnesses:
            witness.call_ended(model, timed, step, self._begins_s, cost, measured=counts)


class _PartWatches:
    """A watch on the client in each step of a run, since only some of the steps may overload it."""

    def __init__(self, plan: LoadPlan, since: Clock, cpu: Callable[[], float]) -> None:
        self._spans = spans(plan.arrivals, math.inf)
        self._since = since
        self._cpu = cpu
        self._watches: list[ClientWatch] = []
        is_one = len(self._spans) == 1
        self._task = None if is_one else asyncio.create_task(self._watch(), name="load step watch")

    async def _watch(self) -> None:
        began = self._since()
        for _, high in self._spans:
            watch = ClientWatch(self._since, self._cpu)
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

    def is_bound(self, number: int, counted: StepMeter, verdict: ClientVerdict) -> bool:
        if number >= len(self._watches):
            return verdict.is_client_bound
        return self._watches[number].verdict(counted.latency, counted.latency, due=0, begun=0).is_client_bound


def _window(plan: LoadPlan, begins_s: float, result: LoadResult) -> Window:
    low = begins_s + plan.warm_up_s
    return Window(low, low + result.seconds, plan.arrivals, begins_s)


def _note_step(
    whole: ModelMeasurement,
    meter: LoadMeter,
    window: Window,
    rate: float,
    verdict: ClientVerdict,
    goal: Goal,
    *,
    is_repeat: bool,
) -> None:
    """Adds the measurements of a step to the model's; a repeat is merged with the step before."""
    counted = StepMeter(window.begins_s)
    for part in meter.steps.values():
        counted.merge_step(part)
    # The whole measurement has these slices already; a search of many steps must not keep them twice.
    meter.slices.clear()
    if not is_repeat:
        whole.steps.append(MeasuredStep(rate, window.begins_s, window.seconds, counted, verdict.is_client_bound))
        whole.steps[-1].standing = goal.standing(meter)
        return
    step = whole.steps[-1]
    step.counted.merge_step(counted)
    step.seconds += window.seconds
    step.is_client_bound |= verdict.is_client_bound


def _standing_text(whole: ModelMeasurement, step: int, rate: float) -> str:
    kept = max((each.rate or 0.0 for each in whole.steps if each.standing == "kept"), default=None)
    missed = min((each.rate or 0.0 for each in whole.steps if each.standing == "missed"), default=None)
    bounds = [
        *([] if kept is None else [f"kept at {kept:.4g}/s"]),
        *([] if missed is None else [f"missed at {missed:.4g}/s"]),
    ]
    return f"step {step + 1}: {rate:.4g}/s" + (f" ({', '.join(bounds)})" if bounds else "")
