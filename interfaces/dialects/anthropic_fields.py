"""Fields of a request to Anthropic Messages: read by their type, or refused as Anthropic words it.

A path leads to a field as Anthropic writes it (`messages.0.content`). null is what was not given. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import orjson

from .dialect import Refused

_SAID_MAX = 60
_NUMBERS_MAX = 1 << 53


def refuse(path: str, why: str) -> NoReturn:
    raise Refused(f"{path}: {why}", path.partition(".")[0])


def refuse_type(path: str, wanted: str, value: Any) -> NoReturn:
    refuse(path, f"Input should be {wanted}; came {shown(value)}")


def shown(value: Any) -> str:
    """What holds others may hold very many, and in a depth that nobody can write."""
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    said = repr(value)
    return said if len(said) <= _SAID_MAX else f"{said[: _SAID_MAX - 1]}…"


def required(holder: Mapping[str, Any], name: str, path: str = "") -> Any:
    value = holder.get(name)
    if value is None:
        refuse(_under(path, name), "Field required")
    return value


def text(holder: Mapping[str, Any], name: str, path: str = "") -> str:
    """One that has to be there."""
    value = required(holder, name, path)
    if not isinstance(value, str):
        refuse_type(_under(path, name), "a valid string", value)
    return value


def mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        refuse_type(path, "a valid dictionary", value)
    return value


def items(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        refuse_type(path, "a valid list", value)
    return value


def flag(holder: Mapping[str, Any], name: str, path: str = "") -> bool | None:
    value = holder.get(name)
    if value is not None and not isinstance(value, bool):
        refuse_type(_under(path, name), "a valid boolean", value)
    return value


def number(holder: Mapping[str, Any], name: str) -> float | None:
    value = holder.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_bounded(value):
        refuse_type(name, "a valid number", value)
    if value < 0:
        refuse_type(name, "greater than or equal to 0", value)
    return value


def whole_number(holder: Mapping[str, Any], name: str, least: int, path: str = "") -> int | None:
    value = holder.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not _is_bounded(value):
        refuse_type(_under(path, name), "a valid integer", value)
    if value < least:
        refuse_type(_under(path, name), f"greater than or equal to {least}", value)
    return value


def texts(holder: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """An empty list asks for nothing."""
    value = holder.get(name)
    if value is None:
        return None
    for place, each in enumerate(items(value, name)):
        if not isinstance(each, str):
            refuse_type(f"{name}.{place}", "a valid string", each)
    return tuple(value) or None


def written(value: Any, path: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, TypeError) as error:
        raise Refused(f"{path}: can't be written as JSON again ({error})", path.partition(".")[0]) from error


def holds_only(holder: Mapping[str, Any], names: frozenset[str]) -> bool:
    """Whether nothing else is said in it; what is null is not said."""
    return holder.keys() <= names or all(name in names or value is None for name, value in holder.items())


def _is_bounded(value: float) -> bool:
    return math.isfinite(value) and abs(value) < _NUMBERS_MAX if isinstance(value, float) else abs(value) < _NUMBERS_MAX


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
