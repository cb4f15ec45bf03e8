"""Outcomes as Anthropic Messages answers them, and what of it stands in its events too (anthropic_events).

Which of the sequences ended an answer no reply says: it ended its turn. Tokens that nobody counted are 0, for clients
add them up. What another provider alone has words for is left out, and so are images: Anthropic's models draw none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...engine.call import Outcome, Reply, Usage
from ...engine.content import Native, Part, ToolCall
from ...providers.llm.families import parts_told_to
from .anthropic_turns import FAMILY
from .dialect import Asked
from .openai_answers import digest, reply_of
from .openai_problems import dumps

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
# Anthropic's own, as they come.
_OWN_STOPS = frozenset({"stop_sequence", "pause_turn", "model_context_window_exceeded"})
_ID_CHARS = 24
_NOTHING_USED = Usage(0, 0)


def whole(asked: Asked, outcomes: Sequence[Outcome]) -> bytes:
    outcome = outcomes[0]
    reply = reply_of(outcome)
    key = outcome.key or digest(asked.call)
    content = [_block(part, key, place) for place, part in enumerate(parts_of(reply))]
    return dumps(message(key, asked.model, content, stop_of(reply), usage_of(reply.usage)))


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
    """What can be told of it. Clients look at the first block, so that there is one, if only an empty text."""
    kept = [part for part in parts_told_to(reply.parts, FAMILY) if _is_told(part)]
    if not kept or (reply.text and not any(isinstance(part, ToolCall) or text_of(part) for part in kept)):
        kept.append(reply.text)
    return kept


def text_of(part: Part) -> str | None:
    """The visible text of a block, which may hold citations beside it."""
    if isinstance(part, Native) and part.value.get("type") == "text":
        part = part.value.get("text", "")
    return part if isinstance(part, str) else None


def _is_told(part: Part) -> bool:
    return isinstance(part, str | ToolCall) or (isinstance(part, Native) and part.protocol == FAMILY)


def _block(part: Part, key: str, place: int) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, ToolCall):
        return {**opened_call(part, key, place), "input": orjson.Fragment(arguments_of(part))}
    return as_it_stands(part.value if isinstance(part, Native) else {})


def as_it_stands(value: Mapping[str, Any]) -> orjson.Fragment:
    """Written by itself: what is as deep as can be written would be too deep within an answer."""
    return orjson.Fragment(dumps(value))


def opened_call(call: ToolCall, key: str, place: int) -> dict[str, Any]:
    beside = call.native.value if call.native is not None and call.native.protocol == FAMILY else {}
    named = call.id or f"toolu_{key[:_ID_CHARS]}{place}"
    return {"type": "tool_use", "id": named, "name": call.name, "input": {}, **beside}


def arguments_of(call: ToolCall) -> str:
    """An object in any case, since clients read nothing else: what a model wrote that is none stands in one."""
    if not call.arguments.strip():
        return "{}"
    try:
        is_object = isinstance(orjson.loads(call.arguments), dict)
    except orjson.JSONDecodeError:
        is_object = False
    if not is_object:
        return orjson.dumps({"arguments": call.arguments}).decode()
    # Between its tokens alone: an answer is one line, which files of them count on.
    return call.arguments.replace("\n", " ").replace("\r", " ")


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
    """What came from the provider's cache is counted beside the rest of the input."""
    known = usage or _NOTHING_USED
    counts: dict[str, Any] = {
        "input_tokens": max(known.input - known.cached_input, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": known.cached_input,
        "output_tokens": known.output,
    }
    if known.reasoning:
        counts["output_tokens_details"] = {"thinking_tokens": known.reasoning}
    return counts
