"""The limits for all pages of an engine, whatever their hosts: hops at once, and hops a minute.

Applied between a host's lane and its connection, so a hop that waits here has passed its lane.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...engine.endpoint import Cleared, Request, Response

Send = Callable[[Request, Cleared], Awaitable[Response]]

# With these values no sliding minute holds more than the quota, even if a start is half a second late.
_BURST_SHARE = 1 / 200
_RATE = 0.995 / 60.5


class PageLimits:
    """The limits that all hosts share: `concurrency` hops at once, and `rpm` hops a minute; None: no such limit."""

    def __init__(self, concurrency: int, rpm: float | None = None) -> None:
        self.slots = asyncio.Semaphore(concurrency)
        self.pace = None
        if rpm is not None:
            from aiolimiter import AsyncLimiter  # here, since it reads its package's metadata when it is imported

            burst = 1 + rpm * _BURST_SHARE
            self.pace = AsyncLimiter(burst, burst / (rpm * _RATE))

    async def send(self, send: Send, request: Request, cleared: Cleared) -> Response:
        """Sends a request by `send` when both limits allow it."""

        async def paced() -> None:
            if self.pace is not None:
                await self.pace.acquire()
            await cleared()

        async with self.slots:
            return await send(request, paced)
