"""Decides which providers callers may name: those that were set up.

A provider that needs no API key and has a built-in address on this machine would lead any caller to a local port that
was not meant for it. Pure: knows no request.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from ...configuration.gateway_settings import GatewaySettings
from ...providers.llm.serve_dialect import RequestRefusal
from ...providers.table import PROVIDERS, Provider
from ...wiring import Settings


def unreached(settings: Settings, gateway: GatewaySettings) -> frozenset[str]:
    """Returns the providers with an address on this machine that no configuration, variable or --base-url sets up."""
    if settings.base_url is not None:
        return frozenset()
    named = {*settings.providers, *(_provider_of(lane.model) for lane in settings.lanes)}
    named |= {_provider_of(model) for model in gateway.models.values()}
    return frozenset(
        name
        for name, row in PROVIDERS.items()
        if name not in named and _is_of_this_machine(row) and not _is_led_elsewhere(row, settings)
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


def _is_of_this_machine(row: Provider) -> bool:
    host = urlsplit(row.base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_led_elsewhere(row: Provider, settings: Settings) -> bool:
    return bool(row.url_variable and settings.variables.get(row.url_variable, "").strip())
