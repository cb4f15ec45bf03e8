"""One timer for all answers that a channel waits for, where `asyncio.timeout` sets and drops one for each.

All may take equally long, so they run out in the order in which they were asked for and the oldest alone is watched.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Deadlines:
    """Ends with TimeoutError what is watched for `timeout_s` and not forgotten before."""

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
        """It has come, or nobody waits for it any more."""
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
            # What came in the same instant is there, and whoever waits has yet to see it.
            if not wanted.done():
                wanted.set_exception(TimeoutError())
