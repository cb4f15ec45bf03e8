"""One timer for all requests of a channel that are under way, instead of one for each.

All have the same timeout, so they expire in the order in which they were watched, and only the oldest is.
"""

from __future__ import annotations

import asyncio
from itertools import takewhile

from .http_connection import Asker


class Deadlines(dict[Asker, float]):
    """The deadlines of requests, in seconds of the loop's time: each request fails with a TimeoutError `timeout_s`
    seconds after it was watched, unless it is removed."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Deadlines [{len(self)} of {self._timeout_s:g} s]>"

    def watch(self, asker: Asker) -> None:
        """Watches a request from now on, unless it is watched already."""
        loop = asyncio.get_running_loop()
        due = self.setdefault(asker, loop.time() + self._timeout_s)
        if self._timer is None:
            self._timer = loop.call_at(due, self._end_overdue, loop)

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for asker in [asker for asker, _ in takewhile(lambda item: item[1] <= now, self.items())]:
            del self[asker]
            # Not now: a request that fails may begin another, which would be watched in the middle of this.
            loop.call_soon(asker.failed, TimeoutError())
        self._timer = loop.call_at(next(iter(self.values())), self._end_overdue, loop) if self else None
