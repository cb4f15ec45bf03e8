"""Answers of OpenAI's chat completions as bytes, whole and streamed, and how tests read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from answer_parts import AnswerPart, literal, pieces, texts_in

from millstream.engine.call import Reply
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.openai.chat import decode


def whole(**changes: Any) -> bytes:
    """An answer in the shape that OpenAI's servers gave in 2026, with some of its fields changed."""
    body: dict[str, Any] = {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "position <<A>> – ✓ 😀",
                    "refusal": None,
                    "annotations": [],
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 19,
            "completion_tokens": 10,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_b376dfbbd5",
    }
    return orjson.dumps({**body, **changes})


def choice(**changes: Any) -> list[dict[str, Any]]:
    sound = {"index": 0, "message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}
    return [{**sound, **changes}]


def message(content: Any, **more: Any) -> list[dict[str, Any]]:
    return choice(message={"role": "assistant", "content": content, **more})


def event(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1741569952, "model": "gpt-4o-mini"}
    return event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


ROLE = chunk({"role": "assistant", "content": "", "refusal": None}, usage=None)
USAGE = event({"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 19, "completion_tokens": 3}})
DONE = b"data: [DONE]\n\n"
STREAM = (ROLE, chunk({"content": "posi"}), chunk({"content": "tion ✓"}), chunk({}, "stop"), USAGE, DONE)


def ok(body: bytes) -> Response:
    return Response(200, body)


def streamed(*parts: bytes, is_cut: bool = False) -> Response:
    return Response(200, b"".join(parts), stream=True, is_cut=is_cut)


def reply_of(response: Response) -> Reply:
    result = decode(response)
    assert isinstance(result, Reply), result
    return result


def fault_of(response: Response) -> Fault:
    result = decode(response)
    assert isinstance(result, Fault), result
    return result


def message_of(parts: Sequence[AnswerPart]) -> dict[str, Any]:
    """A turn that holds these parts: thoughts, then its text, then calls."""
    told: dict[str, Any] = {"role": "assistant", "content": literal(*texts_in(parts)) if texts_in(parts) else None}
    for part in parts:
        if isinstance(part, Native):
            told |= part.value
    return {**told, "tool_calls": calls} if (calls := _calls(parts)) else told


def _calls(parts: Sequence[AnswerPart]) -> list[dict[str, Any]]:
    return [
        {
            "id": literal(part.id),
            "type": "function",
            "function": {"name": literal(part.name), "arguments": part.arguments},
        }
        for part in parts
        if isinstance(part, ToolCall)
    ]


def answered(parts: Sequence[AnswerPart], finish: Any = "stop", usage: Any = None) -> bytes:
    return whole(choices=choice(message=message_of(parts), finish_reason=finish), usage=usage)


def answered_in_events(
    parts: Sequence[AnswerPart], finish: Any = "stop", usage: Any = None, size: int = 7
) -> list[bytes]:
    """Its texts, thoughts and arguments grow by `size` characters."""
    texts = texts_in(parts)
    told = [chunk({"role": "assistant", "content": "" if texts else None, "refusal": None}, usage=None)]
    for part in parts:
        if isinstance(part, Native):
            told += [chunk({name: one}) for name, value in part.value.items() for one in pieces(value, size)]
    told += [chunk({"content": literal(one)}) for text in texts for one in pieces(text, size)]
    for index, call in enumerate(_calls(parts)):
        begun = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        told.append(chunk({"tool_calls": [begun]}))
        for one in pieces(call["function"]["arguments"], size):
            told.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": one}}]}))
    return [*told, chunk({}, finish), event({"choices": [], "usage": usage}), DONE]
