"""A server of load tests in the loop's own time: its latency law is known, and when each call came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from millstream.engine.call import Call, Failure, FailureKind, Outcome, Reply, Usage
from millstream.engine.endpoint import Hear


class LoadServer:
    """Answers after `latency_s`, in `pieces` of text `gap_s` apart where the call is streamed. While `stalls` (from,
    until) it begins no answer. With `places` it works on so many calls at once. `fails` names a failure by the number
    of the call. `says`, `finish`: an answer's text and finish reason."""

    def __init__(
        self,
        latency_s: Callable[[], float],
        *,
        pieces: int = 1,
        gap_s: float = 0.0,
        stalls: tuple[float, float] | None = None,
        places: int | None = None,
        fails: Callable[[int], FailureKind | None] = lambda number: None,
        cost: float | None = None,
        says: str = "A",
        finish: str | None = "stop",
    ) -> None:
        self._latency_s = latency_s
        self._pieces = pieces
        self._gap_s = gap_s
        self._stalls = stalls
        self._places = None if places is None else asyncio.Semaphore(places)
        self._fails = fails
        self._cost = cost
        self._says = says
        self._finish = finish
        self.arrivals: list[float] = []
        self.calls: list[Call] = []
        self.in_flight = 0
        self.in_flight_max = 0

    async def ask(self, call: Call, *, hear: Hear | None = None) -> Outcome:
        loop = asyncio.get_running_loop()
        number = len(self.arrivals)
        self.arrivals.append(loop.time())
        self.calls.append(call)
        assert hear is not None
        hear(None)
        began = loop.time()
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            if self._places is None:
                await self._serve(call, hear)
            else:
                async with self._places:
                    await self._serve(call, hear)
        finally:
            self.in_flight -= 1
        took_ms = 1000 * (loop.time() - began)
        if (kind := self._fails(number)) is not None:
            return Outcome(call, failure=Failure(kind, "as it was told"), attempts=1, latency_ms=took_ms)
        usage = Usage(10, self._pieces)
        return Outcome(
            call, reply=Reply(self._says, usage, self._finish), attempts=1, cost=self._cost, latency_ms=took_ms
        )

    async def _serve(self, call: Call, hear: Hear) -> None:
        now = asyncio.get_running_loop().time()
        if self._stalls is not None and self._stalls[0] <= now < self._stalls[1]:
            await asyncio.sleep(self._stalls[1] - now)
        await asyncio.sleep(self._latency_s())
        if call.stream:
            for number in range(self._pieces):
                if number:
                    await asyncio.sleep(self._gap_s)
                if self._says:
                    hear(self._says)
