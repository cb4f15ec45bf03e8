"""The settings of a gateway: its callers, the names of models, and the bounds.

Reads no file and no variable: the configuration and the verb do.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

# The name of the only caller, if none are declared.
ANYONE = ""


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
