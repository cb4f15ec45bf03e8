"""Answers in the words of OpenAI's chat completions: what a whole one holds, and what its parts are in a stream too.

Pure: values in, values out. How they are cut into events: openai_chat_stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from hashlib import sha256
from typing import Any

from ...engine.call import Call, Citation, Outcome, Reply, TokenLogprob, Usage, known_sum
from ...engine.content import Native, ToolCall
from .dialect import Asked
from .openai_problems import is_writable
from .openai_turns import BESIDE, FAMILY

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})
# What stands for a probability that no number holds.
LOGPROB_MIN = -9999.0
_ID_CHARS = 29


def completion(asked: Asked, outcomes: Sequence[Outcome], created: int) -> dict[str, Any]:
    choices = []
    usage: Usage | None = None
    for index, outcome in enumerate(outcomes):
        reply = reply_of(outcome)
        usage = known_sum(usage, reply.usage)
        choices.append(
            {
                "index": index,
                "message": _message(reply, asked),
                "logprobs": None if reply.logprobs is None else {"content": logprobs(reply.logprobs), "refusal": None},
                "finish_reason": finish_of(reply, asked),
            }
        )
    return {
        "id": "chatcmpl-" + (outcomes[0].key[:_ID_CHARS] or digest(asked.call)),
        "object": "chat.completion",
        "created": created,
        "model": asked.model,
        "choices": choices,
        "usage": None if usage is None else counted(usage),
    }


def reply_of(outcome: Outcome) -> Reply:
    if outcome.reply is None:
        raise ValueError("an answer is made of outcomes that have a reply")
    return outcome.reply


def digest(call: Call) -> str:
    """A name for the answer to a call whose key nobody knows yet, the same whenever it is asked again."""
    said = repr((call.model, call.input, call.extra, call.tools, call.trial))
    return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_CHARS]


def usage_of(outcomes: Sequence[Outcome]) -> Usage | None:
    known: Usage | None = None
    return reduce(known_sum, (reply_of(outcome).usage for outcome in outcomes), known)


def counted(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def is_refusal(reply: Reply) -> bool:
    """The model's own; one of a filter is told as the end of the answer."""
    return reply.refused and reply.finish_reason != "content_filter"


def finish_of(reply: Reply, asked: Asked) -> str:
    """One of the protocol's words: whatever else a provider calls an end is one all the same."""
    if reply.finish_reason == "tool_calls" or (reply.parts and reply.finish_reason is None and reply.tool_calls):
        return "function_call" if asked.told.get("functions") and reply.tool_calls else "tool_calls"
    return reply.finish_reason if reply.finish_reason in _FINISHES else "stop"


def _message(reply: Reply, asked: Asked) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if is_refusal(reply):
        message["content"], message["refusal"] = None, reply.text
    if reply.citations:
        message["annotations"] = notes_of(reply.citations)
    if reply.parts:
        _add_parts(message, reply, asked)
    return message


def _add_parts(message: dict[str, Any], reply: Reply, asked: Asked) -> None:
    calls = tool_calls(reply)
    if calls and asked.told.get("functions"):
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    if calls and not message["content"]:
        message["content"] = None
    for name, value in fields(reply).items():
        message.setdefault(name, value)


def fields(reply: Reply) -> dict[str, Any]:
    """What a server of the same family said in fields of its own, as `reasoning_content`."""
    said: dict[str, Any] = {}
    for part in reply.parts:
        if isinstance(part, Native) and part.protocol == FAMILY and "type" not in part.value:
            said |= {name: value for name, value in part.value.items() if is_writable(value)}
    return said


def tool_calls(reply: Reply) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            calls.append(_tool_call(part))
        elif isinstance(part, Native) and part.protocol == FAMILY and part.value.get("type") == "custom":
            calls.append(dict(part.value))
    return calls


def _tool_call(call: ToolCall) -> dict[str, Any]:
    said = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    native = call.native
    if native is None or not is_writable(native.value):
        return said
    beside = native.value if native.protocol == FAMILY else {BESIDE: {native.protocol: native.value}}
    return {**beside, **said}


def notes_of(citations: Sequence[Citation]) -> list[dict[str, Any]]:
    """Which words of the text refer to it is not known: the protocol wants two numbers all the same."""
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
