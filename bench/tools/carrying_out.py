"""Carries out tools, each under a time limit: synchronous functions in threads, everything else in tasks.

Every call has a result: text or images, as long as a model's context bears it.
A thread can't be ended from outside: after its limit it is left to itself and counted. Threads are daemons, so the
process ends without them.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from inspect import isawaitable
from typing import Any

import msgspec

from ...engine.content import Image, ToolResult
from ...engine.fault import LocalFault, Stopped

TIME_LIMIT_S = 60.0
AT_WORK_MOST = 64
# A thread that only waits needs some 50 KB; with more of them something is wrong with the tool.
LEFT_MOST = 1_000
# How long a task may take to end once it is cancelled.
GRACE_S = 1.0
RESULT_CHARS_MAX = 50_000
_ERROR_CHARS_MAX = 2_000


class Workers:
    """The threads and tasks in which tools are carried out, for all items of a run."""

    def __init__(
        self, limit_s: float = TIME_LIMIT_S, *, at_work_most: int = AT_WORK_MOST, left_most: int = LEFT_MOST
    ) -> None:
        self.limit_s = limit_s
        self._abandoned = Counter[str]()
        self._raised = Counter[str]()
        self._raised_first: dict[str, Any] = {}
        self._room = asyncio.Semaphore(at_work_most)
        self._left: set[threading.Thread] = set()
        self._left_most = left_most

    def __repr__(self) -> str:
        return f"<Workers [{self._abandoned.total()} calls abandoned, {self.still_running} of them still running]>"

    @property
    def still_running(self) -> int:
        """How many threads of abandoned calls have not ended."""
        self._left = {thread for thread in self._left if thread.is_alive()}
        return len(self._left)

    async def in_thread(self, name: str, function: Callable[[], Any]) -> ToolResult:
        """Returns the result of a function that is carried out in a thread, once there is room for one."""
        async with self._room:
            if self.still_running >= self._left_most:
                raise LocalFault(
                    f"{self._left_most:,} calls of tools ran over their time limit and still run, the last of {name}: "
                    f"give what the tool waits for a time limit of its own"
                )
            return await self.awaited(name, partial(self._in_thread, name, function))

    async def awaited(self, name: str, function: Callable[[], Awaitable[Any]]) -> ToolResult:
        """Returns the result of a function that is awaited: what it raises, and that it took longer than the limit and
        was cancelled, are results, too."""
        task = asyncio.ensure_future(caught(function()))
        try:
            await asyncio.wait([task], timeout=self.limit_s)
            is_over = not task.done()
        finally:
            if not task.done():
                task.cancel()
                # A function may suppress its cancellation; it is not waited for.
                await asyncio.wait([task], timeout=GRACE_S)
        if is_over:
            self._abandoned[name] += 1
            return failed(name, f"{name} gave no result in {self.limit_s:g} s and was abandoned")
        value, error = task.result()
        if error is None:
            return result_of(name, value)
        if isinstance(error, SystemExit | GeneratorExit | asyncio.CancelledError):
            # These would end the loop, or a task.
            error = RuntimeError(f"{type(error).__name__}: {error}".removesuffix(": "))
        if isinstance(error, Stopped | LocalFault) or not isinstance(error, Exception):
            raise error
        result = failed(name, error)
        self._raised[name] += 1
        self._raised_first.setdefault(name, result.content)
        return result

    def remarks(self) -> Iterator[str]:
        """Yields how many calls were abandoned or raised an exception: models read the exceptions, and may seem worse
        than they are."""
        if self._abandoned:
            names = ", ".join(f"{name} {count:,}" for name, count in self._abandoned.items())
            running = f"; {count:,} of them still run in this process" if (count := self.still_running) else ""
            yield f"calls of tools that ran over their limit of {self.limit_s:g} s and were abandoned: {names}{running}"
        for name, count in self._raised.items():
            first = f"the first {self._raised_first[name]}"
            yield f"the tool {name} raised an exception {count:,} times, which models read: {first}"

    async def _in_thread(self, name: str, function: Callable[[], Any]) -> Any:
        context, end = copy_context(), Future[tuple[Any, BaseException | None]]()
        end.set_running_or_notify_cancel()  # nobody can cancel it from now on

        def run() -> None:
            try:
                value = context.run(function)
                end.set_result((value if isawaitable(value) else result_of(name, value), None))
            except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                end.set_result((None, error))

        thread = threading.Thread(target=run, name=f"tool {name}", daemon=True)
        thread.start()
        try:
            value, error = await asyncio.wrap_future(end)
        except asyncio.CancelledError:
            self._left.add(thread)
            raise
        if error is not None:
            raise error
        return await value if isawaitable(value) else value


async def caught(work: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Returns what somebody else's code gives, or what it raises: its own end must not be that of a task."""
    try:
        return await work, None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (a border: the caller raises it, or not)
        return None, error


def result_of(name: str, value: Any) -> ToolResult:
    """Returns a value as a result: text as it is, images, anything else as JSON or, if it has none, as `str` shows it.
    What is longer than RESULT_CHARS_MAX is cut, and says so."""
    if isinstance(value, ToolResult):
        return value
    has_images = isinstance(value, tuple | list) and any(isinstance(each, Image) for each in value)
    left, parts = RESULT_CHARS_MAX, []
    for part in value if has_images else (value,):
        if not isinstance(part, Image):
            text = _text_of(part)
            part, left = _cut(text, left), max(0, left - len(text))
        parts.append(part)
    return ToolResult("", parts[0] if isinstance(parts[0], str) and not has_images else tuple(parts), name)


def failed(name: str, reason: str | BaseException) -> ToolResult:
    """Returns the result of a tool that failed, with the reason or the exception that it raised."""
    if isinstance(reason, BaseException):
        try:
            message = str(reason)
        except Exception:  # noqa: BLE001 (an author's exception may raise anything)
            message = ""
        reason = f"{type(reason).__name__}: {message}".removesuffix(": ")
    return ToolResult("", _cut(reason, _ERROR_CHARS_MAX), name, is_error=True)


def _cut(text: str, most: int) -> str:
    """Returns a text that JSON can hold, with no more than `most` characters and a sentence on the others."""
    if len(text) > most:
        text = f"{text[:most]}\n[The result has {len(text):,} characters. These were its first {most:,}.]"
    return text.encode("utf-8", "replace").decode()


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        # With NaN as it is, which msgspec would write as null.
        return json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001 (any object of an author's)
        return str(value)
