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

    def __init__(self, request: ServedRequest, created: int) -> None:
        self._request = request
        self._has_usage = bool(request.told.get("usage"))
        self._base = {
            "id": "chatcmpl-" + digest(request.call),
            "object": "chat.completion.chunk",
            "created": created,
            "model": request.model,
        }
        self._sent = 0

    def begin(self) -> bytes:
        return self._chunk(0, {"role": "assistant", "content": "", "refusal": None})

    def text(self, piece: str) -> bytes:
        if not piece:
            return b""
        self._sent += len(piece)
        return self._chunk(0, {"content": piece})

    def end(self, outcomes: Sequence[Outcome]) -> bytes:
        chunks = []
        for index, outcome in enumerate(outcomes):
            if index:
                chunks.append(self._chunk(index, {"role": "assistant", "content": "", "refusal": None}))
            chunks += self._rest(index, reply_of(outcome), 0 if index else self._sent)
        if self._has_usage:
            usage = usage_of(outcomes)
            chunks.append(event({**self._base, "choices": [], "usage": None if usage is None else counted(usage)}))
        return b"".join((*chunks, DONE))

    def fail(self, problem: Problem) -> bytes:
        return event({"error": error_of(problem)})

    def ping(self) -> bytes:
        return PING

    def _rest(self, index: int, reply: Reply, sent: int) -> list[bytes]:
        """Returns the chunks of one sample without the first `sent` characters of its text, sent before."""
        chunks: list[bytes] = []
        if reply.parts and (more := fields(reply)):
            chunks.append(self._chunk(index, more))
        rest, tokens = reply.text[sent:], reply.logprobs
        if rest or tokens is not None:
            name = "refusal" if is_refusal(reply) and not sent else "content"
            chunks.append(self._chunk(index, {name: rest} if rest else {}, tokens=tokens and logprobs(tokens)))
        if reply.citations:
            chunks.append(self._chunk(index, {"annotations": notes_of(reply.citations)}))
        if reply.parts:
            chunks += self._tools(index, reply)
        chunks.append(self._chunk(index, {}, finish_of(reply, self._request)))
        return chunks

    def _tools(self, index: int, reply: Reply) -> list[bytes]:
        """Returns the chunks of the tool calls: the name of each first, then its arguments, as clients join them."""
        chunks: list[bytes] = []
        for number, call in enumerate(tool_calls(reply)):
            if self._request.told.get("functions"):
                return [self._chunk(index, {"function_call": call["function"]})]
            if call["type"] != "function":
                chunks.append(self._chunk(index, {"tool_calls": [{"index": number, **call}]}))
                continue
            function = call["function"]
            named = {"index": number, **call, "function": {"name": function["name"], "arguments": ""}}
            chunks.append(self._chunk(index, {"tool_calls": [named]}))
            if function["arguments"]:
                more = {"index": number, "function": {"arguments": function["arguments"]}}
                chunks.append(self._chunk(index, {"tool_calls": [more]}))
        return chunks

    def _chunk(self, index: int, delta: dict[str, Any], finish: str | None = None, tokens: Any = None) -> bytes:
        probabilities = None if tokens is None else {"content": tokens, "refusal": None}
        choice = {"index": index, "delta": delta, "logprobs": probabilities, "finish_reason": finish}
        whole: dict[str, Any] = {**self._base, "choices": [choice]}
        if self._has_usage:
            whole["usage"] = None
        return event(whole)
