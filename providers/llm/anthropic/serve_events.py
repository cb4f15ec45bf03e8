"""Writes a streamed answer of Anthropic Messages as server-sent events. Pure: pieces in, bytes out.

Blocks are numbered in the order in which they are written; the text that was written early is the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....engine.call import Outcome
from ....engine.content import Native, Part, ToolCall
from ..serve_dialect import Problem, ServedRequest
from ..serve_replies import arguments_of, as_it_stands, digest, dumps, reply_of
from .serve_answers import (
    message,
    opened_call,
    parts_of,
    stop_of,
    text_of,
    usage_of,
)
from .serve_errors import problem

_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_ENDED = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_NOT_STOPPED = {"stop_reason": None, "stop_sequence": None, "stop_details": None}


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps({"type": kind, **fields}))


def _is_thought(part: Part) -> bool:
    return isinstance(part, Native) and part.value.get("type") in ("thinking", "redacted_thinking")


class MessageStream:
    """The stream of one message. If the request asked for thoughts, everything is written at the end: thoughts come
    before the text, and clients send a turn back in its order. Thoughts without a request that would follow the text
    are left out, since Anthropic takes no turn that ends in one."""

    def __init__(self, request: ServedRequest) -> None:
        call = request.call
        self._request = request
        self._waits = call.reasoning_effort not in (None, "none") or "thinking" in (call.extra or ())
        self._index = -1
        self._is_open = False
        self._sent = 0

    def begin(self) -> bytes:
        """Returns the event that begins the message. Its id is made from the request, since no cache key is known yet;
        the tokens follow at the end."""
        begun = message(digest(self._request.call), self._request.model, [], _NOT_STOPPED, usage_of(None))
        return _event("message_start", message=begun)

    def text(self, piece: str) -> bytes:
        if self._waits or not piece:
            return _PING
        opening = b"" if self._is_open else self._open({"type": "text", "text": ""})
        self._sent += len(piece)
        return opening + self._delta("text_delta", text=piece)

    def end(self, outcomes: Sequence[Outcome]) -> bytes:
        outcome = outcomes[0]
        reply = reply_of(outcome)
        out = [each for part in parts_of(reply) for each in self._rest(part, outcome.key)]
        out += self._close(), _event("message_delta", delta=stop_of(reply), usage=usage_of(reply.usage)), _ENDED
        return b"".join(out)

    def fail(self, cause: Problem) -> bytes:
        return b"event: error\ndata: %b\n\n" % problem(cause)

    def ping(self) -> bytes:
        return _PING

    def _rest(self, part: Part, key: str) -> Iterator[bytes]:
        """Yields the events for a part, without the text that was sent before."""
        text = text_of(part)
        if text is None:
            if not (self._sent and _is_thought(part)):
                yield from self._block(part, key)
            return
        sent, self._sent = self._sent, max(self._sent - len(text), 0)
        rest = text[sent:]
        if not sent or (rest and not self._is_open):
            yield self._open({"type": "text", "text": ""})
        if rest:
            yield self._delta("text_delta", text=rest)
        for citation in part.value.get("citations") or () if isinstance(part, Native) else ():
            yield self._delta("citations_delta", citation=citation)

    def _block(self, part: Part, key: str) -> Iterator[bytes]:
        """Yields the events of a block that is no text, in the pieces that clients join."""
        if isinstance(part, ToolCall):
            yield self._open(opened_call(part, key, self._index + 1))
            yield self._delta("input_json_delta", partial_json=arguments_of(part))
        elif isinstance(part, Native) and part.value.get("type") == "thinking":
            yield self._open({**part.value, "thinking": "", "signature": ""})
            for name in ("thinking", "signature"):
                if text := part.value.get(name):
                    yield self._delta(f"{name}_delta", **{name: text})
        elif isinstance(part, Native) and str(part.value.get("type")).endswith("tool_use") and part.value.get("input"):
            yield self._open({**part.value, "input": {}})
            yield self._delta("input_json_delta", partial_json=dumps(part.value["input"]).decode())
        elif isinstance(part, Native):
            yield self._open(part.value)

    def _open(self, block: Mapping[str, Any]) -> bytes:
        closing = self._close()
        self._index += 1
        self._is_open = True
        return closing + _event("content_block_start", index=self._index, content_block=as_it_stands(block))

    def _delta(self, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    def _close(self) -> bytes:
        if not self._is_open:
            return b""
        self._is_open = False
        return _event("content_block_stop", index=self._index)
