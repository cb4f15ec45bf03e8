"""Writes a streamed response of OpenAI's Responses, event by event.

Bytes out, no socket. Only the last event, when the whole answer is known, says that the response is completed, or why
it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....engine.call import Outcome
from ..serve_dialect import Problem, ServedRequest
from ..serve_replies import digest, reply_of
from .serve_problems import PING, error_of, event
from .serve_response_objects import begun, ended, items_of

_PARTS: dict[str, dict[str, Any]] = {
    "output_text": {"type": "output_text", "annotations": [], "logprobs": [], "text": ""},
    "refusal": {"type": "refusal", "refusal": ""},
}


class ResponseStream:
    """The stream of one response; `created` is its date in seconds since 1970."""

    def __init__(self, request: ServedRequest, created: int) -> None:
        self._name = digest(request.call)
        self._begun = begun(request, self._name, created)
        self._number = 0
        self._sent = ""

    def begin(self) -> bytes:
        created = self._event("response.created", response=self._begun)
        return created + self._event("response.in_progress", response=self._begun)

    def text(self, piece: str) -> bytes:
        if not piece:
            return b""
        opened = b"" if self._sent else b"".join(self._open_message(f"msg_{self._name}", 0, "output_text"))
        self._sent += piece
        return opened + self._delta(f"msg_{self._name}", 0, "output_text", piece, [])

    def end(self, outcomes: Sequence[Outcome]) -> bytes:
        reply = reply_of(outcomes[0])
        items = list(items_of(reply, self._name, is_text_first=bool(self._sent)))
        if self._sent and items[0]["content"][0]["type"] == "refusal":
            # It was written as a text already.
            items[0]["content"] = [{**_PARTS["output_text"], "text": reply.text}]
        events = [piece for index, item in enumerate(items) for piece in self._item(index, item)]
        whole = ended(self._begun, reply, items)
        return b"".join((*events, self._event(f"response.{whole['status']}", response=whole)))

    def fail(self, problem: Problem) -> bytes:
        error = error_of(problem)
        # In the event itself, as the protocol has it, and under `error`, where clients look for any other error.
        fields = {"code": error["code"], "message": error["message"], "param": error["param"], "error": error}
        code = "server_error" if problem.status >= 500 else "invalid_prompt"
        code = "rate_limit_exceeded" if problem.status == 429 else code
        failed = {**self._begun, "status": "failed", "error": {"code": code, "message": problem.message}}
        return self._event("error", **fields) + self._event("response.failed", response=failed)

    def ping(self) -> bytes:
        return PING

    def _item(self, index: int, item: dict[str, Any]) -> Iterator[bytes]:
        match item["type"]:
            case "message":
                yield from self._message(index, item)
            case "function_call":
                yield self._added(index, {**item, "arguments": "", "status": "in_progress"})
                at = {"item_id": item["id"], "output_index": index}
                if item["arguments"]:
                    yield self._event("response.function_call_arguments.delta", **at, delta=item["arguments"])
                yield self._event(
                    "response.function_call_arguments.done", **at, name=item["name"], arguments=item["arguments"]
                )
            case _:
                yield self._added(index, item)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _message(self, index: int, item: dict[str, Any]) -> Iterator[bytes]:
        part = item["content"][0]
        kind = part["type"]
        field, tokens = ("text" if kind == "output_text" else "refusal"), part.get("logprobs", [])
        sent = self._sent if index == 0 else ""
        if not sent:
            yield from self._open_message(item["id"], index, kind)
        if rest := part[field][len(sent) :]:
            yield self._delta(item["id"], index, kind, rest, [] if sent else tokens)
        at = {"item_id": item["id"], "output_index": index, "content_index": 0}
        for number, note in enumerate(part.get("annotations", ())):
            yield self._event("response.output_text.annotation.added", **at, annotation_index=number, annotation=note)
        more = {"logprobs": tokens} if kind == "output_text" else {}
        yield self._event(f"response.{kind}.done", **at, **{field: part[field]}, **more)
        yield self._event("response.content_part.done", **at, part=part)

    def _open_message(self, id_: str, index: int, kind: str) -> Iterator[bytes]:
        empty = {"id": id_, "type": "message", "status": "in_progress", "content": [], "role": "assistant"}
        yield self._added(index, empty)
        yield self._event(
            "response.content_part.added", item_id=id_, output_index=index, content_index=0, part=_PARTS[kind]
        )

    def _added(self, index: int, item: dict[str, Any]) -> bytes:
        return self._event("response.output_item.added", output_index=index, item=item)

    def _delta(self, id_: str, index: int, kind: str, piece: str, tokens: list[Any]) -> bytes:
        more = {"logprobs": tokens} if kind == "output_text" else {}
        return self._event(
            f"response.{kind}.delta", item_id=id_, output_index=index, content_index=0, delta=piece, **more
        )

    def _event(self, kind: str, **fields: Any) -> bytes:
        number = self._number
        self._number += 1
        return event({"type": kind, "sequence_number": number, **fields}, kind)
