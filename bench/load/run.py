"""Runs a load test from its first call to its last: an open loop that never slows down with the server, or a closed
one.

Begins each call when it is due, with a task for each call, and gives the result to the meter. Calls go through a
`SendCall` that is passed in, with its quotas and retries; so are arrivals, texts, prices and the clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from random import Random
from typing import Protocol

from msgspec import Struct

from ...engine.attempts.prices import Price
from ...engine.call import Call, Outcome
from ...engine.endpoint import Hear
from ...engine.fault import LocalFault, Stopped
from .alarm import EARLY_S, Alarm, alarm_for, fine_alarm
from .arrivals import ClosedLoop, OpenLoop, Replay
from .budget import Budget, LoadEnd, Reason
from .meter import LoadMeter
from .plan import LoadPlan
from .timing import CallTimes, Clock, Stopwatch
from .watch import ClientVerdict, ClientWatch

# No call is begun later than this after the end of the test.
LATE_MOST_S = 1.0


class SendCall(Protocol):
    """A function that sends one call to its end, such as `millstream.Engine.ask`. The engine's mode must be `live`, so
    that each call is sent."""

    async def __call__(self, call: Call, *, hear: Hear | None = None) -> Outcome: ...


class Observer(Protocol):
    """The interface of an observer of calls as they begin and end; must be quick and must not raise. `opened` comes
    first and passes the live measurements. `cost` is in dollars; `counts`: the meter counts the call too."""

    def opened(self, models: Mapping[str, ModelRun]) -> None: ...

    def began(self, model: str) -> None: ...

    def ended(self, model: str, timed: CallTimes, cost: float, *, counts: bool) -> None: ...


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


class LoadResult(Struct, frozen=True):
    """The result of one run: the measurements and the verdicts on the client by model, and why it ended (`ending`).
    `ended_s` is the second until which calls could begin, without the drain; `seconds` is the length of the measured
    part."""

    models: Mapping[str, ModelRun]
    verdicts: Mapping[str, ClientVerdict]
    ending: LoadEnd
    seconds: float
    ended_s: float


async def run_load(
    plan: LoadPlan,
    calls: Mapping[str, Iterator[Call]],
    ask: SendCall,
    *,
    prices: Mapping[str, Price | None],
    clock: Clock = time.perf_counter,
    cpu: Callable[[], float] = time.process_time,
    budget: Budget | None = None,
    observer: Observer | None = None,
    begins_s: float = 0.0,
) -> LoadResult:
    """Runs one test and returns its result. `calls` has for each model an iterator of enough calls. Raises what `ask`
    raised, except Stopped and LocalFault, which only end the test. `budget` may be passed in to end the test from
    outside; `begins_s` is passed to the meters."""
    if not calls:
        raise ValueError("a load test needs a model: 0 came, at least 1 is wanted")
    if budget is None:
        budget = Budget(plan.limits, calls, prices)
    began = clock()

    def now() -> float:
        return clock() - began

    watch = ClientWatch(now, cpu, fine_alarm() if clock is time.perf_counter else None)
    lines = {
        model: _ModelLoop(
            plan, model, queue, ask, budget, now, alarm_for(clock), observer, LoadMeter(plan.promise, begins_s=begins_s)
        )
        for model, queue in calls.items()
    }
    if observer is not None:
        observer.opened({model: line.measured for model, line in lines.items()})
    watch.begin()
    try:
        await run_together([line.run() for line in lines.values()])
        ended_s = now()
        await run_together([line.drain() for line in lines.values()])
    finally:
        await watch.end()
        for line in lines.values():
            line.alarm.close()
        for line in lines.values():
            await line.cancel()
    if budget.error is not None:
        raise budget.error
    models = {model: line.measured for model, line in lines.items()}
    verdicts = {
        model: watch.verdict(run.meter.latency, run.meter.undelayed, due=run.begun + run.unsent_late, begun=run.begun)
        for model, run in models.items()
    }
    ending = budget.ending or LoadEnd("arrivals")
    if ending.reason == "duration" or (ending.reason == "arrivals" and plan.ends_s is not None):
        ended_s = plan.ends_s or ended_s
    return LoadResult(models, verdicts, ending, plan.measured_s(ended_s), ended_s)


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
        plan: LoadPlan,
        model: str,
        calls: Iterator[Call],
        ask: SendCall,
        budget: Budget,
        clock: Clock,
        alarm: Alarm,
        observer: Observer | None,
        meter: LoadMeter,
    ) -> None:
        self._plan = plan
        self._model = model
        self._calls = calls
        self._ask = ask
        self._budget = budget
        self._clock = clock
        self._observer = observer
        self._ready: Call | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._place = asyncio.Event()
        self.alarm = alarm
        budget.on_end.append(self._place.set)
        budget.on_end.append(alarm.ring)
        budget.on_drop.append(self._cancel_tasks)
        # When the latest hold ended: calls due before then have waited for a slot.
        self._free = 0.0
        self.measured = ModelRun(meter)

    async def run(self) -> None:
        """Begins calls until no more are due or allowed."""
        if isinstance(self._plan.arrivals, ClosedLoop):
            await self._run_closed(self._plan.arrivals.in_flight)
        else:
            await self._run_open(self._plan.arrivals)

    async def _run_open(self, arrivals: OpenLoop | Replay) -> None:
        ends = self._plan.limits.duration_s
        times = arrivals.times(Random(f"{self._plan.seed} {self._model}"))
        for due in times:
            if ends is not None and due >= ends:
                await self._until(ends)
                self._budget.end("duration")
                return
            await self._until(due)
            if self._budget.over.is_set():
                return
            if len(self._tasks) >= self._plan.limits.in_flight:
                await self._until_place()
                if self._budget.over.is_set():
                    return
            if ends is not None and self._clock() > ends + LATE_MOST_S:
                self._count_unsent(due, times, ends)
                self._budget.end("duration")
                return
            if not self._begin(due):
                return

    def _count_unsent(self, due: float, times: Iterator[float], ends: float) -> None:
        """Counts this call and those due after it as never sent."""
        left = 1 + sum(1 for _ in takewhile(lambda at: at < ends, times))
        if due < self._free or len(self._tasks) >= self._plan.limits.in_flight:
            self.measured.unsent_held += left
        else:
            self.measured.unsent_late += left

    async def _run_closed(self, in_flight: int) -> None:
        ends = self._plan.limits.duration_s
        while not self._budget.over.is_set():
            if ends is not None and self._clock() >= ends:
                self._budget.end("duration")
            elif len(self._tasks) >= in_flight:
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
        ends = self._plan.limits.duration_s
        self._place.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if ends is None else max(0.0, ends + LATE_MOST_S - self._clock())):
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
        if self._observer is not None:
            self._observer.began(self._model)
        if due is not None and due < self._free:
            measured.held += 1
            measured.hold_max_s = max(measured.hold_max_s, self._free - due)
        task = asyncio.create_task(self._carry(call, due, self._free, worst))
        self._tasks.add(task)
        measured.in_flight_max = max(measured.in_flight_max, len(self._tasks))
        task.add_done_callback(self._done)
        return True

    async def _carry(self, call: Call, due: float | None, free: float, worst: float) -> None:
        watch = Stopwatch(self._clock() if due is None else due, self._clock, 0.0 if due is None else free)
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
            cost = self._budget.settle(call, worst, outcome, was_sent=watch.sent is not None)
            self.measured.spent += cost
            timed = watch.given_up() if outcome is None else watch.stopped(outcome)
            # A call that was not sent because the test ended says nothing about the server.
            counts = self._plan.counts(timed.due) and not (is_ended and timed.sent is None)
            if counts:
                self.measured.meter.take(timed, self._plan.step_of(timed.due))
            if self._observer is not None:
                self._observer.ended(self._model, timed, cost, counts=counts)

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
