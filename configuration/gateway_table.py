"""The tables [gateway] and [gateway.callers.NAME] of a configuration file, checked strictly.

Tokens are only ever named, as env:NAME; one that is written out is rejected without being shown. Reads no environment.
"""

from __future__ import annotations

import re
from typing import Any

from . import values
from .documents import Document
from .errors import UsageError
from .gateway_settings import ANYONE, CallerSettings, GatewaySettings

TABLE = "gateway"
_ENV = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+")


class _TokenWritten(Exception):
    """Raised for anything but `env:NAME` where the variable of a token is expected."""


class _TokenName:
    expected = "env:NAME, the variable that holds the token"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not _ENV.fullmatch(value):
            raise _TokenWritten
        return value.removeprefix("env:")


class _Host:
    expected = "a host's name as in gateway.example or gateway.example:8400"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not _HOST.fullmatch(value):
            raise ValueError(value)
        return value.lower()


class _Origin:
    expected = "the origin of a page as in https://page.example"

    def read(self, value: object) -> str:
        if not isinstance(value, str) or not _ORIGIN.fullmatch(value):
            raise ValueError(value)
        return value


class _Pattern:
    expected = 'a model or a pattern of models, as in "openai/*"'

    def read(self, value: object) -> str:
        if not isinstance(value, str) or "/" not in value or not value.isprintable():
            raise ValueError(value)
        return value


_GATEWAY: dict[str, Any] = {
    "token": _TokenName(),
    "hosts": values.Several(_Host()),
    "origins": values.Several(_Origin()),
}
_CALLER: dict[str, Any] = {
    "token": _TokenName(),
    "max_cost": values.MAX_COST,
    "rpm": values.RPM,
    "tpm": values.TPM,
    "concurrency": values.CONCURRENCY,
    "models": values.Several(_Pattern()),
}


def gateway_of(document: Document) -> GatewaySettings:
    """Returns the gateway's settings from a file, with defaults for what the file lacks."""
    rows = dict(document.rows((TABLE,), document.values.get(TABLE, {})))
    models, callers = rows.pop("models", {}), rows.pop("callers", {})
    try:
        fields = document.table((TABLE,), rows, _GATEWAY)
    except _TokenWritten:
        raise _token_refusal(document, (TABLE, "token")) from None
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
    try:
        fields = document.table(here, row, _CALLER, ("token",))
    except _TokenWritten:
        raise _token_refusal(document, (*here, "token")) from None
    return CallerSettings(name, **fields)


def _models(document: Document, rows: object) -> dict[str, str]:
    models = {}
    for name, model in document.rows((TABLE, "models"), rows).items():
        try:
            models[name] = values.read(values.ModelName(), model)
        except ValueError as error:
            raise document.refusal((TABLE, "models", name), str(error)) from error
    return models


def _token_refusal(document: Document, keys: tuple[str, ...]) -> UsageError:
    problem = f"expected {_TokenName.expected}, got something else (not shown: it may be a token)"
    return document.refusal(keys, problem)
