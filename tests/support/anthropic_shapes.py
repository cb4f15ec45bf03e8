"""Answers of Anthropic Messages as bytes, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from answer_parts import AnswerPart, literal, pieces

from millstream.engine.content import Native, ToolCall

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


def blocks(parts: Sequence[AnswerPart]) -> list[dict[str, Any]]:
    """The content of a message that holds these parts."""
    return [_block(part) for part in parts]


def _block(part: AnswerPart) -> dict[str, Any]:
    match part:
        case Native():
            return dict(part.value)
        case ToolCall():
            given = orjson.Fragment(part.arguments)
            return {"type": "tool_use", "id": literal(part.id), "name": literal(part.name), "input": given}
        case _:
            return {"type": "text", "text": literal(part)}


def answered(parts: Sequence[AnswerPart], stop: Any = "end_turn", usage: Any = USAGE) -> bytes:
    return whole(content=blocks(parts), stop_reason=stop, usage=usage)


def answered_in_events(
    parts: Sequence[AnswerPart], stop: Any = "end_turn", usage: Any = USAGE, size: int = 7
) -> list[bytes]:
    """Its texts, thoughts and arguments grow by `size` characters."""
    told = [event("message_start", message=message(content=[], stop_reason=None, usage=None))]
    for index, (part, block) in enumerate(zip(parts, blocks(parts), strict=True)):
        told += [*_growing(part, block, index, size), closed(index)]
    return [*told, ended(stop, usage), STOP]


def _growing(part: AnswerPart, block: dict[str, Any], index: int, size: int) -> list[bytes]:
    if isinstance(part, str | bytes):
        texts = [delta("text_delta", index, text=literal(one)) for one in pieces(part, size)]
        return [opened(index, said("")), *texts]
    if "input" in block:
        given = part.arguments if isinstance(part, ToolCall) else orjson.dumps(block["input"]).decode()
        told = [delta("input_json_delta", index, partial_json=one) for one in ("", *pieces(given, size))]
        return [opened(index, {**block, "input": {}}), *told]
    if "thinking" in block:
        told = [delta("thinking_delta", index, thinking=literal(one)) for one in pieces(block["thinking"], size)]
        begun = {**block, "thinking": "", "signature": ""}
        return [opened(index, begun), *told, delta("signature_delta", index, signature=block["signature"])]
    return [opened(index, block)]
