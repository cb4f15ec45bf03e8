"""Writes the JSON of a chat completion, and the parts of it that its stream shares.

Pure: values in, values out. The events of a stream: serve_chat_stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....engine.call import Citation, Outcome, Reply, TokenLogprob, Usage
from ....engine.content import Native, ToolCall
from ..serve_dialect import ServedRequest
from ..serve_replies import ID_CHARS, LOGPROB_MIN, digest, is_writable, model_of, reply_of, usage_of
from .serve_turns import BESIDE, FAMILY

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


def completion(request: ServedRequest, outcomes: Sequence[Outcome], created: int) -> dict[str, Any]:
    choices = []
    for index, outcome in enumerate(outcomes):
        reply = reply_of(outcome)
        choices.append(
            {
                "index": index,
                "message": _message(reply, request),
                "logprobs": None if reply.logprobs is None else {"content": logprobs(reply.logprobs), "refusal": None},
                "finish_reason": finish_of(reply, request),
            }
        )
    usage = usage_of(outcomes)
    return {
        "id": "chatcmpl-" + (outcomes[0].key[:ID_CHARS] or digest(request.call)),
        "object": "chat.completion",
        "created": created,
        "model": model_of(request, outcomes),
        "choices": choices,
        "usage": None if usage is None else counted(usage),
    }


def counted(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def is_refusal(reply: Reply) -> bool:
    """Returns whether the model itself refused; a filter's refusal is a finish reason instead."""
    return reply.refused and reply.finish_reason != "content_filter"


def finish_of(reply: Reply, request: ServedRequest) -> str:
    """Returns the finish reason as one of OpenAI's; a provider's own words become `stop`."""
    if reply.finish_reason == "tool_calls" or (reply.parts and reply.finish_reason is None and reply.tool_calls):
        return "function_call" if request.told.get("functions") and reply.tool_calls else "tool_calls"
    return reply.finish_reason if reply.finish_reason in _FINISHES else "stop"


def _message(reply: Reply, request: ServedRequest) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if is_refusal(reply):
        message["content"], message["refusal"] = None, reply.text
    if reply.citations:
        message["annotations"] = notes_of(reply.citations)
    if reply.parts:
        _add_parts(message, reply, request)
    return message


def _add_parts(message: dict[str, Any], reply: Reply, request: ServedRequest) -> None:
    calls = tool_calls(reply)
    if calls and request.told.get("functions"):
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    if calls and not message["content"]:
        message["content"] = None
    for name, value in fields(reply).items():
        message.setdefault(name, value)


def fields(reply: Reply) -> dict[str, Any]:
    """Returns the message's fields that a server of the same family added, such as `reasoning_content`."""
    native_fields: dict[str, Any] = {}
    for part in reply.parts:
        if isinstance(part, Native) and part.protocol == FAMILY and "type" not in part.value:
            native_fields |= {name: value for name, value in part.value.items() if is_writable(value)}
    return native_fields


def tool_calls(reply: Reply) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({**beside_of(part, FAMILY), "id": part.id, "type": "function", "function": function})
        elif isinstance(part, Native) and part.protocol == FAMILY and part.value.get("type") == "custom":
            calls.append(dict(part.value))
    return calls


def beside_of(call: ToolCall, family: str) -> Mapping[str, Any]:
    """Returns the fields beside a tool call; those of another family than this under its name, as they are wanted
    back."""
    native = call.native
    if native is None or not is_writable(native.value):
        return {}
    return native.value if native.protocol == family else {BESIDE: {native.protocol: native.value}}


def notes_of(citations: Sequence[Citation]) -> list[dict[str, Any]]:
    """Returns the citations as annotations. Their places in the text are unknown: the two that the protocol requires
    are 0."""
    return [
        {
            "type": "url_citation",
            "url_citation": {"start_index": 0, "end_index": 0, "title": one.title or "", "url": one.url},
        }
        for one in citations
    ]


def logprobs(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    return [
        {**_token(one.token, one.logprob), "top_logprobs": [_token(token, value) for token, value in one.top]}
        for one in tokens
    ]


def _token(token: str, logprob: float) -> dict[str, Any]:
    value = logprob if logprob >= LOGPROB_MIN else LOGPROB_MIN
    return {"token": token, "logprob": value, "bytes": list(token.encode("utf-8", "replace"))}
