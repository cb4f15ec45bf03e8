"""Runs functions in processes of their own, which are killed if a function takes too long or too much memory.

Owns the processes, their limits, and the decision whether a task or our own machine is to blame when a process ends.
Knows nothing of pages. Each worker is a pool of one process, so that killing it disturbs no other. Functions, their
arguments and their results must be importable by name.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Literal, TypeVar

from msgspec import Struct
from pebble import ProcessExpired, ProcessPool

from ...engine.fault import LocalFault
from .worker_process import be_silent, prove, run_bounded

T = TypeVar("T")

MEMORY_MAX = 512 << 20
# A function does not send these to itself; they come from a person, a limit of the machine, or lack of memory.
_FROM_OUTSIDE = frozenset(
    getattr(signal, f"SIG{name}")
    for name in ("KILL", "TERM", "INT", "HUP", "QUIT", "ALRM", "XCPU", "XFSZ", "STOP", "USR1", "USR2", "PIPE")
)
# Errors of resources that may become free again.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC)
_LOOK_S = 0.25
# The longest wait for pebble's threads: if a process dies while it writes, they wait for the rest for ever.
_STOP_S = 5.0
_starting = threading.Lock()


class TaskBreakdown(Exception):
    """Raised if a function did not end within its limits or broke its process down twice; `why` says which. The process
    had proven that it works, so the cause is the function and its arguments. Within a worker `why` may also be
    "fault", for a cause on our own machine, which its caller gets as a WorkerFault."""

    def __init__(self, why: Literal["timeout", "memory", "crash", "fault"], detail: str) -> None:
        super().__init__(detail)
        self.why = why


class TaskError(Exception):
    """Raised if the function itself raised an exception; the message names it."""


class WorkerFault(LocalFault):
    """Raised if our own machine can't run the function: no process starts, or processes are ended from outside."""


class WorkerSpec(Struct, frozen=True, kw_only=True):
    """What a worker does at its start, and its limits. `modules` are imported, then `check` is called; if either
    raises, no task can be run. `work` names the process in messages. `start_s`: the most seconds until the process has
    proven that it works. `stalled_s`: the most seconds that a task may wait for the processor."""

    modules: tuple[str, ...] = ()
    check: Callable[[], None] | None = None
    work: str = "worker process"
    memory_max: int = MEMORY_MAX
    start_s: float = 120.0
    stalled_s: float = 60.0


class Worker:
    """A helper process that runs one function at a time. It is started for the first task, and again for the next one
    after it was killed, as it is if a task exceeds its limits."""

    def __init__(self, spec: WorkerSpec | None = None) -> None:
        self._spec = spec or WorkerSpec()
        self._pool: ProcessPool | None = None
        self._is_proven = False
        # The number of tasks that the present process has begun.
        self._begun = 0
        self._closings = 0
        self._lock = threading.Lock()

    def run(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Runs a function in the process and returns its result; it may use `within_s` seconds of processor time.
        Raises TaskBreakdown or TaskError, and WorkerFault if our own machine is the cause."""
        return asyncio.run(self.run_async(function, *arguments, within_s=within_s))

    async def run_async(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Does the same as `run` without blocking the loop; if the caller is cancelled, the task is killed."""
        ends: Counter[str] = Counter()
        while True:
            try:
                # In a thread, since starting a process would block the loop for too long.
                future = await asyncio.to_thread(self._submit, function, arguments, within_s)
                value: T = self._value(await asyncio.wrap_future(future))
            except BaseException as error:  # noqa: BLE001 (raised again unless the task is tried once more)
                self._raise_if_final(error, within_s, ends)
                await asyncio.to_thread(self._drop)
            else:
                return value

    def start(self) -> None:
        """Starts a process and waits until it has proven that it works. Raises WorkerFault."""
        with self._lock:
            self._proven_pool()

    def close(self) -> None:
        """Ends the process, which takes a few tenths of a second."""
        self._closings += 1
        self._drop()

    def _drop(self) -> None:
        pool, self._pool, self._is_proven = self._pool, None, False
        if pool is not None:
            _stop(pool)

    # --- how a task ends ---

    def _submit(self, function: Callable[..., T], arguments: Sequence[Any], within_s: float) -> Future[tuple[str, Any]]:
        wall_s = within_s + self._spec.stalled_s
        task = (self._spec.memory_max, within_s, wall_s, function, arguments)
        with self._lock:
            for is_last in (False, True):
                pool = self._proven_pool()
                try:
                    future = pool.schedule(run_bounded, args=task, timeout=wall_s)
                except (RuntimeError, BrokenProcessPool):
                    # Its process ended between two tasks: the pool takes no more.
                    self._drop()
                    if is_last:
                        raise
                else:
                    self._begun += 1
                    return future
        raise AssertionError("unreachable")

    def _value(self, result: tuple[str, Any]) -> Any:
        """Returns a task's value; raises TaskBreakdown or TaskError if its process reports one in its place."""
        match result:
            case "ok", value:
                return value
            case "memory", _:
                raise TaskBreakdown("memory", f"it needs more than {self._spec.memory_max >> 20} MiB")
            case "fault", detail:
                raise TaskBreakdown("fault", str(detail))
        raise TaskError(str(result[1]))

    def _raise_if_final(self, error: BaseException, within_s: float, ends: Counter[str]) -> None:
        """Raises what a task's end means for its caller; returns if a fresh process has to try the task once more, to
        show that the end was not chance."""
        if isinstance(error, asyncio.CancelledError | CancelledError):
            self._is_proven = False  # its process is killed, and another one started in its place
        end = error if isinstance(error, TaskBreakdown) else self._breakdown_of(error, within_s)
        if end is None:
            raise error
        self._is_proven = False
        ends[end.why] += 1
        if end.why == "fault":
            if ends["fault"] > 1:
                raise WorkerFault(f"{self._spec.work}: {end}: fix that, then start again") from None
        # A process that has served others may hold memory that they left behind.
        elif end.why == "timeout" or ends[end.why] > 1 or (end.why == "memory" and self._begun == 1):
            raise end from None

    def _breakdown_of(self, error: BaseException, within_s: float) -> TaskBreakdown | None:
        match error:
            case FutureTimeout():
                waited = f"a task waited {self._spec.stalled_s:g} s for the processor"
                return TaskBreakdown("fault", f"{waited}: this machine has too much to do, or its clock jumped")
            case ProcessExpired(exitcode=code) if -code == signal.SIGPROF:
                return TaskBreakdown("timeout", f"not done within {within_s:g} s")
            case ProcessExpired(exitcode=code) if -code in _FROM_OUTSIDE:
                name = signal.Signals(-code).name
                detail = f"its process was ended from outside ({name}), as by a machine out of memory"
                return TaskBreakdown("fault", detail)
            case ProcessExpired(exitcode=code):
                return TaskBreakdown("crash", f"its process broke down (exit code {code})")
            case BrokenProcessPool():
                return TaskBreakdown("fault", "its process ended before it took the task")
            case RuntimeError():
                return TaskBreakdown("fault", str(error))  # as where no thread can be started
        return None

    # --- how a process starts ---

    def _proven_pool(self) -> ProcessPool:
        """Returns the pool with its process proven to work, starting it if necessary. The caller holds the lock."""
        if self._is_proven and self._pool is not None:
            return self._pool
        until, closings = time.monotonic() + self._spec.start_s, self._closings
        tries = 0
        while True:
            tries += 1
            pool = self._pool
            try:
                if pool is None:
                    pool = self._pool = ProcessPool(max_workers=1, context=_WorkerContext(), initializer=be_silent)
                self._check(pool, until)
            except _NotStarted as error:
                self._drop()
                left_s = until - time.monotonic()
                if left_s <= 0 or self._closings != closings or (tries > 1 and not error.is_passing):
                    raise WorkerFault(f"no {self._spec.work} can be started: {error}") from None
                if error.is_passing:
                    time.sleep(min(1.0, left_s))
            else:
                self._is_proven, self._begun = True, 0
                return pool

    def _check(self, pool: ProcessPool, until: float) -> None:
        try:
            answered: Future[str] = pool.schedule(prove, args=(self._spec.modules, self._spec.check))
            while not answered.done():
                if self._pool is not pool:
                    raise _NotStarted("it was closed meanwhile")
                if time.monotonic() > until:
                    raise _NotStarted(f"it was not ready within {self._spec.start_s:g} s")
                try:
                    answered.result(_LOOK_S)
                except FutureTimeout:
                    continue
            lack = answered.result()
        except ProcessExpired as error:
            raise _NotStarted(f"its process broke down (exit code {error.exitcode})") from None
        except (OSError, RuntimeError, CancelledError) as error:
            raise _NotStarted.by(error) from None
        if lack:
            raise _NotStarted(lack)


def _stop(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    ending = threading.Thread(target=pool.join, daemon=True)
    ending.start()
    ending.join(_STOP_S)


class _NotStarted(Exception):
    """Raised if a process does not start; one line says why. `is_passing`: a resource ran out that may become free."""

    def __init__(self, why: str, *, is_passing: bool = False) -> None:
        super().__init__(why)
        self.is_passing = is_passing

    @classmethod
    def by(cls, error: BaseException) -> _NotStarted:
        cause: BaseException | None = error
        while cause is not None and not (isinstance(cause, OSError) and cause.errno):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, OSError):
            return cls(f"{cause.strerror or cause}: make room for it", is_passing=cause.errno in _PASSING)
        if isinstance(error, BrokenProcessPool):
            return cls("its process ended at once")
        return cls(f"{type(error).__name__}: {error}")


class Workers:
    """Several workers. A task goes to an idle one, and waits if none is idle."""

    def __init__(self, count: int = 2, spec: WorkerSpec | None = None) -> None:
        if count < 1:
            raise ValueError(f"workers ({count}) must be >= 1")
        # The last one used comes first, since its process is warm.
        self._idle = [Worker(spec) for _ in range(count)]
        self._all = tuple(self._idle)
        self._free = asyncio.Semaphore(count)

    def __repr__(self) -> str:
        return f"<Workers [{len(self._all) - len(self._idle)} of {len(self._all)} busy]>"

    async def run(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Runs a function in an idle worker and returns its result. Raises TaskBreakdown, TaskError or WorkerFault."""
        async with self._free:
            worker = self._idle.pop()
            try:
                return await worker.run_async(function, *arguments, within_s=within_s)
            finally:
                self._idle.append(worker)

    async def start(self) -> None:
        """Starts one worker and waits until it has proven that it works. Raises WorkerFault."""
        async with self._free:
            worker = self._idle.pop()
            try:
                await asyncio.to_thread(worker.start)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in self._all))


class _Worker(SpawnProcess):
    """A process that does not run the caller's main module again, as spawn would: a script without a guard would send
    its calls once more. While the process starts, an empty module stands in for it."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:
        with _starting:
            main = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return SpawnProcess._Popen(process_obj)
            finally:
                sys.modules["__main__"] = main


class _WorkerContext(SpawnContext):
    Process = _Worker
