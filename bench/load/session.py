"""One load test under way: one run of all models at once, or each model's search for a goal in steps.

Owns the order of the runs, what they share (money, time zero) and how they end. Calls go through a `SendCall` that is
passed in. Knows no signal, no file and no screen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from itertools import islice

from msgspec import structs

from ...engine.attempts.money import CostBudget
from ...engine.prices import Price
from .arrivals import OpenLoop, asked_between, at_rate, in_parts, spans
from .budget import Budget, LoadEnd, Reason
from .fleet import LoadFleet
from .goal import Search, SearchCutShort, highest_rate
from .measurements import MeasuredStep, ModelMeasurement
from .meter import LoadMeter, StepMeter
from .plan import LoadPlan
from .run import CallEnd, LoadResult, RunUnderWay, SendCall, run_load, run_together
from .spec import LoadSpec
from .timing import Clock
from .watch import ClientVerdict

# A step of a search that can't send its calls in time ends after this multiple of their time.
_STEP_LONGEST = 2.0
# Reasons for the end of a step after which the next one may begin.
_STEP_ENDS: tuple[Reason, ...] = ("calls", "duration")


class LoadSession:
    """A load test under way; call `run` once. `wholes` has each model's measurements of the runs that have ended,
    `under_way` its present run, `money` the cost of all models. `on_end` may get functions before the test begins,
    which are called for each call as it ends. `fleet`: the workers that send the calls (None: this process does);
    `zero`: the clock's second from which all times count."""

    def __init__(
        self,
        spec: LoadSpec,
        ask: SendCall,
        prices: Mapping[str, Price | None],
        *on_end: CallEnd,
        clock: Clock = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
        fleet: LoadFleet | None = None,
    ) -> None:
        self.spec = spec
        self.ending: LoadEnd | None = None
        self.wholes = {model: ModelMeasurement(spec.plan.promise) for model in spec.models}
        self.under_way: dict[str, RunUnderWay] = {}
        self.money = CostBudget(spec.plan.limits.max_cost)
        # Seconds of a single run that were sent but not measured, at its beginning and at its end.
        self.left_out = (0.0, 0.0)
        self.standings: dict[str, str] = {}
        self.on_end = [*on_end]
        self._ask = ask
        self._prices = prices
        self._clock = clock
        self._cpu = cpu
        self._fleet = fleet
        self._budgets: list[Budget] = []
        self.zero = clock()

    def __repr__(self) -> str:
        return f"<LoadSession [{len(self._budgets)} runs under way, {self.ending.reason if self.ending else 'open'}]>"

    def is_priced(self, model: str) -> bool:
        return self._prices.get(model) is not None

    def since(self) -> float:
        """Returns the seconds since `run` began; before that, since this session was made."""
        return self._clock() - self.zero

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
        self.zero = self._clock()
        if self.spec.search is None:
            await self._run_once()
        else:
            await run_together([self._hunt(model, self.spec.search) for model in self.spec.models])
            self.end("goal")

    # One run

    async def _run_once(self) -> None:
        plan = structs.replace(self.spec.plan, arrivals=in_parts(self.spec.plan.arrivals))
        try:
            result = await self._one(plan, self.spec.models, 0, None)
        except SearchCutShort:
            return
        warm_up_s = min(plan.warm_up_s, result.ended_s)
        self.left_out = (warm_up_s, max(0.0, result.ended_s - warm_up_s - result.seconds))
        for model, run in result.models.items():
            whole = self.wholes[model]
            verdict = whole.take(model, result).verdict
            steps = spans(plan.arrivals, result.ended_s)
            for number, (low, high) in enumerate(steps):
                counted = run.meter.steps.get(number)
                low, high = max(low, plan.warm_up_s), min(high, plan.warm_up_s + result.seconds)
                if counted is not None and high > low:
                    expected = asked_between(plan.arrivals, low, high)
                    rate = None if expected is None else expected / (high - low)
                    is_one = len(steps) == 1
                    is_bound = verdict.is_client_bound if is_one else number in result.bound_steps[model]
                    step = MeasuredStep(rate, result.begins_s + low, high - low, counted, is_bound)
                    whole.steps.append(step)
        self.end(result.ending.reason, result.ending.detail)

    async def _one(self, plan: LoadPlan, models: tuple[str, ...], number: int, step: int | None) -> LoadResult:
        """Returns a run's result. `number` selects its calls; `step` is given if the whole run is one step. Raises
        SearchCutShort if the test has ended."""
        if self.ending is not None:
            raise SearchCutShort
        try:
            return await self.run_part(plan, models, number, step)
        finally:
            for model in models:
                self.under_way.pop(model, None)

    async def run_part(
        self, plan: LoadPlan, models: tuple[str, ...], number: int, step: int | None, begins_s: float | None = None
    ) -> LoadResult:
        """Returns a run's result, or of a worker its part of one. `begins_s`: the second at which it begins (None:
        now)."""
        budget = Budget(plan.limits, models, self._prices, self.money)
        self._budgets.append(budget)

        def begun(run: RunUnderWay) -> None:
            self.under_way.update(dict.fromkeys(models, run))

        try:
            if self._fleet is not None:
                part = plan, models, number, step
                return await self._fleet.run(part, budget, self.zero, on_begin=begun, on_end=self.on_end)
            return await run_load(
                plan,
                {model: islice(self.spec.calls(model, number), *plan.share) for model in models},
                self._ask,
                budget,
                clock=self._clock,
                cpu=self._cpu,
                zero=self.zero,
                begins_s=begins_s,
                step=step,
                on_begin=begun,
                on_end=self.on_end,
            )
        finally:
            self._budgets.remove(budget)

    # A search

    async def _hunt(self, model: str, search: Search) -> None:
        whole, number = self.wholes[model], 0

        async def run(rate: float, calls: int) -> tuple[LoadMeter, ClientVerdict]:
            nonlocal number
            is_repeat = bool(whole.steps) and whole.steps[-1].rate == rate
            step = len(whole.steps) - is_repeat
            plan = self._step_plan(rate, calls, number)
            self.standings[model] = _standing_text(whole, step, rate)
            result = await self._one(plan, (model,), number, step)
            number += 1
            meter = result.models[model].meter
            verdict = _note_step(whole, model, result, rate, is_repeat=is_repeat)
            if result.ending.reason not in _STEP_ENDS:
                # Cut short: the search decided nothing here, even if these calls would.
                self.end(result.ending.reason, result.ending.detail)
                raise SearchCutShort
            whole.steps[-1].standing = search.goal.standing(meter)
            return meter, verdict

        whole.found = await highest_rate(search, run)
        for standing, measured in zip(whole.found.steps.values(), whole.steps, strict=False):
            measured.standing = standing

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
        return structs.replace(spec.plan, arrivals=arrivals, limits=limits, cool_down_s=0.0, seed=seed)


def _note_step(
    whole: ModelMeasurement, model: str, result: LoadResult, rate: float, *, is_repeat: bool
) -> ClientVerdict:
    """Adds the measurements of a step to the model's, and returns the verdict on the client; a repeat is merged with
    the step before. The step stands open."""
    run, meter = whole.take(model, result, rate), result.models[model].meter
    # The whole measurement has these slices already; a search of many steps must not keep them twice.
    meter.slices.clear()
    if not is_repeat:
        whole.steps.append(MeasuredStep(rate, run.begins_s, 0.0, StepMeter()))
    step = whole.steps[-1]
    step.standing = "open"
    for counted in meter.steps.values():
        step.counted.merge(counted)
    step.seconds += run.seconds
    step.is_client_bound |= run.verdict.is_client_bound
    return run.verdict


def _standing_text(whole: ModelMeasurement, step: int, rate: float) -> str:
    kept = max((each.rate or 0.0 for each in whole.steps if each.standing == "kept"), default=None)
    missed = min((each.rate or 0.0 for each in whole.steps if each.standing == "missed"), default=None)
    bounds = [
        *([] if kept is None else [f"kept at {kept:.4g}/s"]),
        *([] if missed is None else [f"missed at {missed:.4g}/s"]),
    ]
    return f"step {step + 1}: {rate:.4g}/s" + (f" ({', '.join(bounds)})" if bounds else "")
