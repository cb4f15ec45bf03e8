"""Answers of OpenAI Responses as bytes, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from answer_parts import AnswerPart, literal, pieces

from millstream.engine.content import Native, ToolCall

MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "msg_67ccd2bf17f0819081ff3bb2cf6508e60bb6a6b452d3795b",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "position <<A>> – ✓ 😀", "annotations": [], "logprobs": []}],
}
REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I think of A."}],
}


def said(text: str = "A", **more: Any) -> dict[str, Any]:
    return {**MESSAGE, "content": [{"type": "output_text", "text": text, "annotations": [], **more}]}


def response(**changes: Any) -> dict[str, Any]:
    """An answer in the shape that OpenAI's servers gave in 2026, with some of its fields changed."""
    body: dict[str, Any] = {
        "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
        "object": "response",
        "created_at": 1741476542,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": "gpt-5.4-2026-03-05",
        "output": [REASONING, MESSAGE],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "low", "summary": None},
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 12},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 123,
        },
        "user": None,
        "metadata": {},
    }
    return {**body, **changes}


def whole(**changes: Any) -> bytes:
    return orjson.dumps(response(**changes))


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


def delta(text: str) -> bytes:
    place = {"item_id": MESSAGE["id"], "output_index": 1, "content_index": 0, "sequence_number": 4, "logprobs": []}
    return event("response.output_text.delta", delta=text, **place)


CREATED = event("response.created", response=response(status="in_progress", output=[], usage=None), sequence_number=0)
COMPLETED = event("response.completed", response=response(), sequence_number=9)
STREAM = (CREATED, delta("position <<A>>"), delta(" – ✓ 😀"), COMPLETED)


def items(parts: Sequence[AnswerPart]) -> list[dict[str, Any]]:
    """The output of a response that holds these parts."""
    return [_item(part) for part in parts]


def _item(part: AnswerPart) -> dict[str, Any]:
    match part:
        case Native():
            return dict(part.value)
        case ToolCall():
            told = {"call_id": literal(part.id), "name": literal(part.name), "arguments": part.arguments}
            return {"type": "function_call", **told}
        case _:
            return {**MESSAGE, "content": [{"type": "output_text", "text": literal(part), "annotations": []}]}


def _answered(parts: Sequence[AnswerPart], end: Any, usage: Any) -> dict[str, Any]:
    """`end`: a status, or the reason why it is incomplete."""
    is_reason = isinstance(end, str) and end not in ("completed", "")
    status = {"status": "incomplete", "incomplete_details": {"reason": end}} if is_reason else {"status": end}
    return response(output=items(parts), usage=usage, **status)


def answered(parts: Sequence[AnswerPart], end: Any = "completed", usage: Any = None) -> bytes:
    return orjson.dumps(_answered(parts, end, usage))


def answered_in_events(
    parts: Sequence[AnswerPart], end: Any = "completed", usage: Any = None, size: int = 7
) -> list[bytes]:
    """Its texts and arguments grow by `size` characters."""
    told = [CREATED]
    for index, (part, item) in enumerate(zip(parts, items(parts), strict=True)):
        if isinstance(part, str | bytes):
            place = {"item_id": MESSAGE["id"], "output_index": index, "content_index": 0}
            told += [event("response.output_text.delta", delta=literal(one), **place) for one in pieces(part, size)]
        elif isinstance(part, ToolCall):
            place = {"item_id": "fc_1", "output_index": index}
            told.append(event("response.output_item.added", item={**item, "arguments": ""}, output_index=index))
            told += [
                event("response.function_call_arguments.delta", delta=one, **place)
                for one in pieces(part.arguments, size)
            ]
        told.append(event("response.output_item.done", item=item, output_index=index))
    kind = "response.completed" if end == "completed" else "response.incomplete"
    return [*told, event(kind, response=_answered(parts, end, usage))]
