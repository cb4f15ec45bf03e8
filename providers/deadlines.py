"""One timer for all calls of a channel, where `asyncio.timeout` sets and drops one for each.

All have the same length, so they run out in the order in which they began and the oldest alone is watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlines:
    """Ends what takes longer than `timeout_s` with TimeoutError, as `asyncio.timeout` does."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._due: dict[asyncio.Task[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Deadlines [{len(self._due)} of {self._timeout_s:g} s]>"

    async def within(self, work: Awaitable[T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        due = self._due[task] = loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = loop.call_at(due, self._end_overdue, loop)
        try:
            return await work
        except asyncio.CancelledError as error:
            # Gone from the table: cancelled by us. Whoever else cancelled it as well goes first.
            if task not in self._due and task.uncancel() == 0:
                raise TimeoutError from error
            raise
        finally:
            self._due.pop(task, None)

    def _end_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        # A task is in the table only while it is inside `within`, so its cancellation is raised there.
        self._timer = None
        now = loop.time()
        while self._due:
            task, due = next(iter(self._due.items()))
            if due > now:
                self._timer = loop.call_at(due, self._end_overdue, loop)
                return
            del self._due[task]
            task.cancel()
