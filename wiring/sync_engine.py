"""The engine without `await`: for scripts, notebooks and threads.

Owns one thread with a loop of its own, and the exchange with the callers' threads. Handles no signal and changes no
global: a waiting caller can be interrupted, which cancels its call in the loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..engine.call import Call, Outcome
from ..engine.endpoint import Hear
from ..engine.fault import StopReason
from ..engine.lane import Lane
from ..engine.sink import Sink
from ..engine.store.cache import Mode
from ..providers.pages.page import Page
from ..providers.search.joined import COUNT, Found
from .engine import Engine
from .event_loop import loop_factory
from .settings import Settings
from .statistics import Statistics
from .thread_bridge import CLOSED_MEANWHILE, Flow

_T = TypeVar("_T")
_CLOSED = "the engine is closed: use it inside `with SyncEngine(...) as engine`"


class SyncEngine:
    """`Engine` for code that doesn't await. It works in a thread of its own, beside any running loop, and may be used
    by any number of threads at once.

    Takes the same arguments as `Engine`, and raises the same errors.
    """

    def __init__(
        self,
        *lanes: Lane,
        base_url: str | None = None,
        cache: Path | str | None = None,
        mode: Mode = "record",
        max_cost: float | None = None,
        tier: str | None = None,
        cluster: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._engine = Engine(
            *lanes,
            base_url=base_url,
            cache=cache,
            mode=mode,
            max_cost=max_cost,
            tier=tier,
            cluster=cluster,
            settings=settings,
        )
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._under_way: set[asyncio.Task[Any]] = set()
        self._process = 0
        self._trouble: BaseException | None = None

    def __repr__(self) -> str:
        return f"<SyncEngine {self._engine!r}>"

    def __enter__(self) -> SyncEngine:
        with self._lock:
            if self._loop is not None and self._process == os.getpid():
                raise RuntimeError("the engine is open already: open another one, or use this one from all threads")
            self._process = os.getpid()
            self._trouble = None
            opened: Future[None] = Future()
            # A daemon, so that an engine that is never closed doesn't keep its program from ending.
            self._thread = threading.Thread(target=self._live, args=(opened,), name="millstream engine", daemon=True)
            self._thread.start()
            try:
                opened.result()
            except BaseException:
                opened.cancel()
                self._stop()
                self._thread.join()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process != os.getpid():
            return  # a fork has no thread to be closed; its parent's goes on
        self._check_thread()
        with self._lock:
            thread, self._thread = self._thread, None
            self._stop()
        if thread is not None:
            thread.join()
            if self._trouble is not None and error is None:
                raise self._trouble

    def ask(self, call: Call, *, hear: Hear | None = None) -> Outcome:
        """Sends one call, waits, and returns its outcome. Raises Stopped if its lane sends nothing more. `hear`
        receives the pieces of the text as they arrive, in the engine's thread."""
        return self._do(lambda: self._engine.ask(call, hear=hear))

    def run(self, calls: Iterable[Call], sink: Sink | None = None) -> Iterator[Outcome]:
        """Yields outcomes as they finish, each written to `sink` (in the engine's own thread) first.

        `calls` is read in the thread that takes the outcomes, while it waits for the next one: lazily, a few hundred
        ahead, and no further while no outcomes are taken. The iterable may itself call this engine. Leaving the loop
        early cancels what is in flight; answers received until then are in the cache. Raises Stopped at the end if a
        lane stopped.
        """
        if not isinstance(calls, Iterable):
            raise TypeError(
                f"calls must be an iterable of calls; came a {type(calls).__name__}: async ones are for ms.Engine"
            )
        self._open_loop()
        return self._outcomes(iter(calls), sink)

    def search(self, model: str, query: str, count: int = COUNT) -> Found:
        """Returns the first `count` hits of a search engine, from as many pages of results as needed."""
        return self._do(lambda: self._engine.search(model, query, count))

    def read(self, url: str) -> Page:
        """Returns a web page; redirects are followed and robots.txt is obeyed. A page that can't be read is returned
        too, without a text and with the reason in `status` and `detail`. Raises LocalFault if this machine can't
        read pages, and Stopped if nothing more is sent."""
        return self._do(lambda: self._engine.read(url))

    def check_pages(self) -> None:
        """Raises LocalFault if this machine can't read pages, as without a parser. Sends nothing."""
        self._do(self._engine.check_pages)

    def key_of(self, call: Call) -> str:
        """Returns the call's cache key, the same as in its outcome; empty if the call can't be encoded. Sends
        nothing."""
        return self._get(lambda: self._engine.key_of(call))

    def family_of(self, model: str) -> str:
        """Returns the protocol of a model: see `Engine.family_of`."""
        return self._engine.family_of(model)

    def statistics(self) -> Statistics:
        """Returns calls under way and money spent at this moment."""
        return self._get(self._engine.statistics)

    def halt(self, reason: StopReason, detail: str) -> None:
        """Stops sending. Calls in flight are finished."""
        self._get(lambda: self._engine.halt(reason, detail))

    # In the callers' threads

    def _do(self, begin: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        with self._lock:
            loop = self._open_loop()
            future = asyncio.run_coroutine_threadsafe(self._kept(begin), loop)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError(CLOSED_MEANWHILE) from None
        except BaseException:
            future.cancel()  # the waiting caller was interrupted; else it is done, and this does nothing
            raise

    def _get(self, look: Callable[[], _T]) -> _T:
        async def looked() -> _T:
            return look()

        return self._do(looked)

    def _outcomes(self, calls: Iterator[Call], sink: Sink | None) -> Iterator[Outcome]:
        with self._lock:
            loop = self._open_loop()
            flow = Flow(calls, loop)
            loop.call_soon_threadsafe(self._begin, flow, sink)
        try:
            yield from flow.outcomes()
        finally:
            flow.cut()
            # A generator may be collected by any thread: only the loop's own can't wait for itself, and after a fork
            # there is nobody to wait for.
            if threading.current_thread() is not self._thread and self._process == os.getpid():
                flow.ended.wait()

    def _open_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RuntimeError(_CLOSED)
        if self._process != os.getpid():
            raise RuntimeError(
                f"the engine was opened in process {self._process}, and this is a fork of it: open one in this process"
            )
        self._check_thread()
        return self._loop

    def _check_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a sink or listener can't wait for the engine that it is called by: it would never end")

    def _stop(self) -> None:
        """Asks the loop to end. The lock is held, so no new work is begun in it."""
        loop, self._loop = self._loop, None
        if loop is not None and self._stopping is not None:
            loop.call_soon_threadsafe(self._stopping.set)

    # In the engine's thread

    def _live(self, opened: Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                loop = runner.get_loop()
                serving = loop.create_task(self._serve(opened))
                while not serving.done():
                    # A SystemExit in a caller's sink or listener leaves the loop. It is raised in the caller that waits
                    # for the task it ended, and the loop goes on for all others.
                    with suppress(KeyboardInterrupt, SystemExit):
                        loop.run_until_complete(serving)
                serving.result()
        except BaseException as error:  # noqa: BLE001  (it ends this thread, and is raised in the caller's)
            self._trouble = error
            if not opened.done():
                opened.set_exception(error)

    async def _serve(self, opened: Future[None]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self._engine:
                if opened.set_running_or_notify_cancel():
                    opened.set_result(None)
                    await self._stopping.wait()
                for task in self._under_way:
                    task.cancel()
                if self._under_way:
                    await asyncio.wait(self._under_way)
        finally:
            self._loop = None

    def _begin(self, flow: Flow, sink: Sink | None) -> None:
        self._keep(flow.begin(self._engine, sink))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _kept(self, begin: Callable[[], Awaitable[_T]]) -> _T:
        task = asyncio.current_task()
        assert task is not None
        self._keep(task)
        return await begin()
