"""Writes a streamed chat completion, chunk by chunk.

Bytes out, no socket. The finish reason of each sample and the mark that ends the stream are written last, when the
whole answer is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....engine.call import Outcome, Reply
from ..serve_dialect import Problem, ServedRequest
from ..serve_replies import digest, reply_of, usage_of
from .serve_answers import (
    counted,
    fields,
    finish_of,
    is_refusal,
    logprobs,
    notes_of,
    tool_calls,
)
from .serve_problems import PING, error_of, event

DONE = b"data: [DONE]\n\n"


class ChatStream:
    """The stream of one answer; `created` is its date in seconds since 1970."""

    def __init__(self, asked: ServedRequest, created: int) -> None:
        self._asked = asked
        self._has_usage = bool(asked.told.get("usage"))
        self._base = {
            "id": "chatcmpl-" + digest(asked.call),
            "object": "chat.completion.chunk",
            "created": created,
            "model": asked.model,
        }
        self._said = 0

    def begin(self) -> bytes:
        return self._chunk(0, {"role": "assistant", "content": "", "refusal": None})

    def text(self, piece: str) -> bytes:
        if not piece:
            return b""
        self._said += len(piece)
        return self._chunk(0, {"content": piece})

    def end(self, outcomes: Sequence[Outcome]) -> bytes:
        told = []
        for index, outcome in enumerate(outcomes):
            if index:
                told.append(self._chunk(index, {"role": "assistant", "content": "", "refusal": None}))
            told += self._rest(index, reply_of(outcome), 0 if index else self._said)
        if self._has_usage:
            usage = usage_of(outcomes)
            told.append(event({**self._base, "choices": [], "usage": None if usage is None else counted(usage)}))
        return b"".join((*told, DONE))

    def fail(self, problem: Problem) -> bytes:
        return event({"error": error_of(problem)})

    def ping(self) -> bytes:
        return PING

    def _rest(self, index: int, reply: Reply, said: int) -> list[bytes]:
        """Returns the chunks of one sample without the first `said` characters of its text, written before."""
        told: list[bytes] = []
        if reply.parts and (more := fields(reply)):
            told.append(self._chunk(index, more))
        rest, tokens = reply.text[said:], reply.logprobs
        if rest or tokens is not None:
            name = "refusal" if is_refusal(reply) and not said else "content"
            told.append(self._chunk(index, {name: rest} if rest else {}, tokens=tokens and logprobs(tokens)))
        if reply.citations:
            told.append(self._chunk(index, {"annotations": notes_of(reply.citations)}))
        if reply.parts:
            told += self._tools(index, reply)
        told.append(self._chunk(index, {}, finish_of(reply, self._asked)))
        return told

    def _tools(self, index: int, reply: Reply) -> list[bytes]:
        """Returns the chunks of the tool calls: the name of each first, then its arguments, as clients join them."""
        told: list[bytes] = []
        for number, call in enumerate(tool_calls(reply)):
            if self._asked.told.get("functions"):
                return [self._chunk(index, {"function_call": call["function"]})]
            if call["type"] != "function":
                told.append(self._chunk(index, {"tool_calls": [{"index": number, **call}]}))
                continue
            function = call["function"]
            named = {"index": number, **call, "function": {"name": function["name"], "arguments": ""}}
            told.append(self._chunk(index, {"tool_calls": [named]}))
            if function["arguments"]:
                more = {"index": number, "function": {"arguments": function["arguments"]}}
                told.append(self._chunk(index, {"tool_calls": [more]}))
        return told

    def _chunk(self, index: int, delta: dict[str, Any], finish: str | None = None, tokens: Any = None) -> bytes:
        said = None if tokens is None else {"content": tokens, "refusal": None}
        choice = {"index": index, "delta": delta, "logprobs": said, "finish_reason": finish}
        whole: dict[str, Any] = {**self._base, "choices": [choice]}
        if self._has_usage:
            whole["usage"] = None
        return event(whole)
