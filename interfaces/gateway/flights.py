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

Carry = Callable[[Hear], Coroutine[Any, Any, Outcome]]
Landed = Callable[[asyncio.Task[Outcome]], None]


class _Flight:
    """One call under way, and what was said of its answer so far."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Outcome] | None = None
        self.waiters = 0
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


class Flights:
    """`repr` tells how many are under way."""

    def __init__(self) -> None:
        self._flying: dict[Hashable, _Flight] = {}

    def __repr__(self) -> str:
        return f"<Flights [{len(self._flying)} under way, {sum(f.waiters for f in self._flying.values())} waiting]>"

    def __len__(self) -> int:
        return len(self._flying)

    def __contains__(self, key: object) -> bool:
        return key in self._flying

    async def join(
        self, key: Hashable, carry: Carry, hear: Hear | None = None, landed: Landed | None = None
    ) -> Outcome:
        """The outcome of the call with this key: of the one under way, else of `carry`, which begins now; `landed` is
        told when that one has ended, however it did, be it before its first step."""
        flight = self._flying.get(key)
        if flight is None:
            flight = self._flying[key] = _Flight()
            # No await between the look and this: nobody else begins the same.
            flight.task = asyncio.create_task(carry(flight.hear))
            flight.task.add_done_callback(lambda _: self._land(key, flight))
            if landed is not None:
                flight.task.add_done_callback(landed)
        task = flight.task
        assert task is not None
        flight.waiters += 1
        if hear is not None:
            flight.listen(hear)
        try:
            return await asyncio.shield(task)
        finally:
            flight.waiters -= 1
            if hear is not None:
                flight.leave(hear)
            if not flight.waiters and not task.done():
                # Who wants it from now on begins anew.
                self._land(key, flight)
                task.cancel()

    async def close(self) -> None:
        """End what is under way, and wait until it has ended."""
        tasks = [flight.task for flight in self._flying.values() if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _land(self, key: Hashable, flight: _Flight) -> None:
        if self._flying.get(key) is flight:
            del self._flying[key]
        if flight.task is not None and flight.task.done() and not flight.task.cancelled():
            flight.task.exception()  # known to whoever waited; if nobody did, nobody need be told
