"""What is said in an answer while it still comes: the visible text of each event, one listener a wire protocol.

Pure: bytes in, text out, never an exception. It says nothing rather than anything that the whole answer's text might
not begin with; whether an answer is whole, only its decoder knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from .event_stream import BrokenStream, messages_of
from .protocol import Listener
from .sse import events_of

_PRELUDE = 4
# What a blank line has in it, however lines end; so much of it may have come with an earlier piece.
_ENDS = (b"\n\n", b"\n\r", b"\r\r")
_END_MOST = 2


def _object_of(data: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(value: Any) -> dict[str, Any]:
    return _dict(value[0]) if isinstance(value, list) and value else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def said_in_chat(data: bytes) -> str:
    choice = _first(_object_of(data).get("choices"))
    return _text(_dict(choice.get("delta")).get("content")) if choice.get("index", 0) == 0 else ""


def said_in_completion(data: bytes) -> str:
    choice = _first(_object_of(data).get("choices"))
    return _text(choice.get("text")) if choice.get("index", 0) == 0 else ""


def said_in_response(data: bytes) -> str:
    event = _object_of(data)
    return _text(event.get("delta")) if event.get("type") == "response.output_text.delta" else ""


def said_in_message(data: bytes) -> str:
    event = _object_of(data)
    kind = event.get("type")
    block = _dict(event.get("content_block" if kind == "content_block_start" else "delta"))
    is_text = (kind, block.get("type")) in (("content_block_start", "text"), ("content_block_delta", "text_delta"))
    return _text(block.get("text")) if is_text else ""


def said_in_candidate(data: bytes) -> str:
    content = _dict(_first(_object_of(data).get("candidates")).get("content"))
    parts = content.get("parts")
    spoken = (part for part in map(_dict, parts if isinstance(parts, list) else ()) if not part.get("thought"))
    return "".join(_text(part.get("text")) for part in spoken)


class EventListener:
    """Server-sent events: `said` tells the text in the data of one."""

    def __init__(self, said: Callable[[bytes], str]) -> None:
        self._said = said
        # Pieces of an event that has no end yet: looked at each by itself, since it may be of many megabytes.
        self._waiting: list[bytes] = []
        self._last = b""

    def take(self, chunk: bytes) -> str:
        seam = self._last + chunk
        self._waiting.append(chunk)
        self._last = seam[-_END_MOST:]
        if not any(end in seam for end in _ENDS):
            return ""
        waiting = b"".join(self._waiting)
        # The next byte tells whether this one ends a line by itself.
        half = b"\r" if waiting.endswith(b"\r") else b""
        waiting = waiting.removesuffix(half).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole, end, rest = waiting.rpartition(b"\n\n")
        self._waiting = [rest, half]
        return "".join(map(self._said, events_of(whole + end))) if end else ""


class FrameListener:
    """Amazon's binary events, each with its length before it."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, chunk: bytes) -> str:
        self._rest += chunk
        size = _whole_frames(self._rest)
        whole, self._rest = self._rest[:size], self._rest[size:]
        said = []
        try:
            for event in messages_of(whole):
                delta = _dict(_object_of(event.payload).get("delta"))
                said.append(_text(delta.get("text")))
        except BrokenStream:
            pass  # the decoder will say so
        return "".join(said)


def _whole_frames(data: bytes) -> int:
    """The length of the frames that are all there."""
    end = 0
    while len(data) - end >= _PRELUDE:
        size = int.from_bytes(data[end : end + _PRELUDE], "big")
        if size <= _PRELUDE or len(data) - end < size:
            break
        end += size
    return end


def listening(said: Callable[[bytes], str]) -> Callable[[], Listener]:
    return lambda: EventListener(said)
