"""The limits for all pages of an engine, whatever their hosts: hops at once, and hops a minute.

Applied between a host's lane and the endpoint, so a hop that waits here has passed its lane.
"""

from __future__ import annotations

import asyncio

from aiolimiter import AsyncLimiter

from ...engine.call import Call, Reply
from ...engine.endpoint import AwaitingEndpoint, Cleared, Fault, Request, Response
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


class HostEndpoint(AwaitingEndpoint):
    """The endpoint for one host's pages, which obeys the shared limits."""

    def __init__(self, endpoint: AwaitingEndpoint, together: PageLimits) -> None:
        self._endpoint = endpoint
        self._together = together

    def __repr__(self) -> str:
        return f"<HostEndpoint over {self._endpoint}>"

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    def encode(self, call: Call) -> Request:
        return self._endpoint.encode(call)

    async def send(self, request: Request, cleared: Cleared) -> Response:
        async def paced() -> None:
            if self._together.pace is not None:
                await self._together.pace.acquire()
            await cleared()

        async with self._together.slots:
            return await self._endpoint.send(request, paced)

    def decode(self, response: Response) -> Reply | Fault:
        return self._endpoint.decode(response)

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return self._endpoint.limits(response)
