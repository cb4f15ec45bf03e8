"""Finds the visible text in the events of an answer that is still being received, for each wire protocol.

Pure: bytes in, text out, never an exception. Text that the whole answer might not begin with is left out. Whether an
answer is complete, only its decoder decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .answer_values import as_object, as_text
from .blocks import object_in
from .event_stream import BrokenStream, messages_of
from .protocol import AnswerListener
from .sse import events_of

# The bytes of a blank line, for every kind of line end; up to _END_MOST of them may stand in an earlier piece.
_ENDS = (b"\n\n", b"\n\r", b"\r\r")
_END_MOST = 2


def _object_of(data: bytes) -> dict[str, Any]:
    return object_in(data) or {}


def _first(value: Any) -> dict[str, Any]:
    return as_object(value[0]) if isinstance(value, list) and value else {}


def chat_text(data: bytes) -> str:
    choice = _first(_object_of(data).get("choices"))
    return as_text(as_object(choice.get("delta")).get("content")) if choice.get("index", 0) == 0 else ""


def completion_text(data: bytes) -> str:
    choice = _first(_object_of(data).get("choices"))
    return as_text(choice.get("text")) if choice.get("index", 0) == 0 else ""


def response_text(data: bytes) -> str:
    event = _object_of(data)
    return as_text(event.get("delta")) if event.get("type") == "response.output_text.delta" else ""


def message_text(data: bytes) -> str:
    event = _object_of(data)
    kind = event.get("type")
    block = as_object(event.get("content_block" if kind == "content_block_start" else "delta"))
    is_text = (kind, block.get("type")) in (("content_block_start", "text"), ("content_block_delta", "text_delta"))
    return as_text(block.get("text")) if is_text else ""


def candidate_text(data: bytes) -> str:
    content = as_object(_first(_object_of(data).get("candidates")).get("content"))
    parts = content.get("parts")
    spoken = (part for part in map(as_object, parts if isinstance(parts, list) else ()) if not part.get("thought"))
    return "".join(as_text(part.get("text")) for part in spoken)


class EventListener:
    """A listener to server-sent events; `text_of` returns the visible text in the data of one event."""

    def __init__(self, text_of: Callable[[bytes], str]) -> None:
        self._text_of = text_of
        # Pieces of an event without an end yet, kept apart: joining them each time is slow for many megabytes.
        self._waiting: list[bytes] = []
        self._last = b""

    def take(self, chunk: bytes) -> str:
        seam = self._last + chunk
        self._waiting.append(chunk)
        self._last = seam[-_END_MOST:]
        if not any(end in seam for end in _ENDS):
            return ""
        waiting = b"".join(self._waiting)
        # Whether a last \r is a line end of its own, only the next byte shows.
        half = b"\r" if waiting.endswith(b"\r") else b""
        waiting = waiting.removesuffix(half).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole, end, rest = waiting.rpartition(b"\n\n")
        self._waiting = [rest, half]
        return "".join(map(self._text_of, events_of(whole + end))) if end else ""


class FrameListener:
    """A listener to Amazon's binary events, each of which begins with its length."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, chunk: bytes) -> str:
        self._rest += chunk
        texts = []
        try:
            for event in messages_of(self._rest):
                self._rest = self._rest[event.size :]
                delta = as_object(_object_of(event.payload).get("delta"))
                texts.append(as_text(delta.get("text")))
        except BrokenStream:
            pass  # the decoder will report it
        return "".join(texts)


def listener_of(text_of: Callable[[bytes], str]) -> Callable[[], AnswerListener]:
    return lambda: EventListener(text_of)
