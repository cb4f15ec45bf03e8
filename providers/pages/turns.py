"""One at a time for each key: who wants what another is making waits, and looks again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """Keys that nobody works on cost nothing."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, asyncio.Future[None]] = {}

    def __repr__(self) -> str:
        return f"<Turns [{len(self._taken)} taken]>"

    @asynccontextmanager
    async def at(self, key: Hashable) -> AsyncIterator[None]:
        while (other := self._taken.get(key)) is not None:
            # Waiting on it, not for it: whoever leaves must not take it from the others.
            await asyncio.wait([other])
        turn = self._taken[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._taken[key]
            turn.set_result(None)
