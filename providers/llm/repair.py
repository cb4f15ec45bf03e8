"""Reads JSON and text that are not quite what the standards allow, and changes nothing that is.

Shared by every protocol that speaks JSON. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def parse_leniently(body: bytes) -> Any:
    """Returns the value of JSON: read strictly, else by Python's more lenient reader, else None. In the second case its
    texts may hold lone surrogates, which `mended` replaces."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None


def is_strict(body: bytes) -> bool:
    """Returns whether the bytes are JSON as the standard defines it."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def mended(text: str) -> str:
    """Returns a text without lone surrogates: two halves side by side become one character, any other becomes
    U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def object_of(value: Any) -> dict[str, Any] | None:
    """Returns the object of a body, also from a list of one, as some servers wrap it; None if there is none."""
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else None
