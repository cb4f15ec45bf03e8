"""A worker's end: carries the calls that a driver hands it, by an ordinary engine, and hands their outcomes back.

Owns which calls are under way here. How one is answered is the scheduler's; which worker gets which, the driver's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ..attempts.money import CostBudget
from ..call import Call, Outcome
from ..events import Event
from ..fault import LocalFault
from ..lanes.lane_queue import LaneStopped
from ..scheduler import Scheduler
from ..shared_calls import Waiter
from .batches import Carried, Taken, given_of, packed
from .grants import Grants, Spending

# An exchange costs driver and worker some 0.7 ms each, whatever it carries: with so many outcomes that is 3 µs a call.
_ENOUGH = 256
# So long an outcome waits for others.
_LINGER_S = 0.02
# An exchange without any outcome ends after this time.
_HELD_S = 0.5
# Calls begun before the loop goes on.
_STEPS_MAX = 32


class Carrier:
    """The calls of one driver in this process. `grants`: what its driver allows `budget` to spend; None: as much as it
    likes."""

    def __init__(self, scheduler: Scheduler, budget: CostBudget, grants: Grants | None) -> None:
        self._scheduler = scheduler
        self._budget = budget
        self._grants = grants
        # Those under way, by their numbers.
        self._waiters: dict[int, Waiter] = {}
        self._taken = Taken([], [], [], [])
        # Set when an exchange that waits has waited enough.
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        scheduler.events.subscribe(self._hear)

    def __repr__(self) -> str:
        return f"<Carrier [{len(self._waiters)} calls under way]>"

    async def exchange(self, data: bytes) -> bytes:
        """Begins the calls of a `Given`, and returns what has ended since the last exchange. One that waits ends when
        another comes."""
        batch = given_of(data)
        self._due.set()
        self._due = due = asyncio.Event()
        if self._grants is not None:
            self._grants.receive(batch.grant, self._budget)
        for stop in batch.stops:
            self._scheduler.routes.of(stop.lane).lane.stop(stop.reason, stop.detail)
        if batch.halted is not None and self._scheduler.routes.halted is None:
            self._scheduler.halt(*batch.halted)
        for number in batch.left:
            if (waiter := self._waiters.pop(number, None)) is not None:
                waiter.leave()
        for place, (number, call) in enumerate(batch.calls, 1):
            self._begin(number, call)
            if place % _STEPS_MAX == 0:
                await asyncio.sleep(0)
        if batch.waits and not self._is_enough() and not (self._grants is not None and self._grants.has_news):
            with suppress(TimeoutError):
                async with asyncio.timeout(_HELD_S):
                    await due.wait()
        return packed(self._take())

    def _is_enough(self) -> bool:
        count = len(self._taken.carried) + len(self._taken.stopped)
        return count >= _ENOUGH or (count > 0 and not self._waiters)

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

    def _end(self, number: int, end: Outcome | BaseException) -> None:
        taken = self._taken
        if isinstance(end, Outcome):
            taken.carried.append(
                Carried(
                    number,
                    end.reply,
                    end.failure,
                    end.key,
                    end.cached,
                    end.attempts,
                    end.maybe_billed,
                    end.cost,
                    end.latency_ms,
                )
            )
        elif isinstance(end, LaneStopped):
            taken.stopped.append((number, end.stop))
        else:
            is_local = isinstance(end, LocalFault)
            taken.broken.append((number, str(end) if is_local else f"{type(end).__name__}: {end}", is_local))
        if self._is_enough():
            self._due.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LINGER_S, self._lingered)

    def _lingered(self) -> None:
        self._timer = None
        self._due.set()

    def _hear(self, event: Event) -> None:
        self._taken.events.append(event)

    def _take(self) -> Taken:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, self._taken = self._taken, Taken([], [], [], [])
        taken.maybe_billed = self._scheduler.maybe_billed_pending
        taken.in_flight = {lane: route.lane.in_flight for lane, route in self._scheduler.routes.lasting.items()}
        budget, grants = self._budget, self._grants
        if grants is not None:
            taken.spending = grants.report(budget)
        else:
            taken.spending = Spending(budget.own, budget.unsure, budget.at_worst)
        return taken
