"""All flights of an engine: identical calls that are under way at the same time are one flight, for all who wait.

Owns which flights there are, and what they share. What becomes of one: flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from random import Random

from msgspec import Struct, field

from .attempts.payer import NotPaid
from .attempts.retry import RetryPolicy
from .call import Outcome
from .call_lookup import CallLookup
from .claims import Claims
from .events import Events
from .fault import StopReason
from .keeping import Keeper
from .lanes.lane_queue import LaneStopped
from .routes import Routes
from .shared_calls import SharedCall, Waiter


class Flights(Struct, eq=False, kw_only=True):
    """The flights of one engine, and the parts of it that they use. `make` makes a flight by its key, for its first
    waiter; `out` counts the attempts whose answer has not arrived; `under_way` has each flight by its key, and while it
    waits for its payer, by the payer's name and that key."""

    make: Callable[[Flights, Hashable, Waiter], SharedCall]
    ways: Routes
    lookup: CallLookup
    keeper: Keeper
    claims: Claims
    policy: RetryPolicy
    events: Events
    random: Random
    halt: Callable[[StopReason, str], None]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    out: int = 0
    maybe_billed_pending: int = 0
    under_way: dict[Hashable, SharedCall] = field(default_factory=dict)

    def __repr__(self) -> str:
        waiting = sum(len(flight.waiters) for flight in self._flights())
        return f"<Flights [{len(self)} under way, {waiting} waiting]>"

    def __len__(self) -> int:
        return len(self._flights())

    def _flights(self) -> set[SharedCall]:
        # A flight that its payer has admitted stands under two keys.
        return set(self.under_way.values())

    def begin(self, waiter: Waiter) -> None:
        """Adds a waiter to the flight of the identical call, else begins one. Tells it nothing before it returns."""
        pending = waiter.pending
        key: Hashable = pending.key
        flight, payer = self.under_way.get(key), pending.payer
        if flight is None and payer is not None and payer.is_limited:
            key = payer.name, pending.key
            flight = self.under_way.get(key)
        waiter.is_joining = flight is not None
        if flight is not None:
            flight.add(waiter)
            return
        flight = waiter.call = self.under_way[key] = self.make(self, key, waiter)
        if key is pending.key:
            self._open(flight)
        flight.begin()

    def open_to_all(self, flight: SharedCall) -> bool:
        """Lets identical calls of any payer join a flight that its payer has admitted. Returns False if another payer's
        is under way already; then all waiters have gone over to that one."""
        key = flight.pending.key
        other = self.under_way.get(key)
        if other is None:
            self.under_way[key] = flight
            self._open(flight)
            return True
        waiters, flight.waiters = flight.waiters, []
        for waiter in waiters:
            waiter.is_joining = True
            other.add(waiter)
        return False

    @staticmethod
    def _open(flight: SharedCall) -> None:
        # A route that is in use is not forgotten.
        flight.is_open = True
        flight.pending.route.under_way += 1

    def forget(self, flight: SharedCall) -> None:
        for key in (flight.key, flight.pending.key):
            if self.under_way.get(key) is flight:
                del self.under_way[key]
        flight.pending.route.under_way -= flight.is_open

    def tell(self, flight: SharedCall, end: Outcome | BaseException | None) -> None:
        """Passes the end of a flight to those who wait for it. Who waited at the expense of another payer, or by a lane
        that has stopped while its own has not, begins anew."""
        payer, route = flight.pending.payer, flight.pending.route
        waiters, flight.waiters = flight.waiters, []
        for waiter in waiters:
            if isinstance(end, Outcome):
                waiter.resolve(end)
            elif isinstance(end, NotPaid) and payer is not None:
                own = waiter.pending.payer
                if own is not None and own.name == payer.name:
                    waiter.fail(end.why)
                else:
                    self.begin(waiter)
            elif isinstance(end, LaneStopped) and waiter.pending.route is not route:
                self.begin(waiter)
            elif end is not None:
                waiter.fail(end)
        flight.set_over()

    async def close(self) -> None:
        """Ends the flights, except those that are only being stored, and waits until all are over."""
        for flight in self._flights():
            if flight.outcome is None:
                flight.abort()
        for flight in self._flights():
            await flight.until_over()
