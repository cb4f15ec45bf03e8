"""Reads `load.json`, complete and of a known version, or raises an error that says what is wrong.

Opens no file.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from .load_json import VERSION, LoadFigures
from .spectrum import Unreadable, spectrum

_TIMES = ("latency", "service", "first_token", "token", "gap", "own_delay", "held_by_lane")


class DamagedLoad(ValueError):
    """Raised for a file that is no sound `load.json`; the message is worded as the end of a sentence."""


class _Head(Struct):
    version: Any = None
    models: Any = None


def load_of(data: bytes) -> LoadFigures:
    """Returns the figures in the bytes of a `load.json`; raises DamagedLoad."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLoad(f"expected the figures of a load test as JSON, got: {error}") from error
    if head.version != VERSION or isinstance(head.version, bool):
        version = "none" if head.version is None else str(head.version)[:40]
        raise DamagedLoad(f"expected version {VERSION}, got {version}: read it with the program that wrote it")
    try:
        load = msgspec.json.decode(data, type=LoadFigures)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLoad(f"expected the figures of a load test, got: {error}") from error
    if not load.models:
        raise DamagedLoad("expected the figures of at least 1 model, got none")
    for model in load.models.values():
        for name in _TIMES:
            try:
                spectrum(getattr(model, name))
            except Unreadable as error:
                raise DamagedLoad(f"{name}: {error}") from error
    return load
