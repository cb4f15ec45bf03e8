"""Answers of Bedrock's Converse as bytes, whole and as the binary messages of a stream, and AWS's errors."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import orjson
from answer_parts import AnswerPart, literal, pieces

from millstream.engine.content import Native, ToolCall

TEXT = "position <<A>> – ✓ 😀"
USAGE = {"inputTokens": 19, "outputTokens": 22, "totalTokens": 41}
CACHED = {**USAGE, "totalTokens": 2_089, "cacheReadInputTokens": 2_000, "cacheWriteInputTokens": 48}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "I think of A.", "signature": "c2ln"}}}
CITATIONS: list[Any] = [
    {"title": "One", "location": {"web": {"url": "https://one.example/a", "domain": "one.example"}}},
    {"title": "Two", "location": {"documentChar": {"documentIndex": 0, "start": 1, "end": 2}}},
    {"title": "One", "location": {"web": {"url": "https://one.example/a"}}},
]
CITED = {"citationsContent": {"content": [{"text": "So it is"}, {"text": " said."}], "citations": CITATIONS}}


def answer(*blocks: dict[str, Any], stop: str | None = "end_turn", **changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "metrics": {"latencyMs": 1275},
        "output": {"message": {"content": list(blocks) or [{"text": TEXT}], "role": "assistant"}},
        "usage": USAGE,
    }
    return {**body, **({} if stop is None else {"stopReason": stop}), **changes}


def whole(*blocks: dict[str, Any], stop: str | None = "end_turn", **changes: Any) -> bytes:
    return orjson.dumps(answer(*blocks, stop=stop, **changes))


def frame(headers: bytes, payload: bytes) -> bytes:
    """One binary message around these bytes."""
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


def header(name: str, value: str) -> bytes:
    said = value.encode()
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(said)) + said


def message(payload: Any, **headers: str) -> bytes:
    """Names of headers have a colon before them, and dashes in them."""
    block = b"".join(header(f":{name.replace('_', '-')}", value) for name, value in headers.items())
    return frame(block, payload if isinstance(payload, bytes) else orjson.dumps(payload))


def event(kind: str, payload: Any) -> bytes:
    return message(payload, event_type=kind, content_type="application/json", message_type="event")


def delta(text: str, index: int = 0) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": text}, "p": "abcdefghij"})


def thought(text: str) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": text}}})


def exception(kind: str, said: str = "No.", **more: Any) -> bytes:
    return message(
        {"message": said, **more}, exception_type=kind, content_type="application/json", message_type="exception"
    )


START = event("messageStart", {"role": "assistant", "p": "abc"})
STOP = event("messageStop", {"stopReason": "end_turn"})
METADATA = event("metadata", {"metrics": {"latencyMs": 1275}, "usage": USAGE})
STREAM = (
    START,
    thought("I think"),
    thought(" of A."),
    event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2ln"}}}),
    event("contentBlockStop", {"contentBlockIndex": 0}),
    delta("posi", 1),
    delta("tion <<A>> – ✓ 😀", 1),
    event("contentBlockStop", {"contentBlockIndex": 1}),
    STOP,
    METADATA,
)


def error(said: str = "No.", **more: Any) -> bytes:
    return orjson.dumps({"message": said, **more})


def named(name: str) -> dict[str, str]:
    """The header by which AWS names an error."""
    return {"x-amzn-errortype": f"{name}:http://internal.amazon.com/coral/com.amazon.bedrock/"}


def blocks(parts: Sequence[AnswerPart]) -> list[dict[str, Any]]:
    """The content of a message that holds these parts."""
    return [_block(part) for part in parts]


def _block(part: AnswerPart) -> dict[str, Any]:
    match part:
        case Native():
            return dict(part.value)
        case ToolCall():
            given = orjson.Fragment(part.arguments)
            return {"toolUse": {"toolUseId": literal(part.id), "name": literal(part.name), "input": given}}
        case _:
            return {"text": literal(part)}


def answered(parts: Sequence[AnswerPart], stop: Any = "end_turn", usage: Any = USAGE) -> bytes:
    message = {"content": blocks(parts), "role": "assistant"}
    return orjson.dumps({**answer(usage=usage), "output": {"message": message}, "stopReason": stop})


def answered_in_events(
    parts: Sequence[AnswerPart], stop: Any = "end_turn", usage: Any = USAGE, size: int = 7
) -> list[bytes]:
    """Its texts, thoughts and arguments grow by `size` characters."""
    told = [START]
    for index, (part, block) in enumerate(zip(parts, blocks(parts), strict=True)):
        told += [*_growing(part, block, index, size), event("contentBlockStop", {"contentBlockIndex": index})]
    return [*told, event("messageStop", {"stopReason": stop}), event("metadata", {"usage": usage})]


def begun(index: int, start: dict[str, Any]) -> bytes:
    return event("contentBlockStart", {"contentBlockIndex": index, "start": start})


def grown(index: int, given: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": given})


def _growing(part: AnswerPart, block: dict[str, Any], index: int, size: int) -> list[bytes]:
    if isinstance(part, str | bytes):
        # An empty text has a piece too, as nothing else says that there is one.
        return [grown(index, {"text": literal(one)}) for one in pieces(part, size) or [""]]
    kind, value = next(iter(block.items()))
    if kind == "toolUse":
        told = {name: one for name, one in value.items() if name != "input"}
        given = part.arguments if isinstance(part, ToolCall) else orjson.dumps(value["input"]).decode()
        return [begun(index, {kind: told}), *(grown(index, {kind: {"input": one}}) for one in pieces(given, size))]
    if kind == "toolResult":
        told = {name: one for name, one in value.items() if name != "content"}
        return [begun(index, {kind: told}), *(grown(index, {kind: [one]}) for one in value["content"])]
    thought_of = value.get("reasoningText")
    if thought_of is None:
        return [grown(index, {kind: value})]
    texts = [grown(index, {kind: {"text": literal(one)}}) for one in pieces(thought_of["text"], size)]
    return [*texts, grown(index, {kind: {"signature": thought_of["signature"]}})]
