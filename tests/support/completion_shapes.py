"""Answers of OpenAI's older completions as bytes, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from answer_parts import AnswerPart, literal, pieces, texts_in


def choice(**changes: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "text": " B ✓", "logprobs": None, "finish_reason": "stop", **changes}]


def whole(**changes: Any) -> bytes:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    body = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "llama", "choices": choice()}
    return orjson.dumps({**body, "usage": usage, **changes})


def event(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def chunk(text: Any, finish: Any = None, logprobs: Any = None, **more: Any) -> bytes:
    one = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}
    return event({"id": "cmpl-1", "object": "text_completion", "choices": [one], **more})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
DONE = b"data: [DONE]\n\n"
STREAM = (chunk(" B"), chunk(" ✓"), chunk("", "stop"), USAGE, DONE)


def answered(parts: Sequence[AnswerPart], finish: Any = "stop", usage: Any = None) -> bytes:
    text = literal(*texts_in(parts)) if texts_in(parts) else None
    return whole(choices=choice(text=text, finish_reason=finish), usage=usage)


def answered_in_events(
    parts: Sequence[AnswerPart], finish: Any = "stop", usage: Any = None, size: int = 7
) -> list[bytes]:
    """Its text grows by `size` characters."""
    told = [chunk(literal(one)) for text in texts_in(parts) for one in pieces(text, size) or [""]]
    return [*told, chunk(None, finish), event({"choices": [], "usage": usage}), DONE]
