"""A worker's end: carries the calls that a driver hands it, by an ordinary engine, and hands their outcomes back.

Owns which calls are under way here. How one is answered is the scheduler's; which worker gets which, the driver's.
"""

from __future__ import annotations

import asyncio
import pickle
from contextlib import suppress

from msgspec import structs

from ..call import Call, Outcome
from ..fault import LocalFault, Stop
from ..lanes.lane_queue import LaneStopped
from ..scheduler import Scheduler
from ..shared_calls import Waiter
from .batches import NO_CALL, Given, Taken
from .grants import Grants

# A batch costs driver and worker some 0.1 ms each, whatever it holds: with so many outcomes that is 0.5 us a call.
_ENOUGH = 256
# So long an outcome waits for others.
_LINGER_S = 0.02
# A batch without any outcome goes after this time.
_HELD_S = 0.5
# Calls begun before the loop goes on.
_STEPS_MAX = 32


class Carrier:
    """The calls of one driver in this process. `grants`: what its driver allows it to spend."""

    def __init__(self, scheduler: Scheduler, grants: Grants) -> None:
        self._scheduler = scheduler
        self._grants = grants
        # Those under way, by their numbers.
        self._waiters: dict[int, Waiter] = {}
        self._taken = Taken()
        # Set when what has ended is worth a batch.
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        scheduler.events.subscribe(lambda event: self._taken.events.append(event))

    def __repr__(self) -> str:
        return f"<Carrier [{len(self._waiters)} calls under way]>"

    async def receive(self, data: bytes) -> None:
        """Begins the calls of a `Given`."""
        batch: Given = pickle.loads(data)
        self._grants.receive(batch.grant)
        for stop in batch.stops:
            if stop.lane:
                self._scheduler.routes.of(stop.lane).lane.stop(stop.reason, stop.detail)
            elif self._scheduler.routes.halted is None:
                self._scheduler.halt(stop.reason, stop.detail)
        for number in batch.left:
            if (waiter := self._waiters.pop(number, None)) is not None:
                waiter.leave()
        for place, (number, call) in enumerate(batch.calls, 1):
            self._begin(number, call)
            if place % _STEPS_MAX == 0:
                await asyncio.sleep(0)
        if self._grants.has_news:
            self._due.set()

    async def taken(self) -> bytes:
        """Returns what has ended since the last time, as a `Taken`, when it is worth a batch."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_HELD_S):
                await self._due.wait()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, self._taken = self._taken, Taken()
        taken.maybe_billed = self._scheduler.maybe_billed_pending
        taken.in_flight = {lane: route.lane.in_flight for lane, route in self._scheduler.routes.lasting.items()}
        taken.spending = self._grants.report()
        return pickle.dumps(taken, pickle.HIGHEST_PROTOCOL)

    def _begin(self, number: int, call: Call) -> None:
        try:
            result = self._scheduler.look_up(call)
            if isinstance(result, Outcome):
                self._end(number, result)
                return
            waiter = self._waiters[number] = Waiter(result, lambda waiter: self._ended(number, waiter))
            self._scheduler.begin(waiter)
        except Exception as error:  # noqa: BLE001 (raised where the call is waited for)
            self._end(number, error)

    def _ended(self, number: int, waiter: Waiter) -> None:
        if self._waiters.pop(number, None) is None or waiter.ended is None:
            return  # the driver has left it
        if waiter.is_joining and isinstance(waiter.ended, Outcome):
            self._scheduler.note_joined(waiter.ended, None)
        self._end(number, waiter.ended)

    def _end(self, number: int, end: Outcome | Stop | BaseException) -> None:
        if isinstance(end, Outcome):
            end = structs.replace(end, call=NO_CALL)
        elif isinstance(end, LaneStopped):
            end = end.stop
        elif not isinstance(end, LocalFault):
            end = RuntimeError(f"{type(end).__name__}: {end}")
        self._taken.ended.append((number, end))
        if len(self._taken.ended) >= _ENOUGH or not self._waiters:
            self._due.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LINGER_S, self._due.set)
