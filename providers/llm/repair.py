"""Reads JSON and text that are not quite what the standards allow, and changes nothing that is.

Shared by every protocol that speaks JSON. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def read_json(body: bytes) -> tuple[Any, bool]:
    """Returns the value of JSON, and whether it is JSON as the standard defines it: read strictly, else by Python's
    more lenient reader, else None. In the second case its texts may hold lone surrogates, which `mended` replaces."""
    try:
        return orjson.loads(body), True
    except orjson.JSONDecodeError:
        try:
            return json.loads(body.decode("utf-8", "replace")), False
        except (ValueError, RecursionError):
            return None, False


def read_object(body: bytes) -> tuple[dict[str, Any] | None, bool]:
    """Returns the object in JSON (None: there is none) and the same; some servers wrap it in a list of one."""
    value, is_strict = read_json(body)
    if isinstance(value, list) and value:
        value = value[0]
    return (value if isinstance(value, dict) else None), is_strict


def mended(text: str) -> str:
    """Returns a text without lone surrogates: two halves side by side become one character, any other becomes
    U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
