"""The configuration file: lanes, providers and prices, checked strictly, and the settings of an engine from them.

Owns the names of the file's tables and keys. An API key is named as env:NAME; one that is written out is rejected
without being shown. Reads no environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct, structs

from ..engine.attempts.retry import RetryPolicy
from ..engine.call import WEB
from ..engine.lane import Lane
from ..engine.prices import Price
from ..format import command_text
from ..providers.kinds import KINDS
from ..providers.models import Facts, Temperature
from ..providers.retrieval import EVERY_HOST, is_page
from ..providers.search.access import is_search
from ..providers.search.table import ENGINES, SearchEngine
from ..providers.table import PROVIDERS, Provider, row_of_kind
from ..wiring import ConfigurationError, Settings, accesses_to
from . import values
from .documents import Document
from .errors import UsageError, nearest
from .gateway_settings import GatewaySettings, gateway_of
from .options import SENDING, SendingOptions

TABLES = ("lanes", "providers", "searches", "prices", "models", "gateway", "run", "task")
_ANY = "any/model"


class Configuration(Struct, frozen=True):
    """The declarations of a file; empty without a file. `key_variables` has, by model, the environment variables of its
    API keys; `models` has the facts declared about models."""

    lanes: tuple[Lane, ...] = ()
    providers: dict[str, Provider] = {}
    searches: dict[str, SearchEngine] = {}
    key_variables: dict[str, tuple[str, ...]] = {}
    prices: dict[str, Price] = {}
    models: dict[str, Facts] = {}
    gateway: GatewaySettings = GatewaySettings()


_Kinds = dict[str, values.ValueKind[Any]]
_LANE: _Kinds = {
    "rpm": values.RPM,
    "tpm": values.TPM,
    "itpm": values.ITPM,
    "otpm": values.OTPM,
    "burst": values.BURST,
    "concurrency": values.CONCURRENCY,
    "timeout": values.TIMEOUT,
    "keys": values.Variables("key"),
}
_PROVIDER: _Kinds = {
    "kind": values.WordChoice(tuple(KINDS)),
    "base_url": values.BASE_URL,
    "key": values.Variable("key"),
    "identity": values.Text("a name that stands for the address in keys of calls"),
    "version": values.Text("a version of the API"),
    "region": values.Text("a region or location"),
    "project": values.Text("a project"),
    "max_tokens_name": values.WordChoice(("max_tokens", "max_completion_tokens")),
    "store": values.Switch(),
}
_SEARCH: _Kinds = {name: _PROVIDER[name] for name in ("base_url", "key", "identity")}
_PRICE: _Kinds = {
    **dict.fromkeys(("input", "output", "cached", "write_5m", "write_1h"), values.PRICE),
    "tiers": values.NumbersByName(values.Number("a number of times the price", 0.001, 999)),
}
_MODEL: _Kinds = {
    "thinks": values.Switch(),
    "max_output": values.WholeNumber("tokens", 1, 100_000_000),
    "window": values.WholeNumber("tokens", 1, 100_000_000),
    "temperature": values.WordChoice(get_args(Temperature)),
    "efforts": values.Several(values.EFFORT),
    "answers_as": values.ModelName(),
    "extra": values.BODY_FIELDS,
}


def configuration_of(document: Document) -> Configuration:
    """Returns everything that a document declares except its runs. Raises UsageError for what is wrong."""
    for name in document.values:
        if name not in TABLES:
            names = ", ".join(TABLES)
            raise document.refusal((name,), f"unknown table{nearest(str(name), TABLES)}; allowed are {names}")
    lanes, key_variables = _lanes(document)
    searches, prices, models = _searches(document), _prices(document), _models(document)
    return Configuration(lanes, _providers(document), searches, key_variables, prices, models, gateway_of(document))


def read_configuration(path: str | None, *, may_hold_runs: bool = False) -> Configuration:
    """Returns what a file declares, or nothing without a file. Raises UsageError for what is wrong, and for a run file,
    unless it was the file of an earlier run."""
    if path is None:
        return Configuration()
    document = Document(Path(path))
    if "run" in document.values and not may_hold_runs:
        raise document.refusal(
            ("run",), f"a --config file holds no runs: start these with `{command_text('run', path)}`"
        )
    return configuration_of(document)


def _lanes(document: Document) -> tuple[tuple[Lane, ...], dict[str, tuple[str, ...]]]:
    lanes, key_variables = [], {}
    for model, rows in _entries(document, "lanes"):
        fields = document.table(("lanes", model), rows, _kinds_of_lane(model))
        if "keys" in fields:
            key_variables[model] = fields.pop("keys")
        if "timeout" in fields:
            fields["timeout_s"] = fields.pop("timeout")
        lanes.append(Lane(model, **fields))
    return tuple(lanes), key_variables


def _kinds_of_lane(name: str) -> _Kinds:
    """Returns the fields that a lane's table may have, with their kinds. Searches and pages have no tokens; pages have
    no API keys and no timeout either."""
    if is_page(name):
        return {key: _LANE[key] for key in ("rpm", "concurrency")}
    if is_search(name):
        return {key: _LANE[key] for key in ("rpm", "concurrency", "timeout", "keys")}
    return _LANE


def _providers(document: Document) -> dict[str, Provider]:
    providers = {}
    for name, rows in document.rows(("providers",), document.values.get("providers", {})).items():
        here = ("providers", name)
        if not values.NAME.fullmatch(name):
            raise document.refusal(here, "expected a name of letters, digits, dots and dashes")
        provider = _changed_provider(name, rows)
        fields = document.table(here, rows, _PROVIDER, () if provider is not None else ("base_url",))
        if provider is None:
            provider = Provider(fields["base_url"])
        # A known provider keeps what the file does not say; what it says goes before any variable.
        variables = {fact: names for fact, names in provider.fact_variables.items() if fact not in fields}
        changed: dict[str, Any] = {"fact_variables": variables}
        if "base_url" in fields:
            changed |= {"url_variable": None, "identity": None}
        if "key" in fields:
            changed |= {"key_variable": fields.pop("key"), "key_variables_too": ()}
        if "max_tokens_name" in fields:
            changed["names"] = {**provider.names, "max_tokens": fields.pop("max_tokens_name")}
        providers[name] = structs.replace(provider, **{**changed, **fields})
        if "store" in fields and providers[name].kind != "openai-responses":
            raise document.refusal((*here, "store"), "only kind openai-responses has it: leave it out")
    return providers


def _searches(document: Document) -> dict[str, SearchEngine]:
    """Returns search engines with changed addresses and API keys. One that needs no API key accepts none."""
    searches = {}
    for name, rows in document.rows(("searches",), document.values.get("searches", {})).items():
        here, engine = ("searches", name), ENGINES.get(name)
        if engine is None:
            listed = ", ".join(ENGINES)
            raise document.refusal(here, f"no search engine of this name{nearest(name, ENGINES)}; known are {listed}")
        kinds = _SEARCH if engine.key_variables else {key: kind for key, kind in _SEARCH.items() if key != "key"}
        fields = document.table(here, rows, kinds)
        searches[name] = structs.replace(
            engine,
            base_url=fields.get("base_url", engine.base_url),
            url_variable="" if "base_url" in fields else engine.url_variable,
            key_variables=(fields["key"],) if "key" in fields else engine.key_variables,
            identity=fields.get("identity"),
        )
    return searches


def _changed_provider(name: str, rows: object) -> Provider | None:
    """Returns the provider that a table changes: the one of its name, else the one made for its kind; None for a new
    one."""
    kind = rows.get("kind") if isinstance(rows, dict) else None
    provider = PROVIDERS.get(name)
    if provider is not None and kind in (None, provider.kind):
        return provider
    return row_of_kind(kind) if isinstance(kind, str) else None


def _prices(document: Document) -> dict[str, Price]:
    return {
        model: Price(**document.table(("prices", model), rows, _PRICE, ("input", "output")))
        for model, rows in _entries(document, "prices")
    }


def _models(document: Document) -> dict[str, Facts]:
    """Returns facts about models' answers. An empty table is an error."""
    models = {}
    for model, rows in _entries(document, "models"):
        fields = document.table(("models", model), rows, _MODEL)
        if not fields:
            raise document.refusal(("models", model), f"expected one of {', '.join(_MODEL)}")
        models[model] = Facts(**fields)
    return models


def _entries(document: Document, table: str) -> list[tuple[str, Any]]:
    """Returns the entries of a table whose keys are models."""
    rows = document.rows((table,), document.values.get(table, {}))
    for model in rows:
        if table == "lanes" and is_page(model):
            if model != model.lower() or model == f"{WEB}/" or ("*" in model and model != EVERY_HOST):
                raise document.refusal(
                    (table, model),
                    f"expected {WEB} for all pages together, {WEB}/HOST in lower case, or {EVERY_HOST} for every host",
                )
        else:
            document.read((table, model), values.ModelName(), model)
    return list(rows.items())


def settings_for(
    names: Sequence[str], sending: SendingOptions, configuration: Configuration, *, needs_keys: bool = True
) -> Settings:
    """Returns the settings of an engine for these models and searches. Flags take precedence over the file, the file
    over the defaults. Flags of quotas are for models; searches and pages have the quotas of the file. `needs_keys`
    False: a missing API key is no error."""
    declared = {lane.model: lane for lane in configuration.lanes}
    try:
        lanes = tuple(
            structs.replace(declared.get(name) or Lane(name), **_given_for(Lane, sending))
            for name in names
            if not is_search(name)
        )
        lanes += tuple(lane for name, lane in declared.items() if is_page(name) or (is_search(name) and name in names))
        return Settings(
            lanes=lanes,
            declared=tuple(declared),
            providers=configuration.providers,
            searches=configuration.searches,
            key_variables={m: each for m, each in configuration.key_variables.items() if m in names},
            prices=configuration.prices,
            models=configuration.models,
            needs_keys=needs_keys,
            policy=RetryPolicy(**_given_for(RetryPolicy, sending)),
            **{"mode": "record" if sending.snapshot is None else "replay", **_given_for(Settings, sending)},
        )
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def _given_for(struct: type[Struct], sending: SendingOptions) -> dict[str, Any]:
    """Returns the given options of sending that are fields of this struct, by the fields' names."""
    given = {
        SENDING[name].sets or name: Path(value).expanduser() if values.is_path(SENDING[name].kind, value) else value
        for name, value in sending.given().items()
    }
    return {name: value for name, value in given.items() if name in struct.__struct_fields__}


def settings_for_any(sending: SendingOptions, configuration: Configuration) -> Settings:
    """Returns the settings of an engine for any model. Flags of quotas apply to models that the file does not
    declare, too."""
    names = [lane.model for lane in configuration.lanes]
    models = [name for name in names if not is_page(name) and not is_search(name)]
    settings = settings_for((*models, _ANY), sending, configuration)
    *lanes, default = settings.lanes[: len(models) + 1]
    return structs.replace(settings, lanes=tuple(lanes), default_lane=default)


def settings_of(sending: SendingOptions) -> Settings:
    """Returns the engine settings for these sending options. A lane of the configuration whose API key is missing is
    left out: it is an error only when its model is asked."""
    settings = settings_for_any(sending, read_configuration(sending.config))
    return structs.replace(
        settings, lanes=tuple(lane for lane in settings.lanes if _is_reachable(lane.model, settings))
    )


def _is_reachable(model: str, settings: Settings) -> bool:
    try:
        accesses_to(model, settings)
    except ConfigurationError:
        return False
    return True


def check_prices(lanes: Iterable[str], settings: Settings) -> None:
    """Raises UsageError if a limit is set and a lane has no price."""
    if settings.max_cost is None:
        return
    prices = settings.price_table()
    for model in lanes:
        if prices.get(model) is None:
            raise UsageError(
                f"model {model} has no price, so --max-cost can't be kept: give it one under "
                f'[prices."{model}"] in a --config file'
            )
