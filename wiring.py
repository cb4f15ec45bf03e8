"""Builds an engine from what was configured: providers, lanes, cache, prices, and the keys of the environment.

The only place that reads the environment, and the only one that knows both the engine and the providers.
Everything is passed on as values; nothing is kept between engines.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from pathlib import Path
from random import Random
from types import TracebackType

from msgspec import Struct, structs

from .engine.admission import Admission, StopReason
from .engine.cache import MODES, Cache, Mode
from .engine.call import Call, Outcome
from .engine.estimate import TokenEstimate
from .engine.events import Events
from .engine.group import LaneGroup
from .engine.lane import Lane
from .engine.lane_files import lane_stem, open_lane_files
from .engine.lane_note import LaneNote
from .engine.money import Price, Prices, Purse, bundled_prices
from .engine.retry import RetryPolicy
from .engine.run import run_calls
from .engine.scheduler import Route, Scheduler
from .engine.sink import Sink
from .providers.access import Access as Access
from .providers.access import ConfigurationError as ConfigurationError
from .providers.access import Means, accesses
from .providers.access import endpoint_to as endpoint_to
from .providers.access import keyless_endpoint_to as keyless_endpoint_to
from .providers.authorizer import Authorizer
from .providers.table import Provider
from .providers.transport import Transport

FILES_WANTED = 65_536
FILES_SPARED = 128


class Settings(Struct, frozen=True, kw_only=True):
    """Everything an engine is built from, with the defaults a person gets who sets nothing."""

    lanes: tuple[Lane, ...] = ()
    default_lane: Lane | None = None
    providers: Mapping[str, Provider] = {}
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

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigurationError(f"mode {self.mode!r} is none of {', '.join(MODES)}")
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
        """The declared lane, else the default one under this model's name."""
        for lane in self.lanes:
            if lane.model == model:
                return lane
        return structs.replace(self.default_lane, model=model) if self.default_lane is not None else Lane(model)

    def whole_lane_of(self, model: str) -> Lane:
        """What all keys of a model may send together: each may send what its lane declares."""
        lane, keys = self.lane_of(model), len(self.key_variables.get(model, ("",)))
        declared = ((name, getattr(lane, name)) for name in ("rpm", "tpm", "itpm", "otpm", "concurrency"))
        whole = structs.replace(lane, **{name: amount * keys for name, amount in declared if amount is not None})
        return capped_by_files(whole)

    def price_table(self) -> Prices:
        return bundled_prices().replaced_by(self.prices)

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
    """The ways to one model, one for each key; two variables that hold the same key are one way."""
    return accesses(model, settings.means)


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
        self._scheduler: Scheduler | None = None
        for lane in settings.lanes:
            accesses_to(lane.model, settings)

    def __repr__(self) -> str:
        return f"<Engine {self._scheduler or 'closed'} {self.purse}>"

    async def __aenter__(self) -> Engine:
        settings = self.settings
        raise_file_limit()
        scope = b""
        if settings.mode == "live":
            scope = hashlib.sha256((settings.run_id or os.urandom(16).hex()).encode()).digest()[:16]
        self._cache = Cache(settings.cache_folder(), scope=scope)
        self._scheduler = Scheduler(
            self._route,
            cache=self._cache,
            mode=settings.mode,
            policy=settings.policy,
            events=self.events,
            random=Random(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()
        if self._scheduler is not None:
            for route in self._scheduler.routes.values():
                route.lane.close()
            self._scheduler = None
        if self._cache is not None:
            if self.settings.run_id is None and not self._cache.is_faulty:
                self._cache.drop_scope()
            self._cache.close()
            self._cache = None

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

    def halt(self, reason: StopReason, detail: str) -> None:
        """Send nothing more; what is in flight is finished."""
        self.scheduler.halt(reason, detail)

    def forget_run(self) -> None:
        """A live run is complete: what it kept in order to be able to resume goes."""
        if self._cache is not None:
            self._cache.drop_scope()

    def _route(self, model: str) -> Route:
        settings = self.settings
        accesses = accesses_to(model, settings)
        lane = capped_by_files(settings.lane_of(model), len(accesses))
        price = self._prices.get(model)
        if settings.max_cost is not None and price is None:
            raise ConfigurationError(
                f"model {model!r} has no price, so --max-cost can't be kept: give it one under [prices.{model!r}]"
            )
        endpoints = tuple(
            endpoint_to(access, self._transport, lane.timeout_s, self._authorizers) for access in accesses
        )
        keys = [self._open_key(access, lane) for access in accesses]
        return Route(endpoints, LaneGroup(keys, purse=self.purse, events=self.events), price, TokenEstimate())

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
