"""What a tool's value becomes in a conversation: text or images, as long as a model's context bears it. Pure."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ...engine.content import Image, ToolResult

RESULT_CHARS_MAX = 50_000
_ERROR_CHARS_MAX = 2_000


def result_of(name: str, value: Any) -> ToolResult:
    """Returns a value as a result: text as it is, images, anything else as JSON or, if it has none, as `str` shows it.
    What is longer than RESULT_CHARS_MAX is cut, and says so."""
    if isinstance(value, ToolResult):
        return value
    has_images = isinstance(value, tuple | list) and any(isinstance(each, Image) for each in value)
    left, parts = RESULT_CHARS_MAX, []
    for part in value if has_images else (value,):
        if not isinstance(part, Image):
            text = _text_of(part)
            part, left = _cut(text, left), max(0, left - len(text))
        parts.append(part)
    return ToolResult("", parts[0] if isinstance(parts[0], str) and not has_images else tuple(parts), name)


def failed(name: str, reason: str | BaseException) -> ToolResult:
    """Returns the result of a tool that failed, with the reason or the exception that it raised."""
    if isinstance(reason, BaseException):
        try:
            message = str(reason)
        except Exception:  # noqa: BLE001 (an author's exception may raise anything)
            message = ""
        reason = f"{type(reason).__name__}: {message}".removesuffix(": ")
    return ToolResult("", _cut(reason, _ERROR_CHARS_MAX), name, is_error=True)


def _cut(text: str, most: int) -> str:
    """Returns a text that JSON can hold, with no more than `most` characters and a sentence on the others."""
    if len(text) > most:
        text = f"{text[:most]}\n[The result has {len(text):,} characters. These were its first {most:,}.]"
    return text.encode("utf-8", "replace").decode()


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        # With NaN as it is, which msgspec would write as null.
        return json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001 (any object of an author's)
        return str(value)
