"""Values of a request as OpenAI's servers take them: each of its type, or refused in the words that their clients know.

Pure. `where` is the place of a value in the request, as in `messages[0].content`. What the values mean is not known
here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import orjson

from .dialect import Refused

_KINDS = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
_SAID_MAX = 60
# What a request to a provider can hold.
_WHOLE_MAX = (1 << 63) - 1


def kind_of(value: Any) -> str:
    return _KINDS.get(type(value), "an object" if isinstance(value, Mapping) else "another value")


def wrong_type(where: str, wanted: str, value: Any) -> NoReturn:
    raise Refused(f"Invalid type for '{where}': expected {wanted}, but got {kind_of(value)} instead.", where)


def wrong_value(where: str, value: Any, allowed: Sequence[str]) -> NoReturn:
    said = str(value)
    said = said if len(said) <= _SAID_MAX else f"{said[:_SAID_MAX]}…"
    quoted = [f"'{one}'" for one in allowed]
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
    raise Refused(f"Invalid value: '{said}'. Supported values are: {listed}.", where)


def missing(where: str) -> NoReturn:
    raise Refused(f"Missing required parameter: '{where}'.", where)


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        wrong_type(where, "a string", value)
    return value


def flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        wrong_type(where, "a boolean", value)
    return value


def whole(value: Any, where: str, least: int = -_WHOLE_MAX - 1, most: int = _WHOLE_MAX) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        wrong_type(where, "an integer", value)
    if value < least:
        _beyond(where, "integer below minimum", ">=", least, value)
    if value > most:
        _beyond(where, "integer above maximum", "<=", most, value)
    return value


def number(value: Any, where: str, least: float = -math.inf) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        wrong_type(where, "a decimal", value)
    try:
        given = float(value)
    except OverflowError:
        given = math.inf
    if not math.isfinite(given):
        raise Refused(f"Invalid '{where}': expected a finite number.", where)
    if given < least:
        _beyond(where, "decimal below minimum", ">=", least, given)
    return given


def _beyond(where: str, what: str, sign: str, bound: float, value: float) -> NoReturn:
    # Python writes out no whole number of more than 4,300 digits.
    said = value if abs(value) < 1 << 64 else "one of many digits"
    raise Refused(f"Invalid '{where}': {what} value. Expected a value {sign} {bound}, but got {said} instead.", where)


def rows(value: Any, where: str, wanted: str = "an array") -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        wrong_type(where, wanted, value)
    return value


def some(value: Any, where: str, wanted: str = "an array of objects") -> Sequence[Any]:
    """A list that says something."""
    given = rows(value, where, wanted)
    if not given:
        raise Refused(
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            where,
        )
    return given


def table(value: Any, where: str) -> Mapping[str, Any]:
    if value.__class__ is not dict and not isinstance(value, Mapping):
        wrong_type(where, "an object", value)
    return value


def field(holder: Mapping[str, Any], name: str, where: str) -> Any:
    """A field that has to be there."""
    value = holder.get(name)
    if value is None:
        missing(f"{where}.{name}" if where else name)
    return value


def text_in(holder: Mapping[str, Any], name: str, where: str) -> str:
    """The same where it is a text."""
    return text(field(holder, name, where), f"{where}.{name}")


def writable(value: Any, where: str) -> Any:
    """What goes on to a provider as it stands has to be JSON that can be written again."""
    try:
        orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError, RecursionError) as error:
        raise Refused(f"Invalid '{where}': it can't be written as JSON ({error}).", where) from error
    return value
