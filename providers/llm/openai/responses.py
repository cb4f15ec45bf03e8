"""The wire protocol of OpenAI Responses: pure encode and decode.

An answer is complete only with a final status, a stream only with the event that holds the whole answer. Thoughts are
no part of the text. There is neither a seed nor a stop sequence.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ....engine.call import Call, Citation, Reply, TokenLogprob, Usage
from ....engine.endpoint import Fault, Request, Response
from ..answer_listeners import listener_of, response_text
from ..answer_values import as_object, as_text, count_in, objects_in, origin_of, usage_of
from ..families import written_for
from ..faults import bad_json, broken_answer, cut_stream, empty_answer, error_within, refusal_or_fault, unreadable
from ..protocol import Target, WireProtocol, add_extra, check_absent, named_schema, request_of, sampling_of
from ..repair import mended, read_object
from ..sse import events_of
from .items import FAMILY, choice_of, content_of, function_tool, is_call, items_of, parts_of
from .shapes import billed_of, citations_of, logprobs_of
from .turns import add_tools

PATH = "/responses"
_STREAM = {"stream": True}
_NOT_EXTRA = ("input", "model", "stream")
_ENDS = {"response.completed", "response.incomplete", "response.failed"}
# Reasons for an early end -> a reply's finish reasons.
_FINISHES = {"max_output_tokens": "length", "content_filter": "content_filter"}


def encode(call: Call, target: Target) -> Request:
    call = written_for(call, FAMILY)
    params = _params_of(call, target)
    items: list[Any] = []
    for message in call.messages():
        if message.content.__class__ is str:
            items.append({"content": message.content, "role": message.role})
        else:
            items += items_of(call, message)
    unkeyed = {} if target.store is None else {"store": target.store}
    return request_of(call, target, PATH, params, {"input": items}, streamed=_STREAM, unkeyed=unkeyed)


def _params_of(call: Call, target: Target) -> dict[str, Any]:
    check_absent(call, ("seed", "stop"), "OpenAI Responses has no NAME: leave it out, or use kind openai")
    params = {"model": target.model, **sampling_of(call, target, max_tokens="max_output_tokens")}
    if call.reasoning_effort is not None:
        params["reasoning"] = {"effort": call.reasoning_effort}
    if call.json_schema is not None:
        params["text"] = {"format": {"type": "json_schema", **named_schema(call)}}
    if call.logprobs is not None:
        params["include"] = ["message.output_text.logprobs"]
        if call.logprobs:
            params["top_logprobs"] = call.logprobs
    if call.tools is not None or call.tool_choice is not None or call.parallel_tools is not None:
        add_tools(call, params, FAMILY, function_tool, choice_of)
    add_extra(call, params, _NOT_EXTRA)
    return params


def decode(response: Response) -> Reply | Fault:
    if response.status != 200:
        return refusal_or_fault(response)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _decode_stream(response)
    answer, is_strict = read_object(response.body)
    if answer is None:
        return unreadable(response.body)
    return _reply(answer, _Pieces(), response, None if is_strict else response.body)


class _Pieces:
    """The texts and items of a stream before its last event."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.items: dict[int, Any] = {}

    def take(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            self.texts.append(event["delta"])
        elif kind == "response.output_item.done" and isinstance(event.get("item"), dict):
            index = event.get("output_index")
            self.items[index if isinstance(index, int) else len(self.items)] = event["item"]

    @property
    def output(self) -> list[Any]:
        return [item for _, item in sorted(self.items.items())]


def _decode_stream(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of a stream. The last event holds the answer; earlier ones supply what some
    servers leave out of it."""
    pieces = _Pieces()
    raw: bytes | None = None
    for data in events_of(response.body):
        if data == b"[DONE]":
            break
        event, is_strict = read_object(data)
        if event is None:
            return bad_json("a stream with an event that is no JSON")
        if not is_strict:
            raw = response.body
        kind = as_text(event.get("type"))
        if kind == "error" or (not kind and event.get("error")):
            # The error is the event itself, or its field `error`, as elsewhere.
            return error_within(response, event.get("error") or {**event, "type": None})
        elif kind in _ENDS and isinstance(event.get("response"), dict):
            return _reply(event["response"], pieces, response, raw)
        pieces.take(event)
    return cut_stream("the event that completes it")


def _reply(answer: dict[str, Any], pieces: _Pieces, response: Response, raw: bytes | None) -> Reply | Fault:
    if answer.get("error"):
        return error_within(response, answer["error"])
    status = answer.get("status")
    output = answer.get("output")
    if not isinstance(output, list) or not isinstance(status, str):
        return bad_json("200 with JSON that is no response")
    output = output or pieces.output
    usage = _usage_of(answer.get("usage"))
    finish = "stop" if status == "completed" else _end_of(answer) if status == "incomplete" else None
    if finish is None:
        return broken_answer(f"status is `{mended(status[:40])}`")
    parts = [part for item in output for part in objects_in(content_of(item))]
    refusal = "".join(_texts(parts, "refusal", "refusal"))
    streamed = "".join(pieces.texts)
    if not parts and not streamed and finish == "stop" and not any(map(_is_a_tools, output)):
        return empty_answer("an empty list of outputs", usage)
    text = "".join(_texts(parts, "output_text", "text")) or streamed or refusal
    text, raw_hash = mended(text), sha256(response.body).hexdigest()
    if finish == "stop" and any(map(is_call, output)):
        finish = "tool_calls"
    return Reply(
        text,
        usage,
        finish,
        bool(refusal) or finish == "content_filter",
        raw_hash,
        raw,
        _logprobs_of(parts),
        _citations_of(parts),
        parts=parts_of(output, text, raw_hash) if any(map(_is_more, output)) else (),
        **origin_of(
            answer_id=answer.get("id"),
            served=answer.get("model"),
            tier=answer.get("service_tier"),
            router=answer.get("provider"),
        ),
    )


def _end_of(answer: dict[str, Any]) -> str | None:
    """Returns the finish reason of an incomplete answer; None if it is unusable. An answer without a reason has run out
    of tokens: some servers know no other."""
    reason = as_object(answer.get("incomplete_details")).get("reason")
    return "length" if reason is None else _FINISHES.get(str(reason))


def _is_a_tools(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") not in ("message", "reasoning")


def _is_more(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") != "message"


def _texts(parts: list[dict[str, Any]], kind: str, field: str) -> list[str]:
    return [part[field] for part in parts if part.get("type") == kind and isinstance(part.get(field), str)]


def _logprobs_of(parts: list[dict[str, Any]]) -> tuple[TokenLogprob, ...] | None:
    tokens = [one for part in parts for one in objects_in(part.get("logprobs"))]
    return tuple(logprobs_of({"content": tokens}, None) or ()) or None


def _citations_of(parts: list[dict[str, Any]]) -> tuple[Citation, ...]:
    return citations_of([one for part in parts for one in objects_in(part.get("annotations"))], None, None)


def _usage_of(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    read, written, total = (count_in(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens"))
    reasoning = count_in(usage.get("output_tokens_details"), "reasoning_tokens")
    details, cost = usage.get("input_tokens_details"), usage.get("cost")
    stored = count_in(details, "cache_write_tokens")
    # Of these, what is kept for twelve hours has a price of its own.
    longer = count_in(as_object(details).get("cache_write_tokens_details"), "ttl_12h_tokens")
    return usage_of(
        read,
        written,
        reasoning,
        count_in(details, "cached_tokens"),
        total,
        writes=(stored if stored is None or longer is None else max(stored - longer, 0), longer),
        billed=None if cost is None else billed_of(cost, usage.get("is_byok"), usage.get("cost_details")),
    )


PROTOCOL = WireProtocol("openai-responses", encode, decode, listen=listener_of(response_text), is_verbatim=True)
