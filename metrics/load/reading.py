"""Reads `load.json`, complete and of a known version, or raises an error that says what is wrong.

Opens no file.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import Struct

from .load_json import VERSION, LoadFigures, LoadPart, ModelFigures, Times
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
        raise DamagedLoad(
            f"expected version {VERSION}, got {_version_text(head.version)}: read it with the program that wrote it"
        )
    try:
        load = msgspec.json.decode(data, type=LoadFigures)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedLoad(f"expected the figures of a load test, got: {error}") from error
    if not load.models:
        raise DamagedLoad("expected the figures of at least 1 model, got none")
    for model in load.models.values():
        _check(model)
    return load


def _check(model: ModelFigures) -> None:
    """Raises DamagedLoad for figures that can't be drawn, or would be drawn wrongly."""
    for name in _TIMES:
        times: Times = getattr(model, name)
        try:
            spectrum(times)
        except Unreadable as error:
            raise DamagedLoad(f"{name}: {error}") from error
    every = [getattr(model, name) for name in _TIMES]
    parts: tuple[LoadPart, ...] = (*model.slices, *model.steps)
    of_parts = (times for part in parts for times in (part.latency, part.first_token, part.token, part.gap))
    every += [times for times in of_parts if times is not None]
    for times in every:
        seconds = [times.mean_s, times.longest_s]
        for each in times.percentiles:
            if not 0 < each.percent < 100:
                raise DamagedLoad(f"expected percentiles between 0 and 100, got {each.percent:g}")
            seconds += [value for value in (each.value_s, each.low_s, each.high_s) if value is not None]
        if times.count < 0 or min(seconds) < 0:
            raise DamagedLoad("expected counts and times of 0 and more, got one below")
    if any(part.seconds < 0 or part.begins_s < 0 or part.calls < 0 or (part.rate or 0) < 0 for part in parts):
        raise DamagedLoad("expected parts with times and counts of 0 and more, got one below")
    if any((part.kept or 0) < 0 or (part.output_tokens or 0) < 0 for part in parts):
        raise DamagedLoad("expected parts with counts of 0 and more, got one below")
    numbers = (model.calls, model.answered, model.rate, model.goodput or 0, model.output_tokens_per_s)
    if min(numbers) < 0 or not all(map(math.isfinite, numbers)):
        raise DamagedLoad("expected counts and rates of 0 and more, got one below")


def _version_text(value: Any) -> str:
    return "none" if value is None else str(value)[:40]
