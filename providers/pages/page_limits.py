"""The limits for all pages of an engine, whatever their hosts: hops at once, and hops a minute.

Applied between a host's lane and the endpoint, so a hop that waits here has passed its lane. Waiting can bring two hops
to one host closer together, so the pause between them is enforced here again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiolimiter import AsyncLimiter

from ...engine.call import Call, Reply
from ...engine.endpoint import Endpoint, Fault, Request, Response
from ...engine.limits import Limit

# With these values no sliding minute holds more than the quota, even if a start is half a second late.
_BURST_SHARE = 1 / 200
_RATE = 0.995 / 60.5


class PageLimits:
    """The limits that all hosts share: `concurrency` hops at once, and `rpm` hops a minute; None: no such limit."""

    def __init__(self, concurrency: int, rpm: float | None = None) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self.pace: AsyncLimiter | None = None
        if rpm is not None:
            burst = 1 + rpm * _BURST_SHARE
            self.pace = AsyncLimiter(burst, burst / (rpm * _RATE))


class HostEndpoint:
    """The endpoint for one host's pages, which obeys the shared limits. `spacing_s` returns the seconds that the lane
    at present leaves between two hops."""

    def __init__(self, endpoint: Endpoint, together: PageLimits, spacing_s: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._together = together
        self._spacing_s = spacing_s
        self._next_at = float("-inf")

    def __repr__(self) -> str:
        return f"<HostEndpoint over {self._endpoint}>"

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    def encode(self, call: Call) -> Request:
        return self._endpoint.encode(call)

    async def send(self, request: Request) -> Response:
        async with self._together.slots:
            if self._together.pace is not None:
                await self._together.pace.acquire()
            loop = asyncio.get_running_loop()
            wait_s = self._next_at - loop.time()
            self._next_at = max(self._next_at, loop.time()) + self._spacing_s()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            return await self._endpoint.send(request)

    def decode(self, response: Response) -> Reply | Fault:
        return self._endpoint.decode(response)

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return self._endpoint.limits(response)
