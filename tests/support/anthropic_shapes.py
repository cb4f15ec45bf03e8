"""Answers of Anthropic Messages as bytes, whole and streamed."""

from __future__ import annotations

from typing import Any

import orjson

READ = "position <<A>> – ✓ 😀"
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "I think of A.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}
SAID: dict[str, Any] = {"type": "text", "text": READ}
USAGE: dict[str, Any] = {
    "input_tokens": 20,
    "cache_creation_input_tokens": 4,
    "cache_read_input_tokens": 12,
    "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 87,
    "output_tokens_details": {"thinking_tokens": 64},
    "service_tier": "standard",
    "inference_geo": "global",
}


def said(text: str = "A", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def message(**changes: Any) -> dict[str, Any]:
    """An answer in the shape that Anthropic's servers gave in 2026, with some of its fields changed."""
    body: dict[str, Any] = {
        "model": "claude-sonnet-5-5",
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "content": [THOUGHT, SAID],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": USAGE,
    }
    return {**body, **changes}


def whole(**changes: Any) -> bytes:
    return orjson.dumps(message(**changes))


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def opened(index: int, block: dict[str, Any]) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(kind: str, index: int = 0, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def text(piece: str, index: int = 0) -> bytes:
    return delta("text_delta", index, text=piece)


def closed(index: int) -> bytes:
    return event("content_block_stop", index=index)


def ended(stop: str | None = "end_turn", usage: Any = USAGE, **more: Any) -> bytes:
    return event("message_delta", delta={"stop_reason": stop, "stop_sequence": None, **more}, usage=usage)


def failed(kind: str, message: str = "No.", **more: Any) -> bytes:
    return event("error", error={"type": kind, "message": message, **more}, request_id="req_011CSHoEeqs5C35K2UUqR7Fy")


STARTED_USAGE = {**USAGE, "output_tokens": 1, "output_tokens_details": None}
START = event("message_start", message=message(content=[], stop_reason=None, usage=STARTED_USAGE))
PING = event("ping")
STOP = event("message_stop")
STREAM = (
    START,
    opened(0, {"type": "thinking", "thinking": "", "signature": ""}),
    PING,
    delta("thinking_delta", thinking="I think of A."),
    delta("signature_delta", signature="EqQBCgIYAhIM1gbcDa9GJwZA2b3h"),
    closed(0),
    opened(1, {"type": "text", "text": ""}),
    text("position <<A>>", 1),
    text(" – ✓ 😀", 1),
    closed(1),
    ended(usage={"output_tokens": 87, "output_tokens_details": {"thinking_tokens": 64}}),
    STOP,
)
