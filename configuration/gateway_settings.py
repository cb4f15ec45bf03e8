"""The settings of a gateway: its callers, the names of models, and the bounds.

Reads no file and no variable: the configuration and the verb do.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

# The caller who has no name, where none are declared.
ANYONE = ""


class CallerSettings(Struct, frozen=True):
    """One caller of the gateway. `token` is the variable with its token; `models` are patterns, empty: all models.
    None of the others: no bound of its own."""

    name: str
    token: str
    max_cost: float | None = None
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    models: tuple[str, ...] = ()


class GatewaySettings(Struct, frozen=True):
    """The gateway's settings. `token` is the variable of the one plain token; `models` maps clients' names to
    models."""

    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    models: Mapping[str, str] = {}
    callers: tuple[CallerSettings, ...] = ()
