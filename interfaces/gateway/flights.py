"""Calls under way, each carried once for all who want it, and ended when nobody does any more.

The engine joins identical calls too, but there they end with the caller that came first. Here a client that hangs up
ends a call only if it was the last to wait for it. Knows no call's content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from ...engine.call import Outcome
from ...engine.endpoint import Hear

Landed = Callable[[asyncio.Task[Outcome]], None]


class Flight:
    """One call under way, what was said of its answer so far, and its outcome, known before it is stored."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Outcome] | None = None
        self.outcome: Outcome | None = None
        self.seats: set[Seat] = set()
        self._said: list[str] = []
        self._listeners: list[Hear] = []

    def hear(self, piece: str | None) -> None:
        if piece is None:
            self._said.clear()
        else:
            self._said.append(piece)
        for listener in self._listeners:
            listener(piece)

    def listen(self, listener: Hear) -> None:
        """Whoever comes late is told what was said before."""
        self._listeners.append(listener)
        if self._said:
            listener("".join(self._said))

    def leave(self, listener: Hear) -> None:
        self._listeners.remove(listener)

    def tell(self, outcome: Outcome) -> None:
        """From now on the call goes on to its end, whoever leaves."""
        self.outcome = outcome
        for seat in tuple(self.seats):
            seat.tell(outcome)

    def ended(self, task: asyncio.Task[Outcome]) -> None:
        """Whoever has not been told yet is now."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.tell(task.result())
            return
        for seat in tuple(self.seats):
            seat.fail(error)


Carry = Callable[[Flight], Coroutine[Any, Any, Outcome]]


class Seat:
    """Somebody's place in a flight, until `leave`: once nobody has one any more, the flight ends. `told` is called at
    the instant when the outcome is there, or why there is none; it must not raise."""

    __slots__ = ("_flight", "_flights", "_hear", "_key", "_told", "_waiter")

    def __init__(
        self, flights: Flights, key: Hashable, flight: Flight, hear: Hear | None, told: Callable[[], None] | None
    ) -> None:
        self._flights = flights
        self._key = key
        self._flight = flight
        self._hear = hear
        self._told = told
        # One future a seat, with nothing between it and the flight: an answer is on its way before its commit begins.
        self._waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if flight.outcome is not None:
            self._waiter.set_result(flight.outcome)  # it is only being stored
            return
        flight.seats.add(self)
        if hear is not None:
            flight.listen(hear)

    @property
    def known(self) -> Outcome | None:
        """The outcome, where there is one by now."""
        waiter = self._waiter
        return waiter.result() if waiter.done() and not waiter.cancelled() and waiter.exception() is None else None

    async def outcome(self) -> Outcome:
        try:
            return await self._waiter
        finally:
            self.leave()

    def tell(self, outcome: Outcome) -> None:
        if not self._waiter.done():
            self._waiter.set_result(outcome)
            if self._told is not None:
                self._told()

    def fail(self, error: BaseException) -> None:
        if self._waiter.done():
            return
        self._waiter.cancel() if isinstance(error, asyncio.CancelledError) else self._waiter.set_exception(error)
        if self._told is not None:
            self._told()

    def leave(self) -> None:
        flight, waiter = self._flight, self._waiter
        if self not in flight.seats:
            return
        flight.seats.discard(self)
        if self._hear is not None:
            flight.leave(self._hear)
        if waiter.done() and not waiter.cancelled():
            waiter.exception()  # whoever leaves in the same instant never looks at it
        if not flight.seats:
            self._flights.end(self._key, flight)


class Flights:
    """`repr` tells how many are under way."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, Flight] = {}

    def __repr__(self) -> str:
        waiting = sum(len(flight.seats) for flight in self._flying.values())
        return f"<Flights [{len(self._flying)} under way, {waiting} waiting]>"

    def __len__(self) -> int:
        return len(self._flying)

    def __contains__(self, key: object) -> bool:
        return key in self._flying

    def known(self, key: Hashable) -> Outcome | None:
        """An outcome that is only being stored."""
        flight = self._flying.get(key)
        return None if flight is None else flight.outcome

    def board(
        self,
        key: Hashable,
        carry: Carry,
        hear: Hear | None = None,
        landed: Landed | None = None,
        told: Callable[[], None] | None = None,
    ) -> Seat:
        """A seat in the call with this key: in the one under way, else in `carry`, which begins now; `landed` is told
        when that one has ended, however it did, be it before its first step."""
        flight = self._flying.get(key)
        if flight is None:
            flight = self._begin(key, carry, landed)
        return Seat(self, key, flight, hear, told)

    async def join(
        self, key: Hashable, carry: Carry, hear: Hear | None = None, landed: Landed | None = None
    ) -> Outcome:
        return await self.board(key, carry, hear, landed).outcome()

    def end(self, key: Hashable, flight: Flight) -> None:
        """Nobody waits for it any more."""
        if flight.outcome is None and flight.task is not None and not flight.task.done():
            # Who wants it from now on begins anew.
            self._land(key, flight)
            flight.task.cancel()

    async def close(self) -> None:
        """End what is under way but for what is only being stored, and wait until all has ended."""
        tasks = [flight.task for flight in self._flying.values() if flight.task is not None]
        for flight in self._flying.values():
            if flight.task is not None and flight.outcome is None:
                flight.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, carry: Carry, landed: Landed | None) -> Flight:
        # No await between the look and this: nobody else begins the same.
        flight = self._flying[key] = Flight()
        task = flight.task = asyncio.get_running_loop().create_task(carry(flight))

        def ended(task: asyncio.Task[Outcome]) -> None:
            self._land(key, flight)
            flight.ended(task)

        task.add_done_callback(ended)
        if landed is not None:
            task.add_done_callback(landed)
        return flight

    def _land(self, key: Hashable, flight: Flight) -> None:
        if self._flying.get(key) is flight:
            del self._flying[key]
