"""One run over many calls, carried out by a bounded number of workers.

A lane has at most as many workers as it may have calls in flight, and begins one when a call is at hand that no worker
waits for. All draw from one lazy iterator and put what they finish into a bounded outlet. Owns their lives; how one
call is answered is the scheduler's.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Coroutine, Iterable

from .call import WEB, Call, Outcome
from .fault import LocalFault, Stop, Stopped
from .intake import Intake
from .lanes.lane_queue import LaneStopped
from .routes import is_host
from .scheduler import Scheduler
from .sink import Sink

OUTLET_SIZE = 256


async def run_calls(
    scheduler: Scheduler, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None
) -> AsyncGenerator[Outcome, None]:
    """Yields outcomes as they finish, each after it was written to the sink, if there is one. Raises Stopped at the end
    if a lane stopped and calls are left, LocalFault if our own machine failed."""
    if scheduler.halted is not None:
        if scheduler.halted[0] == "local_fault":
            raise LocalFault(scheduler.halted[1])
        raise Stopped([Stop("", *scheduler.halted)])
    run = CallRun(scheduler, calls, sink)
    scheduler.on_halt.add(run.close_intake)
    scheduler.on_end.add(run.abandon)
    try:
        async for outcome in run.outcomes():
            yield outcome
    finally:
        scheduler.on_halt.discard(run.close_intake)
        scheduler.on_end.discard(run.abandon)
        await run.end()


class CallRun:
    """One run over many calls: its workers, their iterator and the outlet of finished outcomes."""

    def __init__(self, scheduler: Scheduler, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None) -> None:
        self._scheduler = scheduler
        self._sink = sink
        self._intake = Intake(calls, _lane_of, self._begin_lane, is_host)
        # How many workers each lane has, and how many of them wait for a call.
        self._begun: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._is_reading = False
        self._outlet: deque[Outcome] = deque()
        self._news = asyncio.Event()
        self._room: deque[asyncio.Future[None]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._stops: dict[str, Stop] = {}
        self._error: BaseException | None = None

    def close_intake(self) -> None:
        self._intake.close()

    async def outcomes(self) -> AsyncIterator[Outcome]:
        await self._intake.begin()
        while True:
            # Outcomes of cached calls are journalled here, a batch at a time, before anyone sees them.
            if self._sink is not None:
                self._sink.flush()
                if self._sink.fault is not None:
                    self._scheduler.halt("local_fault", str(self._sink.fault))
            # Only those that were flushed: others may be added while the consumer handles these.
            for _ in range(len(self._outlet)):
                yield self._outlet.popleft()
            self._pass_on()
            if self._error is not None:
                self._intake.close()  # calls in flight have been paid for: they are finished before the error is raised
            if self._outlet:
                continue
            if not self._workers:
                break
            self._news.clear()
            await self._news.wait()
        if self._error is not None:
            raise self._error
        if self._sink is not None and self._sink.fault is not None:
            raise self._sink.fault
        faults = [stop for stop in self._stops.values() if stop.reason == "local_fault"]
        if faults:
            raise LocalFault(faults[0].detail)
        if self._stops:
            raise Stopped(list(self._stops.values()))

    async def abandon(self) -> None:
        """Ends the run because the engine is being closed; the consumer of its outcomes gets a RuntimeError."""
        if self._error is None:
            self._error = RuntimeError("the engine was closed during a run: what had been answered is in the cache")
        self._intake.close()
        await self.end()

    async def end(self) -> None:
        """Cancels the workers that are left, and waits until they have freed their slots."""
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            await asyncio.gather(*self._workers, return_exceptions=True)

    def _begin_lane(self, lane: str) -> None:
        """Starts one more worker of a lane, if none waits for a call, up to the lane's concurrency."""
        if is_host(lane) and not self._is_reading:
            self._is_reading = True
            self._start(self._intake.read_on(), "reader")
        if not self._waiting[lane] and self._begun[lane] < self._scheduler.route_of(lane).lane.concurrency:
            self._begun[lane] += 1
            self._start(self._work(lane), f"{lane} worker {self._begun[lane]}")

    def _start(self, work: Coroutine[None, None, None], name: str) -> None:
        worker = asyncio.create_task(work, name=name)
        self._workers.add(worker)
        worker.add_done_callback(self._worker_done)

    def _leave(self, lane: str) -> None:
        """Removes a worker that found no call. No await may come between: a call read then needs another worker."""
        self._begun[lane] -= 1
        if is_host(lane):
            if not self._begun[lane]:
                del self._begun[lane], self._waiting[lane]
                self._intake.leave(lane)
            if self._scheduler.halted is not None:
                self._stops[WEB] = Stop(WEB, *self._scheduler.halted)
        elif (stop := self._scheduler.route_of(lane).lane.stopped) is not None:
            # A halt that emptied the iterator leaves calls behind too.
            self._stops[lane] = stop

    def _worker_done(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None and self._error is None:
            self._error = error
        self._news.set()

    async def _work(self, lane: str) -> None:
        intake, scheduler, sink = self._intake, self._scheduler, self._sink
        is_passing = is_host(lane)
        most = scheduler.route_of(lane).lane.concurrency
        take_now = intake.take_kept if is_passing else intake.take_now
        while True:
            call = take_now(lane)
            if call is None:
                self._pass_on()
                if not is_passing:
                    self._waiting[lane] += 1
                    try:
                        call = await intake.take(lane)
                    finally:
                        self._waiting[lane] -= 1
                if call is None:
                    self._leave(lane)
                    return
            found = scheduler.look_up(call)
            if isinstance(found, Outcome):
                outcome = found
                if sink is not None:
                    sink.write(outcome)
            else:
                self._pass_on()
                if not is_passing and self._begun[lane] < most:
                    self._begin_lane(lane)  # this worker is busy from now on
                try:
                    outcome = await scheduler.fetch(found, sink)
                except LaneStopped as error:
                    self._stops[WEB if is_host(lane) else lane] = error.stop
                    intake.drop(lane)
                    await intake.pass_over()
                    return
            if len(self._outlet) >= OUTLET_SIZE:
                await self._wait_for_room()
            self._outlet.append(outcome)
            self._news.set()
            if is_passing:
                intake.end_passing()

    async def _wait_for_room(self) -> None:
        while len(self._outlet) >= OUTLET_SIZE:
            room = asyncio.get_running_loop().create_future()
            self._room.append(room)
            self._news.set()
            try:
                await room
            except asyncio.CancelledError:
                self._pass_on()
                raise

    def _pass_on(self) -> None:
        """Wakes one worker that waits for room. It goes on until the outlet is full again, or wakes the next before it
        waits for anything else: so cached calls need few workers, and none is forgotten."""
        while self._room and len(self._outlet) < OUTLET_SIZE:
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)
                return


def _lane_of(call: Call) -> str:
    try:
        return call.lane
    except AttributeError as error:
        raise TypeError(f"calls must be millstream.Call, got a {type(call).__name__}") from error
