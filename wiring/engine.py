"""The engine for programs: opens everything it needs, sends calls, and closes everything again.

How one call is answered: engine/scheduler.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..engine.attempts.money import CostBudget
from ..engine.call import WEB, Call, Outcome
from ..engine.claims import Claims
from ..engine.endpoint import EncodeError, Hear
from ..engine.events import Events
from ..engine.fault import LocalFault, StopReason
from ..engine.key import key_of
from ..engine.lane import Lane
from ..engine.missing import missing_module, missing_text
from ..engine.routes import Routes
from ..engine.run import run_calls
from ..engine.scheduler import Scheduler
from ..engine.sink import Sink
from ..engine.store.cache import Cache, Mode
from ..engine.store.cache_policy import Ages, CachePolicy
from ..engine.store.snapshot import Snapshot
from ..providers.access import ConfigurationError
from ..providers.pages.page import Page
from ..providers.retrieval import is_page
from ..providers.search.access import is_search
from ..providers.search.joined import COUNT, Found, search
from .budgets import attach_budget
from .file_limits import raise_file_limit
from .reach import accesses_to, family_of
from .routing import Router
from .settings import Settings
from .sinks import OpenedSink, SinkPair, opened_sink
from .statistics import Statistics, statistics_of
from .web_retrieval import WebRetrieval

if TYPE_CHECKING:
    from ..providers.pages.reader import PageReader
    from .fleet import Fleet
    from .shared_cache import SharedCache

# Bytes held on the cache's disk: more than the calls in flight can bring at once.
_SPARE_BYTES = 16 << 20
_CLOSED = "the engine is closed: use it inside `async with Engine(...) as engine`"
_OPEN = "the engine is open already: use this one from all tasks of its loop, or open another one"
_NO_LOOP = "no loop of asyncio is running here: without one, and beside other kinds of loops, use SyncEngine"
_OTHER_LOOP = (
    "the engine was opened in another event loop: use it there, open one in this loop, or use SyncEngine, which serves "
    "all threads"
)


class Engine:
    """The engine for asynchronous programs: sends calls to any number of providers, with quotas, cache, retries and a
    budget.

    Works inside any running event loop; several may live side by side.
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
        for lane in lanes:
            if not isinstance(lane, Lane):
                raise TypeError(f"expected a millstream.Lane, such as Lane({lane!r}), got a {type(lane).__name__}")
        if settings is None:
            place = cast("Path | None", cache)  # settings take its text too
            more: dict[str, Any] = {"base_url": base_url, "max_cost": max_cost, "tier": tier, "cluster": cluster}
            settings = Settings(lanes=lanes, cache=place, mode=mode, **more)
        self.settings = settings
        self.events = Events()
        self.budget = CostBudget(settings.max_cost, settings.spent)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._cache: Cache | None = None
        self._claims: Claims | None = None
        self._shared: SharedCache | None = None
        self._snapshot: Snapshot | None = None
        self._scheduler: Scheduler | None = None
        self._fleet: Fleet | None = None
        self._reader: PageReader | None = None
        self._sink: OpenedSink | None = None
        self._retrieval = WebRetrieval(settings.allow_hosts, settings.lane_of(WEB), settings.corpus)
        self._routing = Router(settings, self.budget, self.events, self._retrieval, self._spare_loop)
        for lane in settings.lanes:
            if not is_page(lane.model):
                if "*" in lane.model:
                    raise ConfigurationError(f"lane {lane.model}: name one model; each model has a lane of its own")
                accesses_to(lane.model, settings)

    def __repr__(self) -> str:
        return f"<Engine {self._scheduler or 'closed'} {self.budget}>"

    async def __aenter__(self) -> Engine:
        if self._loop is not None:
            raise RuntimeError(_OPEN)
        self._loop, self._process = _loop_here(), os.getpid()
        try:
            await self._open()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def _open(self) -> None:
        settings = self.settings
        raise_file_limit()
        scope = b""
        if settings.mode == "live":
            scope = hashlib.sha256((settings.run_id or os.urandom(16).hex()).encode()).digest()[:16]
        if settings.snapshot is not None:
            self._snapshot = await asyncio.to_thread(Snapshot, settings.snapshot)
        await self._retrieval.open()
        self._cache = Cache(settings.cache_folder(), scope=scope, spare_bytes=_SPARE_BYTES)
        self._claims = Claims(self._cache.folder, is_shared=not scope)
        started = time.time() if settings.run_started is None else settings.run_started
        ages = Ages(max_age_s=settings.max_age_s, run_started=started, retry_started=settings.retry_started or started)
        recall = CachePolicy(self._cache, settings.mode, ages, snapshot=self._snapshot)
        if settings.server is not None and settings.cluster is None:
            # Here, since an engine that shares nothing starts sooner without it.
            try:
                from .shared_cache import SharedCache
            except ImportError as error:
                name = missing_module(error) or "redis"
                raise LocalFault(
                    f"the shared cache {settings.server} needs the package {name}: pip install 'redis>=8.1'"
                ) from error
            self._shared = await SharedCache.open(settings, settings.server, self._cache)
            self._routing.quota = self._shared.quota
        elif settings.quota_owner is not None:
            from ..engine.shared.quota import SharedQuota

            self._routing.quota = SharedQuota(settings.quota_owner, Random())
        parts: dict[str, Any] = {
            "routes": Routes(self._routing.route, settings.policy.reopened_s),
            "cache": self._cache,
            "claims": self._claims,
            "mode": settings.mode,
            "policy": settings.policy,
            "events": self.events,
            "random": Random(),
            "recall": recall,
            "shared": None if self._shared is None else self._shared.answers,
        }
        if settings.cluster is None:
            self._scheduler = Scheduler(**parts)
        else:
            from .fleet import Fleet

            self._fleet = Fleet(settings.cluster, settings.workers, settings, Engine)
            self._scheduler = self._fleet.scheduler(self.budget, parts)
        if self._shared is not None:
            self._shared.connection.on_lost = partial(self.halt, "local_fault")
        attach_budget(self.budget, settings)
        if self._fleet is not None:
            await self._fleet.open()
        if settings.measures:
            # The first call of a measurement may be due many seconds later.
            await self._routing.look_at_addresses()
        if settings.sink is not None:
            self._sink = opened_sink(settings.sink, settings.others)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._process != os.getpid():
            return  # a fork must not close what its parent still uses
        # If its loop is closed, nothing can use the engine any more: then it may be closed from anywhere.
        if self._loop is not None and not self._loop.is_closed():
            self._check_loop()
        self._loop = None
        if self._scheduler is not None:
            await self._scheduler.end()
        if self._reader is not None:
            await self._reader.extraction.close()
            self._reader = None
        if self._scheduler is not None:
            self._scheduler.routes.close()
        if self._routing.quota is not None:
            await self._routing.quota.close()  # after the lanes, which give back what is left
            self._routing.quota = None
        if self._shared is not None:
            await self._shared.close()
            self._shared = None
        if self._fleet is not None:
            await self._fleet.close()
            self._fleet = None
        await self._routing.close()
        self._scheduler = None
        self.budget.detach()
        self._retrieval.close()
        if self._cache is not None:
            if self.settings.run_id is None and not self._cache.is_faulty:
                self._cache.drop_scope()
            self._cache.close()
            self._cache = None
        if self._claims is not None:
            self._claims.close()
            self._claims = None
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        fault = self.close_sink()
        if fault is not None and error is None:
            raise fault

    def close_sink(self) -> LocalFault | None:
        """Closes the sink of the settings before the engine. Returns its fault; None if it has none, or was closed
        before."""
        sink, self._sink = self._sink, None
        if sink is None:
            return None
        sink.close()
        return sink.fault

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of the open engine. Raises RuntimeError if the engine is closed."""
        if self._scheduler is None:
            raise RuntimeError(_CLOSED)
        return self._scheduler

    async def ask(self, call: Call, *, hear: Hear | None = None) -> Outcome:
        """Sends one call and returns its outcome. Raises Stopped if its lane sends nothing more. `hear` receives
        pieces of the text as they arrive, if the call is sent and streamed; an error in it is raised here, after the
        answer is stored."""
        if not isinstance(call, Call):
            raise TypeError(f"expected a millstream.Call, got a {type(call).__name__}")
        self._check_loop()
        if hear is None:
            return await self.scheduler.ask(call, self._sink)
        errors: list[BaseException] = []

        def listen(piece: str | None) -> None:
            if not errors:
                try:
                    hear(piece)
                except BaseException as error:  # noqa: BLE001  (the caller's own code)
                    # No fault of the attempt: an answer that is paid for is finished and stored first.
                    errors.append(error)

        outcome = await self.scheduler.ask(call, self._sink, listen)
        if errors:
            raise errors[0]
        return outcome

    def run(
        self, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None
    ) -> AsyncGenerator[Outcome, None]:
        """Yields outcomes as they finish, each saved in `sink` first. `calls` is read lazily, and not ahead of a
        caller who takes no outcomes. Raises Stopped at the end if a lane stopped."""
        self._check_loop()
        if self._sink is not None:
            sink = self._sink if sink is None else SinkPair(sink, self._sink)
        return run_calls(self.scheduler, calls, sink)

    async def search(self, model: str, query: str, count: int = COUNT) -> Found:
        """Returns the first `count` hits of a search engine, from as many pages of results as needed."""
        row = self.settings.search_row_of(model) if is_search(model) else None
        return await search(self.ask, model, query, count, None if row is None else row.reach)

    async def read(self, url: str) -> Page:
        """Returns a web page; redirects are followed and robots.txt is obeyed. A page that can't be read is returned
        too, without a text and with the reason in `status` and `detail`. Raises LocalFault if this machine can't
        read pages, and Stopped if nothing more is sent."""
        return await self._pages().read(url)

    async def check_pages(self) -> None:
        """Raises LocalFault if this machine can't read pages, as without a parser. Sends nothing."""
        await self._pages().extraction.start()

    def _pages(self) -> PageReader:
        self._check_loop()
        if self._loop is None:
            raise RuntimeError(_CLOSED)
        if self._reader is None:
            # Here, since an engine that reads no pages starts sooner without their libraries.
            try:
                from ..providers.pages.extraction import Extraction
                from ..providers.pages.reader import PageReader
            except ImportError as error:
                raise LocalFault(f"pages can't be read: {missing_text(error)}") from error
            if self._fleet is not None:
                from .fleet_extraction import FleetExtraction

                extraction: Extraction = FleetExtraction(self._fleet.workers)
            else:
                extraction = Extraction()
            self._reader = PageReader(self.ask, self.scheduler.recall, extraction)
        return self._reader

    def key_of(self, call: Call) -> str:
        """Returns the call's cache key, the same as in its outcome; empty if the call can't be encoded. Sends
        nothing."""
        try:
            request = self.scheduler.routes.of(call.lane).endpoint.encode(call)
        except EncodeError:
            return ""
        return key_of(request, call.trial).hex()

    def family_of(self, model: str) -> str:
        """Returns the name of a model's wire protocol: `openai`, `openai-responses`, `anthropic`, `gemini`, `bedrock`,
        or one that another package registers. `model` is written as in a call, such as `openai/gpt-6.2-sol`."""
        return family_of(model, self.settings)

    def statistics(self) -> Statistics:
        """Returns calls under way and money spent at this moment. `events` report what happens as it happens."""
        return statistics_of(self.scheduler, self.budget)

    def halt(self, reason: StopReason, detail: str) -> None:
        """Stops sending. Calls in flight are finished. If it is interrupted, the detail of its stops also names the
        addresses that have never answered."""
        if reason == "interrupted":
            detail = "; ".join((detail, *self._routing.unanswered))
        self.scheduler.halt(reason, detail)

    def forget_run(self) -> None:
        """Deletes what a live run kept in order to resume, since it is complete."""
        if self._cache is not None:
            self._cache.drop_scope()
        if self._fleet is not None:
            self._fleet.forgets = True

    def _check_loop(self) -> None:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None  # as in a fork
        if self._loop is None or here is self._loop:
            return
        if self._process != os.getpid():
            raise RuntimeError(
                f"the engine was opened in process {self._process}, and this is a fork of it: open one in this process"
            )
        raise RuntimeError(_NO_LOOP if here is None else _OTHER_LOOP)

    def _spare_loop(self) -> None:
        """Makes the cache commit in a thread, since pages are long."""
        if self._cache is not None:
            self._cache.spares_loop = True


def _loop_here() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise RuntimeError(_NO_LOOP) from error
