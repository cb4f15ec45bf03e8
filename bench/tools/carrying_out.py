"""Carries out the functions of tools, each under a time limit: synchronous ones in threads, asynchronous ones as tasks.

A thread can't be ended from outside: after its limit it is left to itself and counted. Threads are daemons, so the
process ends without them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from ...engine.fault import LocalFault

AT_WORK_MOST = 64
# A thread that only waits needs some 50 KB; with more of them something is wrong with the tool.
LEFT_MOST = 1_000
# How long a task may take to end once it is cancelled.
GRACE_S = 1.0
# These would end the loop, or a task.
_ENDS = (SystemExit, GeneratorExit, asyncio.CancelledError)


class OverTime(Exception):
    """Raised for a function that took longer than its limit, and was abandoned."""


class Workers:
    """The threads and tasks in which functions are carried out, for all items of a run."""

    def __init__(self, at_work_most: int = AT_WORK_MOST, left_most: int = LEFT_MOST) -> None:
        self.abandoned: Counter[str] = Counter()
        """How many calls were abandoned, by the tool's name."""
        self._room = asyncio.Semaphore(at_work_most)
        self._left: set[threading.Thread] = set()
        self._left_most = left_most

    def __repr__(self) -> str:
        return f"<Workers [{self.abandoned.total()} calls abandoned, {self.still_running} of them still running]>"

    @property
    def still_running(self) -> int:
        """How many threads of abandoned calls have not ended."""
        self._left = {thread for thread in self._left if thread.is_alive()}
        return len(self._left)

    async def thread(self, name: str, work: Callable[[], Any], limit_s: float) -> Any:
        """Returns what a function returns, which runs in a thread. Raises what it raises, and OverTime."""
        async with self._room:
            if self.still_running >= self._left_most:
                raise LocalFault(
                    f"{self._left_most:,} calls of tools ran over their time limit and still run, the last of {name}: "
                    f"give what the tool waits for a time limit of its own"
                )
            loop = asyncio.get_running_loop()
            end: asyncio.Future[Any] = loop.create_future()
            context = copy_context()

            def run() -> None:
                made: tuple[Any, BaseException | None]
                try:
                    made = context.run(work), None
                except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                    made = None, error
                with suppress(RuntimeError):  # the loop is closed: nobody waits
                    loop.call_soon_threadsafe(_settle, end, made)

            thread = threading.Thread(target=run, name=f"tool {name}", daemon=True)
            try:
                thread.start()
                await asyncio.wait([end], timeout=limit_s)
            finally:
                if not end.done():
                    self._left.add(thread)
            if not end.done():
                raise self._abandoned(name, limit_s)
            value, error = end.result()
        if error is not None:
            raise _plain(error)
        return value

    async def task(self, name: str, work: Awaitable[Any], limit_s: float) -> Any:
        """Returns the result of something awaitable, which is cancelled if it takes longer than its limit. Raises what
        it raises, and OverTime."""
        task = asyncio.ensure_future(_caught(work))
        try:
            await asyncio.wait([task], timeout=limit_s)
            is_over = not task.done()
        finally:
            if not task.done():
                task.cancel()
                # A function may suppress its cancellation; it is not waited for.
                await asyncio.wait([task], timeout=GRACE_S)
        if is_over:
            raise self._abandoned(name, limit_s)
        value, error = task.result()
        if error is not None:
            raise _plain(error)
        return value

    def _abandoned(self, name: str, limit_s: float) -> OverTime:
        self.abandoned[name] += 1
        return OverTime(f"{name} gave no result in {limit_s:g} s and was abandoned")


def _settle(end: asyncio.Future[Any], made: Any) -> None:
    if not end.done():
        end.set_result(made)


async def _caught(work: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await work, None
    except (Exception, *_ENDS) as error:  # noqa: BLE001 (raised where it is awaited)
        return None, error


def _plain(error: BaseException) -> BaseException:
    """Returns what a function raised as what may pass through a task."""
    if isinstance(error, (*_ENDS, StopIteration)):
        return RuntimeError(f"{type(error).__name__}: {error}".rstrip(": "))
    return error
