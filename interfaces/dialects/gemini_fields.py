"""Fields of a request to Gemini: read as Google reads JSON, or refused as Google words it.

Every name may be written in camel case or with underscores, a number as a text, and one thing where a list of them is
wanted. A path leads to a field (`generationConfig.topP`). null is what was not given. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import orjson

from .anthropic_fields import shown
from .dialect import Refused

_WHOLE = re.compile(r"-?\d{1,18}")
_UNDERSCORED = re.compile(r"_([a-z0-9])")
_NUMBERS_MAX = 1e15


def refuse(path: str, why: str) -> NoReturn:
    raise Refused(f"* GenerateContentRequest.{path}: {why}", _parameter(path))


def refuse_value(path: str, wanted: str, value: Any) -> NoReturn:
    raise Refused(f"Invalid value at '{path}' ({wanted}), {shown(value)}", _parameter(path))


def camel(name: str) -> str:
    return _UNDERSCORED.sub(lambda found: found[1].upper(), name) if "_" in name else name


def fields(value: Any, path: str) -> dict[str, Any]:
    """What is said in an object, by its names in camel case."""
    if not isinstance(value, Mapping):
        refuse_value(path, "an object", value)
    return {camel(str(name)): inner for name, inner in value.items() if inner is not None}


def items(value: Any, path: str) -> list[Any]:
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list):
        refuse_value(path, "a list", value)
    return value


def text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        refuse_value(path, "TYPE_STRING", value)
    return value


def flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        refuse_value(path, "TYPE_BOOL", value)
    return value


def number(value: Any, path: str) -> float:
    """`NaN` and `Infinity` are texts that Google would read, and no model takes."""
    try:
        given = math.nan if isinstance(value, bool) or not isinstance(value, int | float | str) else float(value)
    except (ValueError, OverflowError):
        given = math.nan
    if not abs(given) < _NUMBERS_MAX:
        refuse_value(path, "TYPE_FLOAT", value)
    return given


def whole_number(value: Any, path: str, least: int | None = None) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        given = int(value)
    elif isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _NUMBERS_MAX:
        refuse_value(path, "TYPE_INT32", value)
    else:
        given = int(value)
        if given != value:
            refuse_value(path, "TYPE_INT32", value)
    if least is not None and given < least:
        refuse(path, f"{given} is out of range: it must be at least {least}")
    return given


def texts(value: Any, path: str) -> tuple[str, ...] | None:
    """An empty list asks for nothing."""
    given = [value] if isinstance(value, str) else items(value, path)
    return tuple(text(each, f"{path}[{place}]") for place, each in enumerate(given)) or None


def written(value: Any, path: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, TypeError) as error:
        raise Refused(f"'{path}' can't be written as JSON again ({error})", _parameter(path)) from error


def _parameter(path: str) -> str:
    return re.split(r"[.\[]", path, maxsplit=1)[0]
