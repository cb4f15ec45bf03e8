"""The parts of a model's answer as tests give them, and how every protocol writes their texts.

A text of bytes stands between the quotes of its JSON as it is, so that it may be no valid UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import orjson

from millstream.engine.content import Native, ToolCall

AnswerPart = str | bytes | Native | ToolCall


def literal(*texts: str | bytes) -> orjson.Fragment:
    """Returns these texts as one text of JSON. A lone surrogate is written as its escape."""
    return orjson.Fragment(b'"%b"' % b"".join(map(_inside, texts)))


def _inside(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return orjson.dumps(text)[1:-1]
    except orjson.JSONEncodeError:
        return json.dumps(text).encode()[1:-1]


def texts_in(parts: Iterable[AnswerPart]) -> list[str | bytes]:
    return [part for part in parts if isinstance(part, str | bytes)]


def pieces(text: str | bytes, size: int) -> list[str | bytes]:
    """Returns a text in pieces of that many characters; one of bytes stays whole."""
    return [text[at : at + size] for at in range(0, len(text), size)] if isinstance(text, str) else [text]
