"""One timer for all answers that a channel waits for, instead of one `asyncio.timeout` for each.

All have the same timeout, so they expire in the order of their requests, and only the oldest is watched.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Deadlines:
    """The deadlines of futures: each gets a TimeoutError `timeout_s` seconds after it was watched, unless forgotten."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._due: dict[asyncio.Future[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Deadlines [{len(self._due)} of {self._timeout_s:g} s]>"

    def watch(self, wanted: asyncio.Future[Any]) -> None:
        loop = wanted.get_loop()
        due = self._due[wanted] = loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = loop.call_at(due, self._end_overdue, loop)

    def forget(self, wanted: asyncio.Future[Any]) -> None:
        """Stops watching a future whose answer has arrived or is no longer needed."""
        self._due.pop(wanted, None)

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        while self._due:
            wanted, due = next(iter(self._due.items()))
            if due > now:
                self._timer = loop.call_at(due, self._end_overdue, loop)
                return
            del self._due[wanted]
            # An answer that arrived at this very moment is already set, though its task has not run yet.
            if not wanted.done():
                wanted.set_exception(TimeoutError())
