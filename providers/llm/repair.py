"""Reads JSON and text that are not quite what the standards allow, and changes nothing that is.

Shared by every protocol that speaks JSON. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def parse_leniently(body: bytes) -> Any:
    """JSON as it should be, else with whatever repairs Python's own reader allows, else None. Its texts may then
    hold lone surrogates: `mended` is for those."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None


def is_strict(body: bytes) -> bool:
    """Whether the standards allow every byte of it."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def mended(text: str) -> str:
    """A text without lone surrogates: two halves that meet become one sign, any other becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def object_of(value: Any) -> dict[str, Any] | None:
    """The object that a body is; some servers wrap it in a list of one."""
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else None
