"""Writes outcomes as answers of Anthropic Messages, and the parts that its events share (serve_events).

A reply does not hold which stop sequence ended it: it is written as `end_turn`. Unknown counts of tokens are 0, since
clients add them up. Native parts of other providers are left out, and so are images, which Anthropic's models don't
make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ....engine.call import NOT_REPORTED, Outcome, Reply, Usage
from ....engine.content import Native, Part, ToolCall
from ..families import parts_for
from ..serve_dialect import ServedRequest
from ..serve_replies import arguments_of, as_it_stands, digest, dumps, is_writable, model_of, own_fields, reply_of
from .serve_turns import FAMILY

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
# Anthropic's own stop reasons, which go on unchanged.
_OWN_STOPS = frozenset({"stop_sequence", "pause_turn", "model_context_window_exceeded"})
_ID_CHARS = 24


def whole(request: ServedRequest, outcomes: Sequence[Outcome]) -> bytes:
    outcome = outcomes[0]
    reply = reply_of(outcome)
    key = outcome.key or digest(request.call)
    content = [_block(part, key, place) for place, part in enumerate(parts_of(reply))]
    return dumps(message(key, model_of(request, outcomes), content, stop_of(reply), usage_of(reply.usage)))


def message(
    key: str, model: str, content: list[Any], stop: Mapping[str, Any], usage: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "id": f"msg_{key[:_ID_CHARS]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        **stop,
        "usage": usage,
    }


def parts_of(reply: Reply) -> list[Part]:
    """Returns the parts of an answer, at least one: clients read the first, so an empty answer has an empty text."""
    kept = [part for part in parts_for(reply.parts, FAMILY) if _is_sent(part)]
    if not kept or (reply.text and not any(isinstance(part, ToolCall) or text_of(part) for part in kept)):
        kept.append(reply.text)
    return kept


def text_of(part: Part) -> str | None:
    """Returns the visible text of a part, which may have citations; None if it is no text."""
    if isinstance(part, Native) and part.value.get("type") == "text":
        part = part.value.get("text", "")
    return part if isinstance(part, str) else None


def _is_sent(part: Part) -> bool:
    if isinstance(part, Native):
        return part.protocol == FAMILY and is_writable(part.value)
    return isinstance(part, str | ToolCall)


def _block(part: Part, key: str, place: int) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, ToolCall):
        return {**opened_call(part, key, place), "input": orjson.Fragment(arguments_of(part))}
    return as_it_stands(part.value if isinstance(part, Native) else {})


def opened_call(call: ToolCall, key: str, place: int) -> dict[str, Any]:
    named = call.id or f"toolu_{key[:_ID_CHARS]}{place}"
    return {"type": "tool_use", "id": named, "name": call.name, "input": {}, **own_fields(call, FAMILY)}


def stop_of(reply: Reply) -> dict[str, Any]:
    details = None
    finish = reply.finish_reason or "stop"
    if reply.refused or finish == "content_filter":
        reason, details = "refusal", {"type": "refusal", "category": None, "explanation": None}
    elif finish == "stop" and reply.tool_calls:
        reason = "tool_use"
    else:
        reason = _STOPS.get(finish, finish if finish in _OWN_STOPS else "end_turn")
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": details}


def usage_of(usage: Usage | None) -> dict[str, Any]:
    """Returns the token counts, 0 for unknown ones. Anthropic counts input from the provider's cache apart."""
    reported = usage or NOT_REPORTED
    counts: dict[str, Any] = {
        "input_tokens": max((reported.input or 0) - reported.cached_input - reported.cache_written, 0),
        "cache_creation_input_tokens": reported.cache_written,
        "cache_read_input_tokens": reported.cached_input,
        "output_tokens": reported.output or 0,
    }
    if reported.reasoning:
        counts["output_tokens_details"] = {"thinking_tokens": reported.reasoning}
    return counts
