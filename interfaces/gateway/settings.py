"""What a gateway is told about itself: who may ask, under which names, within which bounds.

Only what a person writes down. Reads no file and no variable: that the configuration and the verb do.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class CallerSettings(Struct, frozen=True):
    """One caller: `token` names the variable that holds its token; `models` are patterns, none: all. None of the
    others: no bound of its own."""

    name: str
    token: str
    max_cost: float | None = None
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int | None = None
    models: tuple[str, ...] = ()


class GatewaySettings(Struct, frozen=True):
    """`token` names the variable of the one plain token; `models`: names of clients and what they mean."""

    token: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    models: Mapping[str, str] = {}
    callers: tuple[CallerSettings, ...] = ()
