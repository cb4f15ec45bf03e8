"""The settings of a gateway (its callers, the names of models, and the bounds), and their tables in a configuration
file, [gateway] and [gateway.callers.NAME], checked strictly.

Tokens are only ever named, as env:NAME; one that is written out is rejected without being shown. Reads no environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from . import values
from .documents import Document

# The name of the only caller, if none are declared.
ANYONE = ""
TABLE = "gateway"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST = values.Text(
    "a host's name as in gateway.example or gateway.example:8400",
    re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"),
)
_ORIGIN = values.Text("the origin of a page as in https://page.example", re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+"))
_PATTERN = values.Text('a model or a pattern of models, as in "openai/*"', re.compile(".*/.*"))


class CallerSettings(Struct, frozen=True):
    """One caller of the gateway. `token` is the environment variable of its token; `models` are patterns of the models
    it may ask, empty: all. `max_cost` is in dollars, `rpm` and `tpm` per minute; None: no bound of its own."""

    name: str
    token: str
    max_cost: float | None = None
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    models: tuple[str, ...] = ()


class GatewaySettings(Struct, frozen=True):
    """The gateway's settings. `token` is the environment variable of the one token without a caller's name; `hosts` and
    `origins` are the Host and Origin headers that are accepted; `models` maps clients' names to models."""

    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    models: Mapping[str, str] = {}
    callers: tuple[CallerSettings, ...] = ()


_GATEWAY: dict[str, Any] = {
    "token": values.Variable("token"),
    "hosts": values.Several(_HOST),
    "origins": values.Several(_ORIGIN),
}
_CALLER: dict[str, Any] = {
    "token": values.Variable("token"),
    "max_cost": values.MAX_COST,
    "rpm": values.RPM,
    "tpm": values.TPM,
    "concurrency": values.CONCURRENCY,
    "models": values.Several(_PATTERN),
}


def gateway_of(document: Document) -> GatewaySettings:
    """Returns the gateway's settings from a file, with defaults for what the file lacks."""
    rows = dict(document.rows((TABLE,), document.values.get(TABLE, {})))
    models, callers = rows.pop("models", {}), rows.pop("callers", {})
    fields = document.table((TABLE,), rows, _GATEWAY)
    fields["hosts"] = tuple(map(str.lower, fields.get("hosts", ())))
    settings = tuple(_caller(document, name, row) for name, row in document.rows((TABLE, "callers"), callers).items())
    variables = [name for name in (fields.get("token"), *(caller.token for caller in settings)) if name is not None]
    twice = next((name for name in variables if variables.count(name) > 1), None)
    if twice is not None:
        raise document.refusal((TABLE,), f"expected a token of its own for each caller, got env:{twice} twice")
    return GatewaySettings(models=_models(document, models), callers=settings, **fields)


def _caller(document: Document, name: str, row: object) -> CallerSettings:
    here = (TABLE, "callers", name)
    if not _NAME.fullmatch(name) or name == ANYONE:
        raise document.refusal(here, "expected a name of up to 64 letters, digits, dots and dashes")
    return CallerSettings(name, **document.table(here, row, _CALLER, ("token",)))


def _models(document: Document, rows: object) -> dict[str, str]:
    return {
        name: document.read((TABLE, "models", name), values.ModelName(), model)
        for name, model in document.rows((TABLE, "models"), rows).items()
    }
