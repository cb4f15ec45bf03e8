"""One run over many calls: workers, not tasks.

A lane has as many workers as it may have calls in flight; all draw from one lazy iterator and put what
they finish into a bounded outlet. Owns their lives; how one call is answered is the scheduler's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable

from .admission import Stop
from .call import Call, Outcome
from .fault import LocalFault, Stopped
from .group import LaneStopped
from .intake import Intake
from .scheduler import Scheduler
from .sink import Sink

OUTLET_SIZE = 256


async def run_calls(
    scheduler: Scheduler, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None
) -> AsyncIterator[Outcome]:
    """Outcomes as they finish, each written to the sink before it is seen. Raises Stopped at the end where a
    lane stopped and calls are left."""
    if scheduler.halted is not None:
        if scheduler.halted[0] == "local_fault":
            raise LocalFault(scheduler.halted[1])
        raise Stopped([Stop("", *scheduler.halted)])
    run = Run(scheduler, calls, sink)
    scheduler.on_halt.add(run.close_intake)
    try:
        async for outcome in run.outcomes():
            yield outcome
    finally:
        scheduler.on_halt.discard(run.close_intake)
        await run.end()


class Run:
    """The life of one run."""

    def __init__(self, scheduler: Scheduler, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None) -> None:
        self._scheduler = scheduler
        self._sink = sink
        self._intake = Intake(calls, lambda call: call.lane, self._begin_lane)
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
            # No more than were flushed: others may come in while the consumer looks at these.
            for _ in range(len(self._outlet)):
                yield self._outlet.popleft()
            self._pass_on()
            if self._error is not None:
                self._intake.close()  # what is in flight has been paid for: it is finished before the error is told
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

    async def end(self) -> None:
        """Cancel what still works, and wait until it has let go of its slots."""
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            await asyncio.gather(*self._workers, return_exceptions=True)

    def _begin_lane(self, model: str) -> None:
        lane = self._scheduler.route_of(model).lane
        for number in range(lane.concurrency):
            worker = asyncio.create_task(self._work(model), name=f"{model} worker {number}")
            self._workers.add(worker)
            worker.add_done_callback(self._worker_done)

    def _worker_done(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None and self._error is None:
            self._error = error
        self._news.set()

    async def _work(self, model: str) -> None:
        intake, scheduler, sink = self._intake, self._scheduler, self._sink
        while True:
            call = intake.take_now(model)
            if call is None:
                self._pass_on()
                call = await intake.take(model)
                if call is None:
                    self._note_stop(model)
                    return
            found = scheduler.look_up(call)
            if isinstance(found, Outcome):
                outcome = found
                if sink is not None:
                    sink.write(outcome)
            else:
                self._pass_on()
                try:
                    outcome = await scheduler.fetch(found, sink)
                except LaneStopped as error:
                    self._stops[model] = error.stop
                    intake.drop(model)
                    await intake.pass_over()
                    return
            if len(self._outlet) >= OUTLET_SIZE:
                await self._wait_for_room()
            self._outlet.append(outcome)
            self._news.set()

    def _note_stop(self, model: str) -> None:
        """A halt that emptied the iterator leaves calls behind too."""
        stop = self._scheduler.route_of(model).lane.stopped
        if stop is not None:
            self._stops[model] = stop

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
        """Wake one worker that waits for room. Whoever was woken goes on until the outlet is full again, or passes on
        before it waits for anything else: so cached calls go through few hands, and no worker is forgotten."""
        while self._room and len(self._outlet) < OUTLET_SIZE:
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)
                return
