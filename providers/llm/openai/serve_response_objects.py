"""Writes the JSON of OpenAI's Responses: the response, and the items of a reply.

Pure: values in, values out. The events of a stream: serve_response_stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....engine.call import Outcome, Reply, Usage
from ....engine.content import Native, Part, ToolCall
from ..families import parts_for
from ..serve_dialect import ServedRequest
from ..serve_replies import digest, is_writable, reply_of
from .serve_answers import beside_of, is_refusal, logprobs, notes_of
from .serve_items import FAMILY

_ID_CHARS = 48
# The fields of a request that its response repeats, with their defaults.
ECHOED: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
# Finish reasons of an answer that ended early -> the protocol's reasons.
_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response(request: ServedRequest, outcome: Outcome, created: int) -> dict[str, Any]:
    name = outcome.key[:_ID_CHARS] or digest(request.call)
    reply = reply_of(outcome)
    items = list(items_of(reply, name))
    return ended(begun(request, name, created), reply, items)


def begun(request: ServedRequest, name: str, created: int) -> dict[str, Any]:
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": request.model,
        "output": [],
        "previous_response_id": None,
        "store": False,
        **{name: request.told.get(name, default) for name, default in ECHOED.items()},
        "usage": None,
    }


def ended(begun: Mapping[str, Any], reply: Reply, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reason = _REASONS.get(reply.finish_reason or "")
    return {
        **begun,
        "model": reply.served or begun["model"],
        "status": status_of(reply),
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": items,
        "usage": None if reply.usage is None or not reply.usage.is_whole else _counted(reply.usage),
    }


def status_of(reply: Reply) -> str:
    return "incomplete" if reply.finish_reason in _REASONS else "completed"


def _counted(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.tokens,
    }


def items_of(reply: Reply, name: str, *, is_text_first: bool = False) -> Iterator[dict[str, Any]]:
    """Yields the items of a reply in their order. With `is_text_first` all of the text precedes everything else, for a
    stream that has written some of it."""
    parts = _grouped(reply, is_text_first)
    # Citations and log-probabilities belong to the whole text, and stand beside its first piece.
    is_first = True
    for number, part in enumerate(parts):
        if isinstance(part, str):
            yield _message(reply, part, f"msg_{name}{number or ''}", is_first)
            is_first = False
        elif isinstance(part, ToolCall):
            yield _call(part, f"fc_{name}{number or ''}", status_of(reply))
        else:
            yield dict(part.value)


def _grouped(reply: Reply, is_text_first: bool) -> list[str | ToolCall | Native]:
    parts = parts_for(reply.parts, FAMILY)
    others = [part for part in parts if not isinstance(part, str) and _is_item(part)]
    if not others or is_text_first:
        return [reply.text, *(part for part in others if isinstance(part, ToolCall | Native))]
    grouped: list[str | ToolCall | Native] = []
    for part in parts:
        if isinstance(part, str) and grouped and isinstance(grouped[-1], str):
            grouped[-1] += part
        elif isinstance(part, str | ToolCall) or (isinstance(part, Native) and _is_item(part)):
            grouped.append(part)
    kinds = {type(part) for part in grouped}
    if str not in kinds and (reply.text or ToolCall not in kinds):
        grouped.append(reply.text)
    return grouped


def _is_item(part: Part) -> bool:
    """Returns whether a part is an item by itself; another family's native part is none."""
    if isinstance(part, Native):
        return part.protocol == FAMILY and isinstance(part.value.get("type"), str) and is_writable(part.value)
    return isinstance(part, ToolCall)


def _message(reply: Reply, text: str, id_: str, is_first: bool) -> dict[str, Any]:
    if is_refusal(reply):
        part: dict[str, Any] = {"type": "refusal", "refusal": text}
    else:
        # The same as a chat completion's, but flat.
        notes = [{"type": one["type"], **one["url_citation"]} for one in notes_of(reply.citations)] if is_first else []
        tokens = logprobs(reply.logprobs) if is_first and reply.logprobs else []
        part = {"type": "output_text", "annotations": notes, "logprobs": tokens, "text": text}
    return {"id": id_, "type": "message", "status": status_of(reply), "content": [part], "role": "assistant"}


def _call(call: ToolCall, id_: str, status: str) -> dict[str, Any]:
    fields = {
        "id": id_,
        "type": "function_call",
        "status": status,
        "arguments": call.arguments,
        "call_id": call.id,
        "name": call.name,
    }
    beside = beside_of(call, FAMILY)
    # An id that the call's own server gave it is kept.
    return {**beside, **fields, "id": beside.get("id") or fields["id"]}
