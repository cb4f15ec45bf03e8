"""What a tool's value becomes in a conversation: text or images, as long as a model's context bears it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ...engine.content import Image, ToolResult

RESULT_CHARS_MAX = 50_000
_ERROR_CHARS_MAX = 2_000

ResultContent = str | tuple[str | Image, ...]


def content_of(value: Any) -> ResultContent:
    """Returns a value as a result's content: text as it is, images, anything else as JSON or, if it has none, as
    `str` shows it. What is longer than RESULT_CHARS_MAX is cut, and says so."""
    if isinstance(value, Image):
        return (value,)
    if isinstance(value, tuple | list) and any(isinstance(each, Image) for each in value):
        return _cut_parts([each if isinstance(each, Image) else _text_of(each) for each in value])
    return cut(_text_of(value))


def cut(text: str, most: int = RESULT_CHARS_MAX) -> str:
    """Returns a text that JSON can hold, with no more than `most` characters and a sentence on the others."""
    if len(text) > most:
        text = f"{text[:most]}\n[The result has {len(text):,} characters. These were its first {most:,}.]"
    return text.encode("utf-8", "replace").decode()


def failed(name: str, detail: str) -> ToolResult:
    """Returns the result of a tool that failed."""
    return ToolResult("", cut(detail, _ERROR_CHARS_MAX), name, is_error=True)


def raised(name: str, error: BaseException) -> ToolResult:
    """Returns the result of a tool that raised an exception."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 (an author's exception may raise anything)
        message = ""
    return failed(name, f"{type(error).__name__}: {message}" if message else type(error).__name__)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except Exception:  # noqa: BLE001 (any object of an author's)
        return str(value)


def _cut_parts(parts: list[str | Image]) -> ResultContent:
    left = RESULT_CHARS_MAX
    kept: list[str | Image] = []
    for part in parts:
        if isinstance(part, str):
            part, left = cut(part, left), max(0, left - len(part))
        kept.append(part)
    return tuple(kept)
