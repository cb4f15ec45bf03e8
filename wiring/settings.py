"""The settings from which an engine is built, and the place of its cache.

The one place that reads the environment. Opens nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field, structs
from msgspec.structs import force_setattr

from ..engine.attempts.budget_file import BudgetPlace
from ..engine.attempts.retry import RetryPolicy
from ..engine.lane import Lane
from ..engine.limits import Quota, declared_quota, summed
from ..engine.prices import ListedPrice, Price, Prices
from ..engine.server_address import ServerAddress, address_of, is_address
from ..engine.store.cache import MODES, Mode
from ..engine.store.cache_policy import DAY_S
from ..providers.access import ConfigurationError, ReachSettings, has_default_tier, is_regional, protocol_of
from ..providers.llm.protocol import WireProtocol
from ..providers.models import Facts, bundled_models
from ..providers.retrieval import EVERY_HOST, is_host, is_page, price_of, search_prices
from ..providers.retrieval import lane_of as retrieval_lane_of
from ..providers.search.access import is_search, row_of
from ..providers.search.table import SearchEngine
from ..providers.table import PROVIDERS, TIERS, Provider
from ..providers.unsized import unsized_in, unsized_with_files
from .file_limits import capped_by_files
from .plugins import Others

if TYPE_CHECKING:
    from ..engine.shared.owner import Exchange

_T = TypeVar("_T")


class Settings(Struct, frozen=True, kw_only=True):
    """Everything an engine is built from. The defaults apply to what is not set."""

    lanes: tuple[Lane, ...] = ()
    """The declared quotas."""
    declared: tuple[str, ...] = ()
    """The names of all lanes in the configuration's file, those of other models too."""
    default_lane: Lane | None = None
    """The quota of models without a lane; None: a lane with its defaults."""
    providers: Mapping[str, Provider] = {}
    """Providers by name; they take precedence over those that come with this package."""
    searches: Mapping[str, SearchEngine] = {}
    """Search engines by name; they too take precedence."""
    key_variables: Mapping[str, tuple[str, ...]] = {}
    """The variables of each lane's API keys, by model."""
    needs_keys: bool = True
    """Whether a missing API key is an error."""
    prices: Mapping[str, Price] = {}
    """Prices by model; they take precedence over the table's."""
    models: Mapping[str, Facts] = {}
    """Facts about models; they take precedence over the table's."""
    clock: Callable[[], float] = time.time
    """Returns the time, in seconds since 1970, whose prices and models hold."""
    base_url: str | None = None
    """The address of every model without one of its own; None: the provider's."""
    cache: Path | None = None
    """The cache's folder; None: the user's cache folder. The address of a shared cache, as a text, sets `server`."""
    server: ServerAddress | None = None
    """The server of a cache that several machines share; None: there is none. The folder is used beside it."""
    quota_owner: Exchange | None = None
    """Who keeps the last minute of each lane for all machines of a cluster; None: `server`, or files in the folder."""
    mode: Mode = "record"
    """`live`, `record`, `replay` or `strict`."""
    run_id: str | None = None
    """The run's name in the cache, in `live` mode; None: what it stores is dropped when the engine is closed."""
    max_cost: float | None = None
    """The limit in dollars; None: no limit."""
    has_payers: bool = False
    """Whether some calls have a limit of their own beside it, as those of a gateway's callers may."""
    tier: str | None = None
    """The tier of service that is asked for: `standard`, `flex`, `priority` or `flex-then-standard`; None: none is, so
    that the provider's default applies."""
    spent: float = 0.0
    """Dollars that count against the limit from the start."""
    budget: BudgetPlace | None = None
    """The file that counts money under `max_cost`, over engines and kills; None: each engine has its own limit, in a
    file beside the cache; a killed one leaves what it may have spent to the next engine of the same program and
    lanes."""
    budget_name: str = ""
    """The program's name for that file; empty: its main file."""
    policy: RetryPolicy = RetryPolicy()
    """When attempts are repeated."""
    environment: Mapping[str, str] | None = None
    """The variables; None: the process's."""
    max_age_s: float = DAY_S
    """Seconds until stored searches and pages of other runs are too old."""
    run_started: float | None = None
    """Since when stored searches and pages are the run's own, in seconds since 1970; None: since the engine opens."""
    retry_started: float | None = None
    """Failures stored before this time are sent again, in seconds since 1970; None: `run_started`."""
    snapshot: Path | None = None
    """A snapshot that is read before the cache, in `strict` mode instead of it."""
    allow_hosts: tuple[str, ...] = ()
    """`NAME[:PORT][=ADDRESS:PORT]` of hosts whose addresses need not be public."""
    corpus: Path | None = None
    """The folder of documents for `search/corpus`."""
    sink: str | None = None
    """`NAME[:ARGUMENT]` of a package's sink, which receives every outcome; None: there is none."""
    cluster: str | None = None
    """The address of a Ray cluster whose workers carry the calls, or `local` for one on this machine; None: this
    process carries them."""
    workers: int | None = None
    """How many workers; None: one for each core of the cluster."""
    measures: bool = False
    """Whether the provider is measured: every call is sent once, and none is repeated, cached or slowed down."""
    others: Others = field(default_factory=Others)
    """What installed packages offer."""
    _by_model: Mapping[str, Lane] = {}

    def __post_init__(self) -> None:
        if isinstance(address := getattr(self, "cache"), str) and is_address(address):  # noqa: B009
            try:
                force_setattr(self, "server", address_of(address))
            except ValueError as error:
                raise ConfigurationError(str(error)) from error
            force_setattr(self, "cache", None)
        for name in ("cache", "snapshot", "corpus", "budget"):
            if isinstance(place := getattr(self, name), str | Path):
                force_setattr(self, name, BudgetPlace(Path(place)) if name == "budget" else Path(place))
        force_setattr(self, "_by_model", {lane.model: lane for lane in reversed(self.lanes)})
        if self.mode not in MODES:
            raise ConfigurationError(f"mode {self.mode!r} is none of {', '.join(MODES)}")
        if self.measures and self.mode == "record":
            # What an earlier run stored is no call of this one.
            force_setattr(self, "mode", "live")
        if self.measures and self.mode != "live":
            reason = f"mode {self.mode} answers some by itself: use live"
            raise ConfigurationError(f"a measurement sends every call, and {reason}")
        if self.snapshot is not None and self.mode not in ("replay", "strict"):
            raise ConfigurationError(f"a snapshot is read in mode replay or strict; mode {self.mode} reads none")
        if not 0 <= self.max_age_s < 1e10:
            raise ConfigurationError(f"max_age_s ({self.max_age_s:g}) must be seconds, 0 or more")
        if self.tier is not None and self.tier not in TIERS:
            raise ConfigurationError(f"tier {self.tier!r} is none of {', '.join(TIERS)}")
        if self.cluster is not None and (self.measures or self.snapshot is not None or self.mode == "strict"):
            why = "a measurement's calls are sent by this process" if self.measures else "what is stored is read here"
            raise ConfigurationError(f"a cluster (--ray) can carry no call of this run, since {why}: leave it out")
        if self.max_cost is not None and not 0 <= self.max_cost < 1e9:
            raise ConfigurationError(f"max_cost ({self.max_cost:g}) must be dollars, 0 or more")

    def __repr__(self) -> str:
        # The environment holds keys, and a repr ends in logs and tracebacks.
        lanes = ", ".join(lane.model for lane in self.lanes)
        cache = self.server or self.cache or "default"
        return f"<Settings [lanes: {lanes or 'none declared'}; mode {self.mode}; cache {cache}]>"

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment's variables."""
        return os.environ if self.environment is None else self.environment

    @property
    def is_capped(self) -> bool:
        """Whether what calls cost has a limit."""
        return self.max_cost is not None or self.has_payers

    @property
    def means(self) -> ReachSettings:
        """What is needed to reach a provider: addresses, API keys, variables."""
        return ReachSettings(
            variables=self.variables,
            providers=self.providers,
            key_variables=self.key_variables,
            needs_keys=self.needs_keys,
            base_url=self.base_url,
            extras={model: facts.extra for model, facts in self.models.items() if facts.extra},
            others=self.others.provider,
            tier=self.tier,
            is_capped=self.is_capped,
        )

    def has_provider(self, name: str) -> bool:
        """Returns whether there is a provider of this name, even one of a package that can't be used."""
        try:
            return name in self.providers or name in PROVIDERS or self.others.provider(name) is not None
        except ConfigurationError:
            return True

    def search_row_of(self, model: str) -> SearchEngine | None:
        """Returns the engine of `search/NAME`; None if there is none, and for the corpus."""
        return row_of(model, self.searches, self.others.search)

    def lane_of(self, model: str) -> Lane:
        """Returns the declared lane of a model, else the default lane under its name."""
        declared = self.declared_lane(model)
        if declared is None and is_host(model):
            # The declaration for every host applies to each host's own lane.
            declared = self.declared_lane(EVERY_HOST)
        if is_page(model) or is_search(model):
            lane = None if declared is None else structs.replace(declared, model=model)
            return retrieval_lane_of(model, lane, self.search_row_of(model) if is_search(model) else None)
        if declared is not None:
            return declared
        return structs.replace(self.default_lane, model=model) if self.default_lane is not None else Lane(model)

    def declared_lane(self, model: str) -> Lane | None:
        """Returns the lane that is declared for a model; None if there is none."""
        return self._by_model.get(model)

    def quota_of(self, model: str) -> Quota:
        """Returns the quota of all API keys of a model together: each has the declared quota."""
        return summed([declared_quota(self.lane_of(model))] * self._keys_of(model))

    def concurrency_of(self, model: str) -> int:
        """Returns how many calls to a model may be in flight at once, over all its API keys."""
        keys = self._keys_of(model)
        return keys * capped_by_files(self.lane_of(model), keys).in_flight_most

    def _keys_of(self, model: str) -> int:
        return len(self.key_variables.get(model, ("",)))

    def day(self) -> str:
        """Returns the day (YYYY-MM-DD, by UTC) whose prices and models hold."""
        return day_of(self.clock() // DAY_S)

    def price_table(self, day: str | None = None) -> Prices:
        """Returns the bundled prices of a day (None: today), with the prices of these settings in their place where
        there are any."""
        day = day or self.day()
        models = {**bundled_models().prices(day), **search_prices()}
        others, completed = partial(self._price_by_others, day=day), partial(self._completed, day=day)
        return Prices(models, others, completed).replaced_by(self.prices)

    def _completed(self, model: str, price: Price, day: str) -> Price:
        """Returns a model's listed price with what these settings know of its calls."""
        protocol = self._protocol_of(model)
        opens_any_file = protocol is not None and protocol.opens_any_file
        return structs.replace(
            price,
            output_max=self.output_max(model, day) if price.output_max is None else price.output_max,
            window=self.facts_of(model, day).window,
            unsized=unsized_with_files if opens_any_file else unsized_in,
            is_marked=protocol is not None and protocol.caches_marked,
            extra=self.models.get(model, Facts()).extra or None,
            tier=None if price.is_by_call else self._tier_of(model),
            place=price.place if self._of_provider(is_regional, model) else 1.0,
        )

    def facts_of(self, model: str, day: str | None = None) -> Facts:
        """Returns the facts about a model on a day (None: today), from the configuration, else from the table."""
        declared = self.models.get(model, Facts())
        listed = bundled_models().of(declared.answers_as or model, day or self.day())
        if declared.answers_as is not None:
            # A deployment is not retired on its model's day.
            listed = structs.replace(listed, retires=None, answered_by=None)
        return declared.over(listed)

    def output_max(self, model: str, day: str | None = None) -> int | None:
        """Returns the longest answer, in tokens, to a call without max_tokens; None: not known. Some protocols
        always send a max_tokens."""
        protocol = self._protocol_of(model)
        sent = None if protocol is None else protocol.max_tokens_sent(model.partition("/")[2])
        return self.facts_of(model, day).max_output if sent is None else sent

    def _protocol_of(self, model: str) -> WireProtocol | None:
        return self._of_provider(protocol_of, model)

    def _of_provider(self, asked: Callable[[str, ReachSettings], _T], model: str) -> _T | None:
        """Returns what is asked of a model's provider; None: there is none, as of a search, or it is not known."""
        try:
            return None if is_search(model) or is_page(model) else asked(model, self.means)
        except ConfigurationError:
            return None

    def _price_by_others(self, model: str, day: str) -> ListedPrice | None:
        """Returns the price of a model under another spelling, or of a search from the row of its engine."""
        if not is_search(model):
            return bundled_models().price(model, day)
        row = self.search_row_of(model)
        return None if row is None else ListedPrice(price_of(row))

    def _tier_of(self, model: str) -> str | None:
        """Returns the tier that is reckoned with: of two attempts the dearer one; `auto` if an account's default may
        pass the limit."""
        if self.tier is not None:
            return self.tier.rpartition("-then-")[2]
        return "auto" if self.is_capped and self._of_provider(has_default_tier, model) else None

    def cache_folder(self) -> Path:
        """Returns the folder that `cache` names, else the user's cache folder; does not create it."""
        return self.cache if self.cache is not None else default_cache_folder(self.variables)


def day_of(number: float) -> str:
    """Returns a day by its number since 1970."""
    return datetime.fromtimestamp(number * DAY_S, UTC).date().isoformat()


def default_cache_folder(variables: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "millstream"
    return Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream"
