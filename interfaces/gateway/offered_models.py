"""Which models callers may name: of providers that were set up; and the list of those that are known beforehand.

A provider that needs no API key and has a built-in address on this machine would lead any caller to a local port that
was not meant for it. Any other model of a known provider works too, beside the listed ones. Knows no request.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Container, Iterable
from urllib.parse import urlsplit

from ...configuration.gateway_settings import GatewaySettings
from ...providers.llm.serve_dialect import RequestRefusal, ServedModel
from ...providers.retrieval import is_page
from ...providers.search.access import is_search
from ...providers.table import PROVIDERS, Provider
from ...wiring import ConfigurationError, Settings, access_to
from .callers import Caller


def unreached(settings: Settings, gateway: GatewaySettings) -> frozenset[str]:
    """Returns the providers with an address on this machine that no configuration, variable or --base-url sets up."""
    if settings.base_url is not None:
        return frozenset()
    named = {*settings.providers, *(_provider_of(lane.model) for lane in settings.lanes)}
    named |= {_provider_of(model) for model in gateway.models.values()}
    return frozenset(
        name
        for name, row in PROVIDERS.items()
        if name not in named
        and is_loopback(urlsplit(row.base_url).hostname or "")
        and not _is_led_elsewhere(row, settings)
    )


def check_reached(word: str, model: str, names: frozenset[str]) -> None:
    name = _provider_of(model)
    if name not in names:
        return
    variable = PROVIDERS[name].url_variable
    ways = f"start it by `serve --base-url URL`, or give [providers.{name}] a base_url in a --config file"
    ways += f", or set {variable}" if variable else ""
    raise RequestRefusal(
        f"model {word!r}: {name} would be a server on the gateway's own machine, and nobody set one up: {ways}",
        "model",
        "unknown_model",
        404,
    )


def _provider_of(model: str) -> str:
    return model.partition("/")[0]


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_led_elsewhere(row: Provider, settings: Settings) -> bool:
    return bool(row.url_variable and settings.variables.get(row.url_variable, "").strip())


def models_for(
    caller: Caller, gateway: GatewaySettings, settings: Settings, unreached: Container[str]
) -> list[ServedModel]:
    """Returns the models once each, in order: the gateway's own names, declared lanes, then models with a price whose
    provider can be reached and is not `unreached`. Sends nothing."""
    others = (model for model in _models(settings) if _provider_of(model) not in unreached)
    named = {**gateway.models, **{model: model for model in others if model not in gateway.models}}
    return [ServedModel(name, _provider_of(model)) for name, model in named.items() if caller.may_ask(model)]


def _models(settings: Settings) -> Iterable[str]:
    for lane in settings.lanes:
        if not is_page(lane.model) and not is_search(lane.model):
            yield lane.model
    reached: dict[str, bool] = {}
    for model in sorted(settings.price_table().models):
        provider = _provider_of(model)
        if is_search(model):
            continue
        if provider not in reached:
            try:
                access_to(model, settings)
                reached[provider] = True
            except ConfigurationError:
                reached[provider] = False
        if reached[provider]:
            yield model
