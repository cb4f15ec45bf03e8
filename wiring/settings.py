"""Everything an engine is built from, as a person gave it, and where its cache lies.

The one place that reads the environment. Opens nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field, structs
from msgspec.structs import force_setattr

from ..engine.budget_file import BudgetPlace
from ..engine.cache import MODES, Mode
from ..engine.lane import Lane
from ..engine.money import Listed, Price, Prices, bundled_prices
from ..engine.recall import DAY_S
from ..engine.retry import RetryPolicy
from ..providers.access import ConfigurationError, Means, protocol_of
from ..providers.models import Facts, bundled_models
from ..providers.retrieval import EVERY_HOST, is_host, is_page, price_of, search_prices
from ..providers.retrieval import lane_of as retrieval_lane_of
from ..providers.search.access import is_search, row_of
from ..providers.search.table import SearchEngine
from ..providers.table import Provider
from .files import capped_by_files
from .others import Others


class Settings(Struct, frozen=True, kw_only=True):
    """Everything an engine is built from, with the defaults a person gets who sets nothing.

    Searches and pages of earlier runs count while they are younger than `max_age_s`; since `run_started` (seconds since
    1970; None: when the engine opens) they are the run's own, failures too, but for those before `retry_started`.
    `allow_hosts`: `NAME[:PORT][=ADDRESS:PORT]` of hosts whose addresses need not be public. `corpus`: a folder of
    documents for `search/corpus`. `models`: what a person knows of models' answers, which goes before the table.
    `sink`: `NAME[:ARGUMENT]` of one that an installed package offers, which is given every outcome. `others` keeps what
    was found of such packages. `measures`: a provider is looked at as it is: every call is sent, once, whatever comes
    is final, no answer is kept and no header slows a lane down.
    `budget`: the file in which money under `max_cost` is counted, over engines and kills. Without it each engine has
    its own limit, beside the cache; one that was killed leaves what it may have spent to the next engine of the same
    program (its main file, or `budget_name`) with the same lanes and limit. `spent` counts before either.
    """

    lanes: tuple[Lane, ...] = ()
    default_lane: Lane | None = None
    providers: Mapping[str, Provider] = {}
    searches: Mapping[str, SearchEngine] = {}
    key_variables: Mapping[str, tuple[str, ...]] = {}
    needs_keys: bool = True
    prices: Mapping[str, Price] = {}
    models: Mapping[str, Facts] = {}
    base_url: str | None = None
    cache: Path | None = None
    mode: Mode = "record"
    run_id: str | None = None
    max_cost: float | None = None
    spent: float = 0.0
    budget: BudgetPlace | None = None
    budget_name: str = ""
    policy: RetryPolicy = RetryPolicy()
    environment: Mapping[str, str] | None = None
    max_age_s: float = DAY_S
    run_started: float | None = None
    retry_started: float | None = None
    snapshot: Path | None = None
    allow_hosts: tuple[str, ...] = ()
    corpus: Path | None = None
    sink: str | None = None
    measures: bool = False
    others: Others = field(default_factory=Others)

    def __post_init__(self) -> None:
        for name in ("cache", "snapshot", "corpus", "budget"):
            if isinstance(given := getattr(self, name), str | Path):
                force_setattr(self, name, BudgetPlace(Path(given)) if name == "budget" else Path(given))
        if self.mode not in MODES:
            raise ConfigurationError(f"mode {self.mode!r} is none of {', '.join(MODES)}")
        if self.measures and self.mode == "record":
            # What an earlier run stored is no call of this one.
            force_setattr(self, "mode", "live")
        if self.measures and self.mode != "live":
            said = f"mode {self.mode} answers some by itself: use live"
            raise ConfigurationError(f"a measurement sends every call, and {said}")
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
            others=self.others.provider,
        )

    def search_row_of(self, model: str) -> SearchEngine | None:
        """That of `search/NAME`; None where nobody has it, and for the corpus."""
        return row_of(model, self.searches, self.others.search)

    def lane_of(self, model: str) -> Lane:
        """The declared lane, else the default one under this name: for a model, what the flags say."""
        declared = self._declared(model)
        if declared is None and is_host(model):
            # What was declared for every host, of which each has a lane of its own.
            declared = self._declared(EVERY_HOST)
        if is_page(model) or is_search(model):
            own = None if declared is None else structs.replace(declared, model=model)
            return retrieval_lane_of(model, own, self.search_row_of(model) if is_search(model) else None)
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
        models = {**bundled.models, **search_prices()}
        table = structs.replace(bundled, models=models, others=self._price_by_others, output_max=self.output_max)
        return table.replaced_by(self.prices)

    def facts_of(self, model: str) -> Facts:
        """What is known of a model's answers: by the configuration, else by the table."""
        return self.models.get(model, Facts()).over(bundled_models().of(model))

    def output_max(self, model: str) -> int | None:
        """The most tokens of an answer to a call that sets no max_tokens; None: nobody knows. Some protocols send a
        max_tokens all the same."""
        if is_search(model) or is_page(model):
            return None
        try:
            sent = protocol_of(model, self.means).max_tokens_sent(model.partition("/")[2])
        except ConfigurationError:
            sent = None
        return self.facts_of(model).max_output if sent is None else sent

    def _price_by_others(self, model: str) -> Listed | None:
        """What a search costs by the row of somebody's package, which says itself when that was so."""
        row = self.search_row_of(model) if is_search(model) else None
        return None if row is None else Listed(price_of(row))

    def cache_folder(self) -> Path:
        return self.cache if self.cache is not None else default_cache_folder(self.variables)


def default_cache_folder(variables: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "millstream"
    return Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream"
