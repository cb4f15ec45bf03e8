"""`millstream models`: providers and search engines, the API key each needs and whether it is set, and prices of
models.

Owns the arguments and the tables of models. Search engines: search_listing; whether a key works: checks.
"""

from __future__ import annotations

import argparse
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

from ....configuration import values
from ....configuration.declared_options import flag
from ....configuration.errors import DONE, UsageError, nearest
from ....configuration.options import add_sending
from ....report.text import table
from ...terminal.output import note, say_result

if TYPE_CHECKING:
    from ....configuration.configuration import Configuration
    from ....configuration.options import SendingOptions
    from ....providers.table import Provider
    from ....wiring import Settings

HELP = "list providers and search engines with their keys and prices; test whether each answers"
EXAMPLES = (
    "models",
    "models openai",
    "models --check openai/gpt-6-luna",
)
_PROVIDERS = ("provider", "kind", "key", "address")
_TEMPERATURES = {"ignored": "is ignored", "refused": "is refused", "at-no-effort": "only at effort none"}
_MODELS = ("model", "input", "output", "as of", "remark")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "only",
        nargs="*",
        metavar="NAME",
        help="only what has this name or a name that begins with it: a provider, PROVIDER/MODEL or search/ENGINE",
    )
    parser.add_argument(
        "--check",
        nargs="*",
        type=flag(values.ModelName()),
        metavar="PROVIDER/MODEL",
        help="make one tiny call to each of these, a search to search/ENGINE, and compare the table of models with its "
        "provider's list (default: the lanes of --config, else the cheapest model of each provider and each search "
        "engine whose key is set)",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    add_sending(parser)


def run(options: argparse.Namespace) -> int:
    from ....configuration.configuration import read_configuration, settings_for
    from ..search_listing import searches, tell, troubles_of_others

    sending = options.sending
    configuration = read_configuration(sending.config)
    if options.check is not None:
        if options.only:
            raise UsageError(f"models: {options.only[0]!r} is one word too many: name models after --check")
        return _check(tuple(dict.fromkeys(options.check)), sending, configuration, is_json=options.json)
    engines = tuple(lane.model for lane in configuration.lanes if lane.model.startswith("search/"))
    settings = settings_for(engines, sending, configuration)
    providers, models, engine_rows = (
        _only(options.only, rows) for rows in (_providers(settings), _models(settings), searches(settings))
    )
    if not (providers or models or engine_rows):
        names = [one["name"] for one in (*_providers(settings), *searches(settings))]
        raise UsageError(f"models: no provider or search engine {options.only[0]!r}{nearest(options.only[0], names)}")
    for trouble in troubles_of_others(settings):
        note(f"millstream: {trouble}")
    say_result(
        options.json,
        lambda: {"providers": providers, "searches": engine_rows, "models": models},
        lambda: _text(providers, tell(engine_rows) if engine_rows else "", models),
    )
    return DONE


def _only(names: list[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of these names, and those whose name begins with one of them; all rows if there is no name."""

    def is_meant(row: dict[str, Any]) -> bool:
        whole = row.get("model") or row["name"]
        return any(whole == name or whole.startswith(name if "/" in name else f"{name}/") for name in names)

    return [row for row in rows if not names or is_meant(row)]


def _check(models: tuple[str, ...], sending: SendingOptions, configuration: Configuration, *, is_json: bool) -> int:
    from msgspec import structs

    from ....configuration.configuration import settings_for
    from ....providers.retrieval import is_page
    from ..checks import as_json, cheapest, check, exit_code_of, line, list_differences
    from ..search_listing import searches

    if not models:
        bare = settings_for((), sending, configuration)
        ready = [provider["name"] for provider in _providers(bare) if provider["is_ready"]]
        engines = [one["name"] for one in searches(bare) if one["is_ready"] and one["address"]]
        declared = [lane.model for lane in configuration.lanes if not is_page(lane.model)]
        models = tuple(declared or [*cheapest(ready, bare), *engines])
    if not models:
        raise UsageError(
            "models --check: expected models, such as openai/gpt-6-luna, or a provider's key in its variable, got "
            "neither: `millstream models` lists them"
        )
    settings = settings_for(models, sending, configuration)
    if sending.mode is None:
        settings = structs.replace(settings, mode="live")
    checks, lists = check(models, settings), list_differences(models, settings)
    say_result(
        is_json,
        lambda: {"checks": as_json(checks), "lists": lists},
        lambda: "\n".join([*(line(one, settings) for one in checks), *lists]),
    )
    return exit_code_of(checks)


def _providers(settings: Settings) -> list[dict[str, Any]]:
    from ....providers.table import PROVIDERS

    rows = {**PROVIDERS, **settings.providers}
    rows |= settings.others.all_providers(tuple(rows))[0]
    return [_provider(name, row, settings) for name, row in rows.items()]


def _provider(name: str, row: Provider, settings: Settings) -> dict[str, Any]:
    """Returns a provider as plain values. Variables are listed by name, never with their contents."""
    from ....engine.page_urls import shown_address
    from ....providers.kinds import kind_of

    kind, variables = kind_of(row.kind), settings.variables
    keys = [variable for variable in (row.key_variable, *row.key_variables_too) if variable is not None]
    ways = [*((key,) for key in keys), *kind.instead]
    names = list(dict.fromkeys(name for way in ways for name in way))
    are_set = [name for name in names if variables.get(name, "").strip()]
    wanted = {name: value for name in kind.variables if (value := variables.get(name, "").strip())}
    place, lost = kind.place_of(wanted), kind.lost_of(wanted)
    begun = [way for way in ways if not set(way).isdisjoint(are_set)]
    url = settings.base_url or (variables.get(row.url_variable, "").strip() if row.url_variable else "")
    address = url or row.base_url
    return {
        "name": name,
        "kind": row.kind if isinstance(row.kind, str) else "its own",
        "address": shown_address(address) if address else None,
        "address_variable": row.url_variable,
        "is_needed": row.key_variable is not None,
        "variables": names,
        "set": are_set,
        "missing": [name for way in begun for name in way if name not in are_set],
        "found": place,
        "lost": lost,
        "is_ready": lost is None and (place is not None or any(set(way) <= set(are_set) for way in begun)),
    }


def _models(settings: Settings) -> list[dict[str, Any]]:
    from msgspec import structs

    from ....providers.model_remarks import retirement
    from ....providers.models import bundled_models
    from ....providers.search.access import is_search

    prices, rows = settings.price_table(), []
    # A search has a price for each request, which its own table gives.
    for model in sorted(filterfalse(is_search, {*prices.models, *bundled_models().models})):
        facts, listed = settings.facts_of(model), prices.listed(model)
        source = None if listed is None else listed.source
        remarks = [retirement(model, facts, settings.day(), 36_500).removeprefix(f"{model} ")]
        remarks += [f"temperature {text}" for name, text in _TEMPERATURES.items() if facts.temperature == name]
        rows.append(
            {
                "model": model,
                "input": None if listed is None else listed.price.input,
                "output": None if listed is None else listed.price.output,
                "as_of": None if source is None else source.date,
                "source": source.note if source is not None else None if listed is None else "your configuration",
                **structs.asdict(facts),
                "remark": "; ".join(filter(None, remarks)),
            }
        )
    return rows


def _text(providers: list[dict[str, Any]], searches: str, models: list[dict[str, Any]]) -> str:
    rows = [
        (one["name"], one["kind"], _key_of(one), one["address"] or f"in {one['address_variable']}") for one in providers
    ]
    priced = [
        (
            one["model"],
            *("-" if one[name] is None else f"${one[name]:,.2f}" for name in ("input", "output")),
            one["as_of"] or one["source"] or "-",
            one["remark"],
        )
        for one in models
    ]
    note = (
        "prices: dollars a million tokens, as listed on that day; check them. A model that is not listed has no price "
        'until [prices."provider/model"] in a --config file gives it one'
    )
    parts = [
        table([_PROVIDERS, *rows], lean=(0, 1, 2, 3)) if rows else "",
        searches,
        f"{note}\n\n{table([_MODELS, *priced], lean=(0, 4))}" if priced else "",
    ]
    return "\n\n".join(filter(None, parts))


def _key_of(provider: dict[str, Any]) -> str:
    names, texts = provider["variables"], []
    if provider["set"]:
        texts.append(f"{', '.join(provider['set'])}: set")
    elif provider["found"] is not None:
        texts.append(f"{provider['found']}: found")
    if provider["lost"] is not None:
        texts.append(f"there is no file {provider['lost']}")
    if provider["missing"]:
        texts.append(f"{', '.join(provider['missing'])}: not set")
    if texts or not names:
        return "; ".join(texts) or "none needed"
    first, *more = names
    wanted = f"{first} or {more[0]}" if len(more) == 1 else f"{first} or others" if more else first
    return f"{wanted}: not set" if provider["is_needed"] else f"{wanted}: not set, may not be needed"
