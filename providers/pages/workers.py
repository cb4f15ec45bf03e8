"""Functions run in processes of their own, that are killed when they take too long or too much memory.

Owns the processes and their limits; knows nothing of pages. Each worker is a pool of one, so that killing it can't
disturb another. What is run must be importable by its name, and so must be what it is given and gives back.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Literal, TypeVar

from pebble import ProcessExpired, ProcessPool

T = TypeVar("T")

MEMORY_MAX = 512 << 20
# Of that, for what a task's end is sent with, when the limit is lifted.
_FOR_SENDING = 16 << 20
# A worker whose parent is gone ends itself so long after it was due.
_ORPHANED_S = 30
_starting = threading.Lock()


class Killed(Exception):
    """The function did not end within its limits: `why` says which, or that its process broke down. `after_s`: how long
    it had gone on, its process's start included."""

    def __init__(self, why: Literal["timeout", "memory", "crash"], detail: str, after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.why = why
        self.after_s = after_s


class Failed(Exception):
    """The function raised; the message is what it raised."""


class Worker:
    """One process, started with its first task and again after it was killed. `modules` are imported at its start."""

    def __init__(self, modules: Sequence[str] = (), memory_max: int = MEMORY_MAX) -> None:
        self._modules = tuple(modules)
        self._memory_max = memory_max
        self._pool: ProcessPool | None = None

    def run(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Wait for a result. Raises Killed or Failed."""
        try:
            value: T = _value(self._submit(function, arguments, within_s).result(), self._memory_max)
        except BaseException as error:
            found = self._meaning_of(error, within_s)
            if found is None:
                raise
            raise found from None
        return value

    async def run_async(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """The same beside a running loop; a cancelled caller's task is killed."""
        began = time.monotonic()
        try:
            # Starting a process takes longer than the loop may stand still.
            future = await asyncio.to_thread(self._submit, function, arguments, within_s)
            value: T = _value(await asyncio.wrap_future(future), self._memory_max)
        except BaseException as error:
            found = self._meaning_of(error, within_s)
            if found is None:
                raise
            found.after_s = time.monotonic() - began
            raise found from None
        return value

    def close(self) -> None:
        """Takes a few tenths of a second where a process runs."""
        pool, self._pool = self._pool, None
        if pool is not None:
            _stop(pool)

    def _submit(self, function: Callable[..., T], arguments: Sequence[Any], within_s: float) -> Future[tuple[str, Any]]:
        task = (self._memory_max, within_s, function, arguments)
        for pool in (self._pool, None):
            if pool is None:
                pool = self._pool = ProcessPool(
                    max_workers=1, context=_Spawning(), initializer=_prepare, initargs=[self._modules]
                )
            try:
                return pool.schedule(_bounded, args=task, timeout=within_s)
            except (RuntimeError, BrokenProcessPool):
                # Its process ended between two tasks: the pool takes no more.
                _stop(pool)
        raise Killed("crash", "no process could be started for it")

    def _meaning_of(self, error: BaseException, within_s: float) -> Killed | None:
        if isinstance(error, FutureTimeout):
            return Killed("timeout", f"not done within {within_s:g} s")
        if isinstance(error, ProcessExpired):
            return Killed("crash", f"its process broke down (exit code {error.exitcode})")
        if isinstance(error, BrokenProcessPool):
            self.close()
            return Killed("crash", "its process could not be started")
        return None


def _stop(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


class Workers:
    """Several workers; a task goes to one that is idle, and waits for one where none is."""

    def __init__(self, count: int = 2, modules: Sequence[str] = (), memory_max: int = MEMORY_MAX) -> None:
        if count < 1:
            raise ValueError(f"workers ({count}) must be >= 1")
        # The one that was used last is warm, so it comes first.
        self._idle = [Worker(modules, memory_max) for _ in range(count)]
        self._all = tuple(self._idle)
        self._free = asyncio.Semaphore(count)

    def __repr__(self) -> str:
        return f"<Workers [{len(self._all) - len(self._idle)} of {len(self._all)} busy]>"

    async def run(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Raises Killed or Failed."""
        async with self._free:
            worker = self._idle.pop()
            try:
                return await worker.run_async(function, *arguments, within_s=within_s)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in self._all))


def _value(result: tuple[str, Any], memory_max: int) -> Any:
    kind, value = result
    if kind == "memory":
        raise Killed("memory", f"it needs more than {memory_max >> 20} MiB")
    if kind == "error":
        raise Failed(str(value))
    return value


class _Worker(SpawnProcess):
    """Spawn runs the caller's main module again in each new process, which may be a script without any guard that sends
    what was paid for once more. None is shown while a process starts: a worker needs nothing of it."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:
        with _starting:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                sys.modules["__main__"] = main


class _Spawning(SpawnContext):
    Process = _Worker


# In the worker


def _prepare(modules: tuple[str, ...]) -> None:
    # Killed at once, even within a parser that hands no signal on to Python.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # What parsers say of broken pages would stand between the lines of the progress.
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    logging.disable(logging.CRITICAL)
    for name in modules:
        importlib.import_module(name)


def _bounded(memory_max: int, within_s: float, function: Callable[..., T], arguments: Sequence[Any]) -> tuple[str, Any]:
    # Only while the function runs: a message for which there is no memory would leave its task without an end.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    signal.alarm(int(within_s) + _ORPHANED_S)
    try:
        # Address space is never less than memory. Interpreter and parsers take some 60 MiB of it, 45 of them in use.
        resource.setrlimit(resource.RLIMIT_AS, (memory_max - _FOR_SENDING, limits[1]))
        return "ok", function(*arguments)
    except MemoryError:
        return "memory", None
    except Exception as error:  # noqa: BLE001 (nobody can list what parsers raise, and not all of it can be sent on)
        return "error", f"{type(error).__name__}: {error}"[:500]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.alarm(0)
