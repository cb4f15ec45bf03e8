"""One run over many calls, drawn from one lazy iterator as far as their lanes and the outlet have room.

Owns what is read ahead, how many calls of each lane are in work, and the outlet of finished outcomes. No call has a
task: a stored answer goes into the outlet at once, that of a call that is sent by its waiter. How one call is answered
is the scheduler's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextvars import copy_context

from msgspec import Struct, field

from .call import WEB, Call, Outcome
from .call_lookup import PendingCall
from .fault import LocalFault, Stop, Stopped
from .lanes.lane_queue import LaneStopped
from .scheduler import Scheduler
from .shared_calls import Waiter
from .sink import Sink

OUTLET_SIZE = 256
# Calls of one lane that are read ahead.
LOOK_AHEAD = 256
# Pages in work: each may be of another host, in whose lane it waits.
PAGES_MAX = 1024
# An endless iterator of a stopped lane's calls must come to an end too.
PASSED_OVER_MAX = 1_000_000
# Calls read and begun before the loop goes on.
STEPS_MAX = 1024


async def run_calls(
    scheduler: Scheduler, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None
) -> AsyncGenerator[Outcome, None]:
    """Yields outcomes as they finish, each after it was written to the sink, if there is one. Raises Stopped at the end
    if a lane stopped and calls are left, LocalFault if our own machine failed."""
    run = CallRun(scheduler, calls, sink)
    if scheduler.routes.halted is not None:
        run.close()
    scheduler.on_halt.add(run.close)
    scheduler.on_widen.add(run.widen)
    scheduler.on_end.add(run.abandon)
    try:
        while count := await run.batch():
            for _ in range(count):
                yield run.outlet.popleft()
        run.check_end()
    finally:
        scheduler.on_halt.discard(run.close)
        scheduler.on_widen.discard(run.widen)
        scheduler.on_end.discard(run.abandon)
        await run.end()


class RunLane(Struct, eq=False):
    """One lane of a run: its calls that were read `ahead`, and how many are in work, `most` at once, which may grow
    (`grows`). All web hosts together are one."""

    name: str
    most: int
    grows: bool = False
    in_work: int = 0
    ahead: deque[Call] = field(default_factory=deque)


class CallRun:
    """One run over many calls. `outlet` has the outcomes that the consumer has not taken yet."""

    def __init__(self, scheduler: Scheduler, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None) -> None:
        self.outlet: deque[Outcome] = deque()
        self._scheduler = scheduler
        self._sink = sink
        # Those that have not stopped.
        self._lanes: dict[str, RunLane] = {}
        self._stops: dict[str, Stop] = {}
        # How many lanes have no room; calls passed over, one after another.
        self._busy = self._passed_over = 0
        # Lanes that may have both room and calls.
        self._ready: deque[RunLane] = deque()
        # The look-ahead that took the latest call: no other one can be full, since nothing is read while one is.
        self._filled: deque[Call] = deque()
        self._waiters: dict[Waiter, RunLane] = {}
        self._error: BaseException | None = None
        # Reading has ended; at the iterator's end; calls that were read have been dropped.
        self._is_exhausted = self._is_read = self._is_cut = False
        self._is_over = self._is_due = False
        # Iterator and sink run in the consumer's context, also when another's call ends.
        self._context = copy_context()
        # Set after each turn of the pump: consumer and reader look whether there is something for them.
        self._changed = asyncio.Event()
        self._iterator = None if isinstance(calls, AsyncIterable) else iter(calls)
        self._reader = asyncio.create_task(self._read(calls)) if isinstance(calls, AsyncIterable) else None

    def __repr__(self) -> str:
        ahead = sum(len(lane.ahead) for lane in self._lanes.values())
        state = f"{len(self._waiters)} in work, {ahead} read ahead, {len(self.outlet)} finished"
        return f"<CallRun [{len(self._lanes)} lanes, {len(self._stops)} stopped, {state}]>"

    async def batch(self) -> int:
        """Waits for outcomes, and returns how many may be seen. 0: the run has ended."""
        self._pump()
        if self.outlet:
            await asyncio.sleep(0)  # cached calls without end must not hold up the loop
        await self._until(lambda: bool(self.outlet))
        # Outcomes of cached calls are journalled here, a batch at a time, before anyone sees them. Others may be added
        # to the outlet while the consumer handles these.
        if self._sink is not None:
            try:
                self._sink.flush()
            except BaseException as error:  # noqa: BLE001 (raised to the consumer, by check_end)
                self._break(error)
                await self._until(lambda: False)
                return 0
            if self._sink.fault is not None:
                self._error = self._error or self._sink.fault
                self._scheduler.halt("local_fault", str(self._sink.fault))
        return len(self.outlet)

    async def _until(self, is_reached: Callable[[], bool]) -> None:
        """Waits until something is reached, or the run is over."""
        while not (self._is_over or is_reached()):
            self._changed.clear()
            await self._changed.wait()

    def check_end(self) -> None:
        """Raises what ended the run before each call had its outcome."""
        if self._error is not None:
            raise self._error
        stops, halted, routes = self._stops, self._scheduler.routes.halted, self._scheduler.routes.lasting
        if halted is not None and halted[0] != "local_fault" and not (stops or self._is_cut) and self._is_at_end():
            return
        # What the iterator still had for lanes that have stopped by now is pending.
        for name in self._lanes:
            if name in routes and (stop := routes[name].lane.stopped) is not None:
                stops[name] = stop
            elif name == WEB and halted is not None:
                stops[name] = Stop(name, *halted)
        if halted is not None and not stops:
            stops[""] = Stop("", *halted)
        for stop in stops.values():
            if stop.reason == "local_fault":
                raise LocalFault(stop.detail)
        if stops:
            raise Stopped(list(stops.values()))

    def close(self) -> None:
        """Begins no more calls, those read ahead included; those in flight go on."""
        self._is_exhausted = True
        for lane in self._lanes.values():
            self._is_cut |= bool(lane.ahead)
            lane.ahead.clear()
        if self._reader is not None:
            self._reader.cancel()
        self._pump_soon()

    def widen(self) -> None:
        """Looks how many calls of each lane may be in work from now on."""
        for lane in self._lanes.values():
            lane.grows = lane.name != WEB
            self._ready.append(lane)
        self._pump_soon()

    async def abandon(self) -> None:
        """Ends the run because the engine is being closed; the consumer of its outcomes gets a RuntimeError."""
        self._break(RuntimeError("the engine was closed during a run: what had been answered is in the cache"))
        await self.end()

    async def end(self) -> None:
        """Leaves the calls in flight, and waits until they have freed their slots."""
        self.close()
        calls = [(waiter, waiter.call) for waiter in self._waiters if waiter.call is not None]
        self._waiters.clear()
        for waiter, call in calls:
            call.remove(waiter)
        for _, call in calls:
            await call.wait_until_free()
        if self._reader is not None:
            await asyncio.wait([self._reader])

    def _end_call(self, waiter: Waiter) -> None:
        """Takes the end of a call, unless the run has left it."""
        lane = self._waiters.pop(waiter, None)
        if lane is None:
            return
        end = waiter.ended
        assert end is not None
        if isinstance(end, Outcome):
            try:
                if waiter.is_joining:
                    self._context.copy().run(self._scheduler.note_joined, end, self._sink)
                self.outlet.append(end)
            except BaseException as error:  # noqa: BLE001 (the sink's: raised to the consumer)
                self._break(error)
        elif isinstance(end, LaneStopped):
            # Its calls must never block another lane's.
            self._stops[lane.name] = end.stop
            self._lanes.pop(lane.name, None)
            lane.ahead.clear()
        else:
            self._break(end)
        self._busy -= lane.in_work == lane.most
        lane.in_work -= 1
        self._ready.append(lane)
        if not self._is_due:
            self._pump_soon()

    def _break(self, error: BaseException) -> None:
        """Ends the run with an error, which is raised when the calls in flight are finished: they are paid for."""
        self._error = self._error or error
        self.close()

    def _pump_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._pump, context=self._context)

    def _pump(self) -> None:
        """Reads and begins calls as far as there is room for them, then lets the consumer go on."""
        self._is_due = False
        ready = self._ready
        try:
            for _ in range(STEPS_MAX):
                if ready and len(self.outlet) < OUTLET_SIZE:
                    lane = ready[0]
                    if lane.ahead and lane.in_work < lane.most:
                        self._begin(lane, lane.ahead.popleft())
                    else:
                        ready.popleft()
                        if lane.grows:
                            self._widen(lane)
                elif self._iterator is not None and self._may_read():
                    self._keep(next(self._iterator, None))
                else:
                    break
            else:
                self._pump_soon()
        except BaseException as error:  # noqa: BLE001 (raised to the consumer)
            self._break(error)
        if self._is_exhausted and not (self._waiters or ready or self._is_due or self._is_over):
            self._is_over = True
        self._changed.set()

    def _widen(self, lane: RunLane) -> None:
        """Lets a lane have more calls in work if more of them may be in flight by now."""
        most = self._scheduler.in_work_most(lane.name)
        if most > lane.most == lane.in_work:
            self._busy -= 1
            lane.most = most
            self._ready.append(lane)

    def _is_at_end(self) -> bool:
        """Whether no call is left: one more shows. Of an async iterator nobody can say when that one comes."""
        return self._is_read or (self._iterator is not None and next(self._iterator, None) is None)

    def _may_read(self) -> bool:
        """Whether one more call may be read: for a lane with room, or because all lanes have stopped."""
        return (
            not self._is_exhausted
            and len(self.outlet) < OUTLET_SIZE
            and len(self._filled) < LOOK_AHEAD
            and (self._busy < len(self._lanes) or not self._lanes)
        )

    async def _read(self, calls: AsyncIterable[Call]) -> None:
        """Reads the calls of an async iterator, each when the pump wants one."""
        try:
            async for call in calls:
                if self._is_exhausted:
                    break
                self._keep(call)
                self._pump_soon()
                await asyncio.sleep(0)  # the iterator may never let the loop go on
                await self._until(self._may_read)
            else:
                self._keep(None)
        except BaseException as error:  # noqa: BLE001 (raised to the consumer)
            if not self._is_exhausted:
                self._break(error)
        self._pump_soon()

    def _keep(self, call: Call | None) -> None:
        """Adds a call that was read to those of its lane. None: there are no more."""
        if call is None:
            self._is_exhausted = self._is_read = True
            return
        if not isinstance(call, Call):
            raise TypeError(f"calls must be millstream.Call, got a {type(call).__name__}")
        name = call.model
        if name in self._stops:
            self._passed_over += 1
            self._is_exhausted |= self._passed_over >= PASSED_OVER_MAX and not self._lanes
            return
        self._passed_over = 0
        lane = self._lanes.get(name)
        if lane is None:
            most = PAGES_MAX if name == WEB else self._scheduler.in_work_most(name)
            grows = name != WEB and self._scheduler.routes.of(name).lane.grows
            lane = self._lanes[name] = RunLane(name, most, grows)
        lane.ahead.append(call)
        self._filled = lane.ahead
        self._ready.append(lane)

    def _begin(self, lane: RunLane, call: Call) -> None:
        result = self._scheduler.look_up(call)
        if isinstance(result, PendingCall):
            lane.in_work += 1
            self._busy += lane.in_work == lane.most
            waiter = Waiter(result, self._end_call, self._sink)
            self._waiters[waiter] = lane
            self._scheduler.begin(waiter)
            return
        if self._sink is not None:
            self._sink.write(result)
        self.outlet.append(result)
