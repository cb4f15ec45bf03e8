"""Runs a load test from its first call to its last: an open loop that never slows down with the server, or a closed
one.

Begins each call when it is due, with a task for each call, and gives the result to the meter. Calls go through a
`SendCall` that is passed in, with its quotas and retries; so are arrivals, texts, the budget and the clock.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Protocol

from msgspec import Struct

from ...engine.call import Call, Outcome
from ...engine.endpoint import Hear
from ...engine.fault import LocalFault, Stopped
from .alarm import EARLY_S, Alarm, kernel_alarm
from .arrivals import ClosedLoop, OpenLoop, Replay
from .budget import Budget, LoadEnd, Reason
from .meter import LoadMeter
from .plan import LoadPlan
from .timing import CallTimes, Clock, Stopwatch
from .watch import ClientVerdict, ClientWatch

# No call is begun later than this after the end of the test.
LATE_MOST_S = 1.0
# A run that begins at a given second wakes so long before it.
_AHEAD_S = 0.02


class SendCall(Protocol):
    """A function that sends one call to its end, such as `millstream.Engine.ask`. The engine's mode must be `live`, so
    that each call is sent."""

    async def __call__(self, call: Call, *, hear: Hear | None = None) -> Outcome: ...


class CallEnd(Protocol):
    """A function that is called for each call as it ends, with the number of its step; must be quick and must not
    raise. `measured`: the meter counts the call too."""

    def __call__(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None: ...


class ModelRun(Struct):
    """One model's measurements in one run. `begun` counts all calls, the meter the measured ones; `spent` is in
    dollars. `held` calls were due while no slot was free, the longest for `hold_max_s` seconds; at most
    `in_flight_max` were in flight. Calls that were due but never begun: `unsent_held` for lack of a slot,
    `unsent_late` because our own loop was late."""

    meter: LoadMeter
    begun: int = 0
    held: int = 0
    hold_max_s: float = 0.0
    unsent_held: int = 0
    unsent_late: int = 0
    in_flight_max: int = 0
    spent: float = 0.0

    def merge(self, other: ModelRun) -> None:
        """Adds the measurements of another run."""
        self.meter.merge(other.meter)
        self.begun += other.begun
        self.held += other.held
        self.hold_max_s = max(self.hold_max_s, other.hold_max_s)
        self.unsent_held += other.unsent_held
        self.unsent_late += other.unsent_late
        self.in_flight_max = max(self.in_flight_max, other.in_flight_max)
        self.spent += other.spent


class RunUnderWay(Struct, frozen=True):
    """A run under way: its plan, what it may still use, the second at which it began, what was measured so far by
    model, and whether the client was the bottleneck for a model so far."""

    plan: LoadPlan
    budget: Budget
    begins_s: float
    models: Mapping[str, ModelRun]
    verdict: Callable[[str], ClientVerdict]


class LoadResult(Struct, frozen=True):
    """The result of one run: its measurements, whether the client was the bottleneck (`verdicts`) and in which steps
    (`bound_steps`), by model, and why it ended (`ending`). `ended_s` is the length in seconds of the time in which
    calls could begin, without the drain; `seconds` is that of the measured part."""

    plan: LoadPlan
    begins_s: float
    models: Mapping[str, ModelRun]
    verdicts: Mapping[str, ClientVerdict]
    bound_steps: Mapping[str, frozenset[int]]
    ending: LoadEnd
    seconds: float
    ended_s: float


async def run_load(
    plan: LoadPlan,
    calls: Mapping[str, Iterator[Call]],
    ask: SendCall,
    budget: Budget,
    *,
    clock: Clock = time.perf_counter,
    cpu: Callable[[], float] = time.process_time,
    zero: float | None = None,
    begins_s: float | None = None,
    step: int | None = None,
    on_begin: Callable[[RunUnderWay], None] = lambda run: None,
    on_end: Sequence[CallEnd] = (),
) -> LoadResult:
    """Runs one test and returns its result. `calls` has for each model an iterator of enough calls; ending `budget`
    ends the test. `zero` is the clock's second from which all times count (None: the beginning of this run);
    `begins_s` is the second at which the run begins (None: now); `step` is given if the whole run is one step. Raises
    what `ask` raised, except Stopped and LocalFault, which only end the test."""
    zero = clock() if zero is None else zero

    def now() -> float:
        return clock() - zero

    if begins_s is None:
        begins_s = now()
    else:
        # The loops wait for the rest more exactly.
        await asyncio.sleep(begins_s - now() - _AHEAD_S)
    watch = ClientWatch(now, cpu, kernel_alarm(clock), plan.step_of, begins_s)
    models = {model: ModelRun(LoadMeter(plan.promise)) for model in calls}

    def verdict(model: str) -> ClientVerdict:
        run = models[model]
        due = run.begun + run.unsent_late
        return watch.verdict(run.meter.latency, run.meter.undelayed, due=due, begun=run.begun)

    run = RunUnderWay(plan, budget, begins_s, models, verdict)
    loops = [
        _ModelLoop(run, model, queue, ask, now, kernel_alarm(clock) or Alarm(), step, on_end)
        for model, queue in calls.items()
    ]
    on_begin(run)
    watch.begin()
    try:
        await run_together([each.run() for each in loops])
        ended_s = now() - begins_s
        await run_together([each.drain() for each in loops])
    finally:
        await watch.end()
        for each in loops:
            each.alarm.close()
            await each.cancel()
    if budget.error is not None:
        raise budget.error
    ending = budget.ending or LoadEnd("arrivals")
    if ending.reason == "duration" or (ending.reason == "arrivals" and plan.ends_s is not None):
        ended_s = plan.ends_s or ended_s
    verdicts = {model: verdict(model) for model in models}
    bound = {model: _bound_steps(each.meter, watch) for model, each in models.items()}
    return LoadResult(plan, begins_s, models, verdicts, bound, ending, plan.measured_s(ended_s), ended_s)


def _bound_steps(meter: LoadMeter, watch: ClientWatch) -> frozenset[int]:
    return frozenset(number for number, step in meter.steps.items() if watch.was_bottleneck(number, step.latency))


async def run_together(works: Iterable[Coroutine[None, None, None]]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def _reason_of(stopped: Stopped) -> Reason:
    reasons = {stop.reason for stop in stopped.stops}
    if "local_fault" in reasons:
        return "fault"
    # A retry may exceed the budget although its call's first attempt fit.
    return "cost" if reasons == {"budget"} else "stopped"


class _ModelLoop:
    def __init__(
        self,
        run: RunUnderWay,
        model: str,
        calls: Iterator[Call],
        ask: SendCall,
        clock: Clock,
        alarm: Alarm,
        step: int | None,
        on_end: Sequence[CallEnd],
    ) -> None:
        self._plan = run.plan
        self._begins_s = run.begins_s
        duration_s = run.plan.limits.duration_s
        self._ends_s = math.inf if duration_s is None else duration_s
        self._model = model
        self._calls = calls
        self._ask = ask
        self._budget = run.budget
        self._since = clock
        self._step = step
        self._on_end = on_end
        self._ready: Call | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._place = asyncio.Event()
        self.alarm = alarm
        run.budget.on_end += (self._place.set, alarm.ring)
        run.budget.on_drop.append(self._cancel_tasks)
        # When the latest hold ended: calls due before then have waited for a slot.
        self._free = 0.0
        self.measured = run.models[model]

    async def run(self) -> None:
        """Begins calls until no more are due or allowed."""
        await self._until(0.0)
        if isinstance(self._plan.arrivals, ClosedLoop):
            await self._run_closed(self._plan.arrivals.in_flight)
        else:
            await self._run_open(self._plan.arrivals)

    def _clock(self) -> float:
        """Returns the seconds since the beginning of this run, as all times here but those of calls."""
        return self._since() - self._begins_s

    async def _run_open(self, arrivals: OpenLoop | Replay) -> None:
        times = self._plan.times(arrivals, self._model)
        for due in times:
            if due >= self._ends_s:
                await self._until(self._ends_s)
                self._budget.end("duration")
                return
            await self._until(due)
            if not self._budget.over.is_set() and self._is_full(self._plan.limits.in_flight):
                await self._until_place()
            if self._budget.over.is_set():
                return
            if self._clock() > self._ends_s + LATE_MOST_S:
                self._count_unsent(due, times)
                self._budget.end("duration")
                return
            if not self._begin(due):
                return

    def _is_full(self, most: int) -> bool:
        return len(self._tasks) >= most

    def _count_unsent(self, due: float, times: Iterator[float]) -> None:
        """Counts this call and those due after it as never sent."""
        left = 1 + sum(1 for _ in takewhile(lambda at: at < self._ends_s, times))
        if due < self._free or self._is_full(self._plan.limits.in_flight):
            self.measured.unsent_held += left
        else:
            self.measured.unsent_late += left

    async def _run_closed(self, in_flight: int) -> None:
        while not self._budget.over.is_set():
            if self._clock() >= self._ends_s:
                self._budget.end("duration")
            elif self._is_full(in_flight):
                await self._until_place()
            elif not self._begin(None):
                return

    async def _until(self, due: float) -> None:
        """Waits until the second `due`. Yields to the loop at least once, so that late calls don't keep answers from
        being read."""
        await asyncio.sleep(0)
        if self._ready is None:
            # Built ahead, so that building a text does not delay its call.
            self._ready = next(self._calls, None)
        while (left := due - self._clock()) > EARLY_S and not self._budget.over.is_set():
            await self.alarm.wait(left)

    async def _until_place(self) -> None:
        """Waits until a call has ended or nothing more may begin."""
        left_s = self._ends_s + LATE_MOST_S - self._clock()
        self._place.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if math.isinf(left_s) else max(0.0, left_s)):
                await self._place.wait()
        self._free = self._clock()

    def _begin(self, due: float | None) -> bool:
        """Begins the next call, due at `due` (None: now); returns whether the test continues."""
        call, self._ready = self._ready or next(self._calls, None), None
        if call is None:
            self._budget.end("prompts", f"{self._model} had no more prompts after {self.measured.begun:,}")
            return False
        worst = self._budget.take(call)
        if worst is None:
            return False
        measured = self.measured
        measured.begun += 1
        if due is not None and due < self._free:
            measured.held += 1
            measured.hold_max_s = max(measured.hold_max_s, self._free - due)
        task = asyncio.create_task(self._carry(call, due, self._free, worst))
        self._tasks.add(task)
        measured.in_flight_max = max(measured.in_flight_max, len(self._tasks))
        task.add_done_callback(self._done)
        return True

    async def _carry(self, call: Call, due: float | None, free: float, worst: float) -> None:
        at, free = (self._clock(), 0.0) if due is None else (due, free)
        watch = Stopwatch(self._begins_s + at, self._since, self._begins_s + free)
        outcome: Outcome | None = None
        is_ended = False
        try:
            outcome = await self._ask(call, hear=watch)
        except Stopped as error:
            is_ended = True
            self._budget.end(_reason_of(error), str(error))
        except LocalFault as error:
            is_ended = True
            self._budget.end("fault", str(error))
        finally:
            self.measured.spent += self._budget.settle(call, worst, outcome, was_sent=watch.sent is not None)
            timed = watch.given_up() if outcome is None else watch.stopped(outcome)
            # A call that was not sent because the test ended says nothing about the server.
            measured = self._plan.counts(at) and not (is_ended and timed.sent is None)
            step = self._plan.step_of(at) if self._step is None else self._step
            if measured:
                self.measured.meter.take(timed, step)
            for tell in self._on_end:
                tell(self._model, timed, step, measured=measured)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._place.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._budget.fail(error)

    async def drain(self) -> None:
        """Waits for the calls in flight up to the plan's drain time; the rest are counted as unfinished."""
        await asyncio.sleep(0)  # a task that never ran would not be counted
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._plan.limits.drain_s)
        await self.cancel()

    def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def cancel(self) -> None:
        self._cancel_tasks()
        if self._tasks:
            await asyncio.wait(self._tasks)
