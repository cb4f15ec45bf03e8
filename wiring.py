"""Builds an engine from what was configured: providers, lanes, cache, prices, and the keys of the environment.

The only place that reads the environment, and the only one that knows both the engine and the providers.
Everything is passed on as values; nothing is kept between engines.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from pathlib import Path
from random import Random
from types import TracebackType

from msgspec import Struct, structs
from msgspec.structs import force_setattr

from .engine.admission import Admission, StopReason
from .engine.cache import MODES, Cache, Mode
from .engine.call import WEB, Call, Outcome
from .engine.endpoint import Endpoint
from .engine.estimate import TokenEstimate
from .engine.events import Events
from .engine.group import LaneGroup
from .engine.lane import Lane
from .engine.lane_files import lane_stem, open_lane_files
from .engine.lane_note import LaneNote
from .engine.ledger import Ledger
from .engine.limits import declared_quota
from .engine.money import Price, Prices, Purse, bundled_prices
from .engine.recall import DAY_S, Ages, Recall
from .engine.retry import RetryPolicy
from .engine.run import run_calls
from .engine.scheduler import Route, Scheduler
from .engine.sink import Sink
from .engine.snapshot import Snapshot
from .providers.access import Access as Access
from .providers.access import ConfigurationError as ConfigurationError
from .providers.access import Means, accesses
from .providers.access import endpoint_to as endpoint_to
from .providers.access import keyless_endpoint_to as keyless_model_endpoint_to
from .providers.authorizer import Authorizer
from .providers.endpoint import ModelEndpoint
from .providers.pages.endpoint import POLICY as PAGE_POLICY
from .providers.pages.extraction import Extraction
from .providers.pages.page import Page
from .providers.pages.reader import PageReader
from .providers.retrieval import CORPUS_LANE, EVERY_HOST, Retrieval, is_host, is_page, search_prices
from .providers.retrieval import lane_of as retrieval_lane_of
from .providers.search.access import (
    SearchAccess,
    is_search,
    keyless_search_endpoint_to,
    search_accesses,
    search_endpoint_to,
)
from .providers.search.joined import COUNT, Found, search
from .providers.search.table import SearchEngine
from .providers.table import Provider
from .providers.transport import Transport

FILES_WANTED = 65_536
FILES_SPARED = 128
# Of the disk that the cache lies on: more than calls in flight bring at once.
_SPARE_BYTES = 16 << 20


class Settings(Struct, frozen=True, kw_only=True):
    """Everything an engine is built from, with the defaults a person gets who sets nothing.

    Searches and pages of earlier runs count while they are younger than `max_age_s`; since `run_started` (seconds since
    1970; None: when the engine opens) they are the run's own, failures too, but for those before `retry_started`.
    `allow_hosts`: `NAME[:PORT][=ADDRESS:PORT]` of hosts whose addresses need not be public. `corpus`: a folder of
    documents for `search/corpus`.
    """

    lanes: tuple[Lane, ...] = ()
    default_lane: Lane | None = None
    providers: Mapping[str, Provider] = {}
    searches: Mapping[str, SearchEngine] = {}
    key_variables: Mapping[str, tuple[str, ...]] = {}
    needs_keys: bool = True
    prices: Mapping[str, Price] = {}
    base_url: str | None = None
    cache: Path | None = None
    mode: Mode = "record"
    run_id: str | None = None
    max_cost: float | None = None
    spent: float = 0.0
    policy: RetryPolicy = RetryPolicy()
    environment: Mapping[str, str] | None = None
    max_age_s: float = DAY_S
    run_started: float | None = None
    retry_started: float | None = None
    snapshot: Path | None = None
    allow_hosts: tuple[str, ...] = ()
    corpus: Path | None = None

    def __post_init__(self) -> None:
        for name in ("cache", "snapshot", "corpus"):
            if isinstance(given := getattr(self, name), str):
                force_setattr(self, name, Path(given))
        if self.mode not in MODES:
            raise ConfigurationError(f"mode {self.mode!r} is none of {', '.join(MODES)}")
        if self.snapshot is not None and self.mode not in ("replay", "strict"):
            raise ConfigurationError(f"a snapshot is read in mode replay or strict; mode {self.mode} reads none")
        if not 0 <= self.max_age_s < 1e10:
            raise ConfigurationError(f"max_age_s ({self.max_age_s:g}) must be seconds, 0 or more")
        if self.max_cost is not None and not 0 <= self.max_cost < 1e9:
            raise ConfigurationError(f"max_cost ({self.max_cost:g}) must be dollars, 0 or more")

    def __repr__(self) -> str:
        # The environment holds keys, and a repr ends in logs and tracebacks.
        lanes = ", ".join(lane.model for lane in self.lanes)
        return f"<Settings [lanes: {lanes or 'none declared'}; mode {self.mode}; cache {self.cache or 'default'}]>"

    @property
    def variables(self) -> Mapping[str, str]:
        return os.environ if self.environment is None else self.environment

    @property
    def means(self) -> Means:
        return Means(
            variables=self.variables,
            providers=self.providers,
            key_variables=self.key_variables,
            needs_keys=self.needs_keys,
            base_url=self.base_url,
        )

    def lane_of(self, model: str) -> Lane:
        """The declared lane, else the default one under this name: for a model, what the flags say."""
        declared = self._declared(model)
        if declared is None and is_host(model):
            # What was declared for every host, of which each has a lane of its own.
            declared = self._declared(EVERY_HOST)
        if is_page(model) or is_search(model):
            return retrieval_lane_of(model, None if declared is None else structs.replace(declared, model=model))
        if declared is not None:
            return declared
        return structs.replace(self.default_lane, model=model) if self.default_lane is not None else Lane(model)

    def _declared(self, model: str) -> Lane | None:
        return next((lane for lane in self.lanes if lane.model == model), None)

    def whole_lane_of(self, model: str) -> Lane:
        """What all keys of a model may send together: each may send what its lane declares."""
        lane, keys = self.lane_of(model), len(self.key_variables.get(model, ("",)))
        declared = ((name, getattr(lane, name)) for name in ("rpm", "tpm", "itpm", "otpm", "concurrency"))
        whole = structs.replace(lane, **{name: amount * keys for name, amount in declared if amount is not None})
        return capped_by_files(whole)

    def price_table(self) -> Prices:
        bundled = bundled_prices()
        return structs.replace(bundled, models={**bundled.models, **search_prices()}).replaced_by(self.prices)

    def cache_folder(self) -> Path:
        return self.cache if self.cache is not None else default_cache_folder(self.variables)


def default_cache_folder(variables: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "millstream"
    return Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream"


def access_to(model: str, settings: Settings) -> Access:
    """Where a model string leads and with which key, the first where there are several, or a ConfigurationError that
    says what is missing."""
    return accesses_to(model, settings)[0]


def accesses_to(model: str, settings: Settings) -> tuple[Access, ...]:
    """The ways to one model or search engine, one for each key; two variables that hold the same key are one way. In
    mode strict nothing is sent, so no key is needed."""
    means = settings.means
    if settings.mode == "strict":
        means = structs.replace(means, needs_keys=False)
    return search_accesses(model, means, settings.searches) if is_search(model) else accesses(model, means)


def keyless_endpoint_to(access: Access) -> ModelEndpoint:
    """For encode and decode alone: what a call's key in the cache is, no credentials tell."""
    if isinstance(access, SearchAccess):
        return keyless_search_endpoint_to(access)
    return keyless_model_endpoint_to(access)


class Engine:
    """Runs calls: quotas, cache, retries and money around any number of providers.

    Works inside any running event loop; several may live side by side.
    """

    def __init__(
        self,
        *lanes: Lane,
        base_url: str | None = None,
        cache: Path | str | None = None,
        mode: Mode = "record",
        max_cost: float | None = None,
        settings: Settings | None = None,
    ) -> None:
        if settings is None:
            folder = None if cache is None else Path(cache)
            settings = Settings(lanes=lanes, base_url=base_url, cache=folder, mode=mode, max_cost=max_cost)
        self.settings = settings
        self.events = Events()
        self.purse = Purse(settings.max_cost, settings.spent)
        self._prices = settings.price_table()
        self._transport = Transport()
        self._authorizers: dict[object, Authorizer] = {}
        self._cache: Cache | None = None
        self._snapshot: Snapshot | None = None
        self._scheduler: Scheduler | None = None
        self._extraction = Extraction()
        self._reader: PageReader | None = None
        self._retrieval = Retrieval(settings.allow_hosts, settings.lane_of(WEB), settings.corpus)
        for lane in settings.lanes:
            if not is_page(lane.model):
                accesses_to(lane.model, settings)

    def __repr__(self) -> str:
        return f"<Engine {self._scheduler or 'closed'} {self.purse}>"

    async def __aenter__(self) -> Engine:
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
        started = time.time() if settings.run_started is None else settings.run_started
        ages = Ages(max_age_s=settings.max_age_s, run_started=started, retry_started=settings.retry_started or started)
        recall = Recall(self._cache, settings.mode, ages, snapshot=self._snapshot)
        self._scheduler = Scheduler(
            self._route,
            cache=self._cache,
            mode=settings.mode,
            policy=settings.policy,
            events=self.events,
            random=Random(),
            recall=recall,
        )
        self._reader = PageReader(self.ask, recall, self._extraction)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader = None
        await self._extraction.close()
        await self._transport.close()
        if self._scheduler is not None:
            self._scheduler.close()
            self._scheduler = None
        self._retrieval.close()
        if self._cache is not None:
            if self.settings.run_id is None and not self._cache.is_faulty:
                self._cache.drop_scope()
            self._cache.close()
            self._cache = None
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    @property
    def scheduler(self) -> Scheduler:
        if self._scheduler is None:
            raise RuntimeError("the engine is closed: use it inside `async with Engine(...) as engine`")
        return self._scheduler

    async def ask(self, call: Call) -> Outcome:
        """One call to its end. Raises Stopped where its lane sends nothing more."""
        return await self.scheduler.ask(call)

    def run(self, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]:
        """Outcomes as they finish; `calls` is read lazily. Raises Stopped at the end where a lane stopped."""
        return run_calls(self.scheduler, calls, sink)

    async def search(self, model: str, query: str, count: int = COUNT) -> Found:
        """The first `count` hits of a search engine, joined from as many pages of results as that takes."""
        return await search(self.ask, model, query, count)

    async def read(self, url: str) -> Page:
        """A page's text: robots.txt obeyed, redirects followed. It never fails, it says why it gave nothing."""
        if self._reader is None:
            raise RuntimeError("the engine is closed: use it inside `async with Engine(...) as engine`")
        return await self._reader.read(url)

    def halt(self, reason: StopReason, detail: str) -> None:
        """Send nothing more; what is in flight is finished."""
        self.scheduler.halt(reason, detail)

    def forget_run(self) -> None:
        """A live run is complete: what it kept in order to be able to resume goes."""
        if self._cache is not None:
            self._cache.drop_scope()

    def _route(self, name: str) -> Route:
        return self._host_route(name) if is_page(name) else self._model_route(name)

    def _model_route(self, model: str) -> Route:
        settings, is_engine = self.settings, is_search(model)
        accesses = accesses_to(model, settings)
        lane = capped_by_files(settings.lane_of(model), len(accesses))
        price = self._prices.get(model)
        if settings.max_cost is not None and price is None:
            raise ConfigurationError(
                f"model {model!r} has no price, so --max-cost can't be kept: give it one under [prices.{model!r}]"
            )
        endpoints = tuple(self._endpoint_to(model, access, lane.timeout_s) for access in accesses)
        keys = [self._open_key(access, lane) for access in accesses]
        group = LaneGroup(keys, purse=self.purse, events=self.events)
        return Route(endpoints, group, price, TokenEstimate(), is_retrieval=is_engine)

    def _endpoint_to(self, model: str, access: Access, timeout_s: float) -> Endpoint:
        if model == CORPUS_LANE:
            return self._retrieval.corpus_search()
        if self.settings.mode == "strict":
            return keyless_endpoint_to(access)
        if is_search(model):
            return search_endpoint_to(access, self._transport, timeout_s)
        return endpoint_to(access, self._transport, timeout_s, self._authorizers)

    def _host_route(self, name: str) -> Route:
        """Hosts are many and come and go: their last minute is kept in memory, and nobody is told of each."""
        if self._cache is not None:
            self._cache.spares_loop = True
        lane = capped_by_files(self.settings.lane_of(name))
        events, purse = Events(), Purse()
        key = Admission(lane, ledger=Ledger(declared_quota(lane)), purse=purse, policy=PAGE_POLICY, events=events)
        endpoint = self._retrieval.page_endpoint(name, lambda: key.quota.spacing_s)
        group = LaneGroup([key], purse=purse, events=events)
        return Route((endpoint,), group, None, TokenEstimate(), policy=PAGE_POLICY, is_retrieval=True, is_page=True)

    def _open_key(self, access: Access, lane: Lane) -> Admission:
        note = LaneNote(lane.model, access.variable, access.target.base_url, lane)
        ledger, memory = open_lane_files(stem_of(access, self.settings), note)
        return Admission(
            lane,
            ledger=ledger,
            purse=self.purse,
            policy=self.settings.policy,
            events=self.events,
            key=access.variable,
            proof=access.proof,
            memory=memory,
        )


def stem_of(access: Access, settings: Settings) -> Path:
    """Where a lane's files lie, without their suffixes."""
    return lane_stem(settings.cache_folder(), access.target.base_url, access.target.model, access.account)


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            return  # then lanes stay below the limit there is


def capped_by_files(lane: Lane, keys: int = 1) -> Lane:
    """Calls in flight, of all its keys together, kept below the number of files this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return lane
    return structs.replace(lane, concurrency=min(lane.concurrency, max(1, (soft - FILES_SPARED) // keys)))
