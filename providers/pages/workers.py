"""Functions run in processes of their own, that are killed when they take too long or too much memory.

Owns the processes, their limits, and whose fault an end is: the task's, in a process that has proven that it can work,
or our own machine's. Knows nothing of pages. Each worker is a pool of one, so that killing it can't disturb another.
What is run must be importable by its name, and so must be what it is given and gives back.
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
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct
from pebble import ProcessExpired, ProcessPool

from ...engine.fault import LocalFault
from .worker_process import be_silent, prove, run_bounded

T = TypeVar("T")

MEMORY_MAX = 512 << 20
# No function sends these to itself: a person does, a limit of the machine, or a machine out of memory.
_FROM_OUTSIDE = frozenset(
    getattr(signal, f"SIG{name}")
    for name in ("KILL", "TERM", "INT", "HUP", "QUIT", "ALRM", "XCPU", "XFSZ", "STOP", "USR1", "USR2", "PIPE")
)
# Something has run out that may come back.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC)
_LOOK_S = 0.25
# A process that died while it wrote leaves pebble's threads waiting for the rest.
_STOP_S = 5.0
_starting = threading.Lock()


class Killed(Exception):
    """The function did not end within its limits, or broke its process down twice: `why` says which. It was run by a
    process that had proven that it works, so that this is a fact about the function and what it was given."""

    def __init__(self, why: Literal["timeout", "memory", "crash"], detail: str) -> None:
        super().__init__(detail)
        self.why = why


class Failed(Exception):
    """The function raised; the message is what it raised."""


class WorkerFault(LocalFault):
    """Our own machine can't run the function: no process starts, or processes are ended from outside."""


class Means(Struct, frozen=True, kw_only=True):
    """What a worker is. `modules` are imported at its start, then `check` is called: what either raises means that no
    task can be run. `work` says in a message what the process is for. `start_s`: the longest that a process may take
    until it has proven that it works. `stalled_s`: how long a task may wait for the processor, beside its own time."""

    modules: tuple[str, ...] = ()
    check: Callable[[], None] | None = None
    work: str = "worker process"
    memory_max: int = MEMORY_MAX
    start_s: float = 120.0
    stalled_s: float = 60.0


class _End(NamedTuple):
    """How a task's process ended. `fault`: of our own machine."""

    why: Literal["timeout", "memory", "crash", "fault"]
    detail: str


class Worker:
    """One process, started with its first task and again after it was killed."""

    def __init__(self, means: Means | None = None) -> None:
        self._means = means if means is not None else Means()
        self._pool: ProcessPool | None = None
        self._is_proven = False
        # Tasks that the present process has begun.
        self._begun = 0
        self._closings = 0
        self._lock = threading.Lock()

    def run(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Wait for a result; `within_s` is the processor time that the function may use. Raises Killed or Failed, and
        WorkerFault where that was our own machine's."""
        ends: Counter[str] = Counter()
        while True:
            try:
                value: T = self._value(self._submit(function, arguments, within_s).result())
            except BaseException as error:
                final = self._final_of(error, within_s, ends)
                if final is error:
                    raise
                if final is not None:
                    raise final from None
                self._drop()
            else:
                return value

    async def run_async(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """The same beside a running loop; a cancelled caller's task is killed."""
        ends: Counter[str] = Counter()
        while True:
            try:
                # Starting a process takes longer than the loop may stand still.
                future = await asyncio.to_thread(self._submit, function, arguments, within_s)
                value: T = self._value(await asyncio.wrap_future(future))
            except BaseException as error:
                final = self._final_of(error, within_s, ends)
                if final is error:
                    raise
                if final is not None:
                    raise final from None
                await asyncio.to_thread(self._drop)
            else:
                return value

    def start(self) -> None:
        """Have a process that has proven that it works. Raises WorkerFault."""
        with self._lock:
            self._proven_pool()

    def close(self) -> None:
        """Takes a few tenths of a second where a process runs."""
        self._closings += 1
        self._drop()

    def _drop(self) -> None:
        pool, self._pool, self._is_proven = self._pool, None, False
        if pool is not None:
            _stop(pool)

    # How a task ends

    def _submit(self, function: Callable[..., T], arguments: Sequence[Any], within_s: float) -> Future[tuple[str, Any]]:
        wall_s = within_s + self._means.stalled_s
        task = (self._means.memory_max, within_s, wall_s, function, arguments)
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
        kind, value = result
        if kind == "memory":
            raise _Ended(_End("memory", f"it needs more than {self._means.memory_max >> 20} MiB"))
        if kind == "fault":
            raise _Ended(_End("fault", str(value)))
        if kind == "error":
            raise Failed(str(value))
        return value

    def _final_of(self, error: BaseException, within_s: float, ends: Counter[str]) -> BaseException | None:
        """What a task's end means for its caller; None: a fresh process has to show first that it was not chance."""
        if isinstance(error, asyncio.CancelledError | CancelledError):
            self._is_proven = False  # its process is killed, and another one started in its place
        end = self._end_of(error, within_s)
        if end is None:
            return error
        self._is_proven = False
        ends[end.why] += 1
        if end.why == "fault":
            is_final = ends["fault"] > 1
            return WorkerFault(f"{self._means.work}: {end.detail}: mend that, then start again") if is_final else None
        # A process that has served others may hold memory that they left behind.
        is_final = end.why == "timeout" or ends[end.why] > 1 or (end.why == "memory" and self._begun == 1)
        return Killed(end.why, end.detail) if is_final else None

    def _end_of(self, error: BaseException, within_s: float) -> _End | None:
        match error:
            case _Ended(end=end):
                return end
            case FutureTimeout():
                waited = f"a task waited {self._means.stalled_s:g} s for the processor"
                return _End("fault", f"{waited}: this machine has too much to do, or its clock jumped")
            case ProcessExpired(exitcode=code) if -code == signal.SIGPROF:
                return _End("timeout", f"not done within {within_s:g} s")
            case ProcessExpired(exitcode=code) if -code in _FROM_OUTSIDE:
                name = signal.Signals(-code).name
                return _End("fault", f"its process was ended from outside ({name}), as by a machine out of memory")
            case ProcessExpired(exitcode=code):
                return _End("crash", f"its process broke down (exit code {code})")
            case BrokenProcessPool():
                return _End("fault", "its process ended before it took the task")
            case RuntimeError():
                return _End("fault", str(error))  # as where no thread can be started
        return None

    # How a process starts

    def _proven_pool(self) -> ProcessPool:
        """With the lock held."""
        if self._is_proven and self._pool is not None:
            return self._pool
        until, closings = time.monotonic() + self._means.start_s, self._closings
        tries = 0
        while True:
            tries += 1
            pool = self._pool
            try:
                if pool is None:
                    pool = self._pool = ProcessPool(max_workers=1, context=_Spawning(), initializer=be_silent)
                self._check(pool, until)
            except _NotStarted as error:
                self._drop()
                left_s = until - time.monotonic()
                if left_s <= 0 or self._closings != closings or (tries > 1 and not error.is_passing):
                    raise WorkerFault(f"no {self._means.work} can be started: {error}") from None
                if error.is_passing:
                    time.sleep(min(1.0, left_s))
            else:
                self._is_proven, self._begun = True, 0
                return pool

    def _check(self, pool: ProcessPool, until: float) -> None:
        try:
            answered: Future[str] = pool.schedule(prove, args=(self._means.modules, self._means.check))
            while not answered.done():
                if self._pool is not pool:
                    raise _NotStarted("it was closed meanwhile")
                if time.monotonic() > until:
                    raise _NotStarted(f"it was not ready within {self._means.start_s:g} s")
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


class _Ended(Exception):
    def __init__(self, end: _End) -> None:
        super().__init__(end.detail)
        self.end = end


class _NotStarted(Exception):
    """One line: why. `is_passing`: something has run out that may come back."""

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
    """Several workers; a task goes to one that is idle, and waits for one where none is."""

    def __init__(self, count: int = 2, means: Means | None = None) -> None:
        if count < 1:
            raise ValueError(f"workers ({count}) must be >= 1")
        # The one that was used last is warm, so it comes first.
        self._idle = [Worker(means) for _ in range(count)]
        self._all = tuple(self._idle)
        self._free = asyncio.Semaphore(count)

    def __repr__(self) -> str:
        return f"<Workers [{len(self._all) - len(self._idle)} of {len(self._all)} busy]>"

    async def run(self, function: Callable[..., T], *arguments: Any, within_s: float) -> T:
        """Raises Killed, Failed or WorkerFault."""
        async with self._free:
            worker = self._idle.pop()
            try:
                return await worker.run_async(function, *arguments, within_s=within_s)
            finally:
                self._idle.append(worker)

    async def start(self) -> None:
        """Have one that has proven that it works. Raises WorkerFault."""
        async with self._free:
            worker = self._idle.pop()
            try:
                await asyncio.to_thread(worker.start)
            finally:
                self._idle.append(worker)

    async def close(self) -> None:
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in self._all))


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
