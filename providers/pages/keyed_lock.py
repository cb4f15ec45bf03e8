"""A lock for each key, for work that must not be done twice at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class KeyedLock:
    """A set of locks by key. A key that is not locked uses no memory."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, asyncio.Future[None]] = {}

    def __repr__(self) -> str:
        return f"<KeyedLock [{len(self._taken)} taken]>"

    @asynccontextmanager
    async def at(self, key: Hashable) -> AsyncIterator[None]:
        while (other := self._taken.get(key)) is not None:
            # Not awaited directly: a cancelled waiter would cancel the future for all others.
            await asyncio.wait([other])
        turn = self._taken[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._taken[key]
            turn.set_result(None)
