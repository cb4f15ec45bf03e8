"""The wire protocol of OpenAI chat completions, which most servers speak: pure encode and decode.

Bytes in, values out, no I/O. Only what was set is sent. A reply is made only of bytes that prove
themselves whole: JSON that ends, or a stream that gave a finish reason. What the JSON may hold: openai_shapes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from ...engine.call import Call, Citation, Reply, TokenLogprob
from ...engine.content import Part
from ...engine.endpoint import Fault, Request, Response
from .families import told_to
from .faults import bad_json, broken_answer, cut_stream, empty_answer, error_within, refusal_or_fault
from .listening import listening, said_in_chat
from .openai_parts import Said
from .openai_shapes import (
    Answer,
    Choice,
    Listed,
    Message,
    RawUsage,
    answer_of,
    citations_of,
    listed,
    logprobs_of,
    usage_of,
)
from .openai_turns import FAMILY, add_tools, turns_of
from .protocol import Target, WireProtocol, add_extra, finite, named_schema, put, refuse_known, request_of
from .repair import is_strict, mended, object_of, parse_leniently
from .sse import events_of

PATH = "/chat/completions"
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
STREAM_ALONE: dict[str, Any] = {"stream": True}
_NOT_EXTRA = ("messages", "model", "stream")
FINISHES = {"eos": "stop", "model_length": "length", "function_call": "tool_calls"}
# DeepSeek's word for an answer that it could not go on with.
BROKEN = ("error", "insufficient_system_resource")

_decode_answer = msgspec.json.Decoder(Answer).decode


def encode(call: Call, target: Target) -> Request:
    return encode_to(call, target, PATH)


def encode_to(call: Call, target: Target, path: str) -> Request:
    """The same for a server that has its chat completions elsewhere."""
    call = told_to(call, FAMILY)
    params = params_of(call, target)
    messages: list[dict[str, Any]] = []
    for message in call.messages():
        if message.content.__class__ is str:
            messages.append({"content": message.content, "role": message.role})
        else:
            messages += turns_of(call, message)
    streamed = STREAM_ALONE if "stream_options" in target.refuses else STREAM
    return request_of(call, target, path, params, {"messages": messages}, streamed=streamed)


def params_of(call: Call, target: Target) -> dict[str, Any]:
    """Everything in the body but the messages, by the names that this target has for it."""
    if target.refuses:
        refuse_known(call, target)
    names = target.names
    params: dict[str, Any] = {"model": target.model}
    if call.temperature is not None:
        params["temperature"] = finite(call, "temperature", call.temperature)
    if call.max_tokens is not None:
        params[names.get("max_tokens", "max_tokens")] = call.max_tokens
    if call.top_p is not None:
        params["top_p"] = finite(call, "top_p", call.top_p)
    if call.stop is not None:
        params["stop"] = call.stop
    if call.seed is not None:
        params[names.get("seed", "seed")] = call.seed
    if call.reasoning_effort is not None:
        put(params, names.get("reasoning_effort", "reasoning_effort"), call.reasoning_effort)
    if call.json_schema is not None:
        params["response_format"] = {"type": "json_schema", "json_schema": named_schema(call)}
    if call.logprobs is not None:
        _ask_for_logprobs(params, call.logprobs, names.get("top_logprobs", "top_logprobs"))
    if call.tools is not None or call.tool_choice is not None or call.parallel_tools is not None:
        add_tools(call, params, names)
    add_extra(call, params, _NOT_EXTRA)
    return params


def _ask_for_logprobs(params: dict[str, Any], alternatives: int, name: str) -> None:
    if name == "logprobs":  # Together: one number for both, 1 for the chosen tokens alone
        params[name] = alternatives or 1
        return
    params["logprobs"] = True
    if alternatives:
        params[name] = alternatives


def decode(response: Response) -> Reply | Fault:
    """A reply, or the fault that the bytes amount to."""
    if response.status != 200:
        return refusal_or_fault(response, response.body)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _decode_stream(response)
    answer, raw = _read(response.body)
    if answer is None:
        what = "is empty" if not response.body else "ends in the middle or is none"
        return bad_json(f"200 with JSON that {what}")
    if answer.error:
        return refusal_or_fault(response, response.body)
    if answer.choices is None:
        return bad_json("200 with JSON that is no chat completion")
    if not answer.choices:
        return empty_answer("an empty list of choices", usage_of(answer.usage))
    choice = answer.choices[0]
    if choice.error:
        return error_within(response, choice.error)  # OpenRouter tells here what went wrong behind it
    if choice.message is None:
        return bad_json("200 with a choice that holds no message")
    logprobs = None if choice.logprobs is None else logprobs_of(choice.logprobs, None)
    said = None
    if choice.message.says_more:
        said = Said()
        said.take(choice.message, is_whole=True)
    return _reply(choice, answer, logprobs, response, raw, said)


def _reply(
    choice: Choice,
    answer: Answer,
    logprobs: list[TokenLogprob] | None,
    response: Response,
    raw: bytes | None,
    said: Said | None,
) -> Reply | Fault:
    message, finish = choice.message or Message(), choice.finish_reason
    text = message.content or message.refusal or ""
    is_refused = bool(message.refusal)
    if finish != "stop" and finish is not None:
        if finish in BROKEN:
            return broken_answer(f"finish reason is `{finish}`")
        is_refused = is_refused or finish == "content_filter"
        finish = FINISHES.get(finish, finish)
    if message.is_empty and (finish == "stop" or finish is None) and not is_refused:
        return empty_answer("a message that says nothing", usage_of(answer.usage))
    raw_hash = sha256(response.body).hexdigest()
    parts: tuple[Part, ...] = ()
    if said is not None:
        parts = said.parts(message.spoken if isinstance(message, Listed) else (text,), raw_hash)
        if said.has_calls and (finish is None or finish == "stop"):
            finish = "tool_calls"
    citations: tuple[Citation, ...] = ()
    if message.annotations or answer.citations or answer.search_results:
        citations = citations_of(message.annotations, answer.citations, answer.search_results)
    return Reply(
        text if raw is None else mended(text),
        usage_of(answer.usage),
        finish,
        is_refused,
        raw_hash,
        raw,
        None if logprobs is None else tuple(logprobs),
        citations,
        parts=parts,
    )


def _read(data: bytes) -> tuple[Answer | None, bytes | None]:
    """What the JSON holds, and its bytes where its texts need repair."""
    try:
        return _decode_answer(data), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parsed = object_of(parse_leniently(data))
        return (None if parsed is None else answer_of(parsed)), (None if is_strict(data) else data)


class _Joined:
    """The chunks of a stream as one answer."""

    def __init__(self) -> None:
        self.spoken: list[str | dict[str, Any]] = []
        self.said: Said | None = None
        self.tools: Any = None
        self.refusals: list[str] = []
        self.notes: list[Any] = []
        self.logprobs: list[TokenLogprob] | None = None
        self.finish: str | None = None
        self.usage: RawUsage | None = None
        self.citations: list[Any] | None = None
        self.results: list[Any] | None = None

    def take(self, chunk: Answer) -> None:
        if usage_of(chunk.usage) is not None:
            self.usage = chunk.usage
        self.citations = chunk.citations or self.citations
        self.results = chunk.search_results or self.results

    def take_choice(self, choice: Choice) -> None:
        delta = choice.delta or choice.message or Message()
        if isinstance(delta, Listed):
            self.spoken += delta.spoken
        elif delta.content is not None:
            self.spoken.append(delta.content)
        if delta.says_more:
            self.said = self.said or Said()
            self.said.take(delta)
        self.tools = delta.tool_calls or delta.function_call or self.tools
        self.refusals.append(delta.refusal or "")
        self.notes += delta.annotations or ()
        if choice.logprobs is not None:
            self.logprobs = [] if self.logprobs is None else self.logprobs
            self.logprobs += logprobs_of(choice.logprobs, delta.content) or ()
        self.finish = choice.finish_reason or self.finish

    def reply(self, response: Response, raw: bytes | None) -> Reply | Fault:
        texts = [one for one in self.spoken if isinstance(one, str)]
        message = Message("".join(texts) if texts else None, "".join(self.refusals), self.notes, self.tools)
        if len(texts) < len(self.spoken):
            message = listed(message, self.spoken)
        answer = Answer(usage=self.usage, citations=self.citations, search_results=self.results)
        choice = Choice(message=message, finish_reason=self.finish)
        return _reply(choice, answer, self.logprobs, response, raw, self.said)


def _decode_stream(response: Response) -> Reply | Fault:
    """Whole only if a finish reason came."""
    joined = _Joined()
    raw: bytes | None = None
    is_ended = has_choices = False
    for data in events_of(response.body):
        if data == b"[DONE]":
            is_ended = True
            break
        chunk, repaired = _read(data)
        if chunk is None:
            return bad_json("a stream with a chunk that is no JSON")
        if chunk.error:
            return refusal_or_fault(response, data)
        if repaired is not None:
            raw = response.body
        joined.take(chunk)
        for choice in chunk.choices or ():
            has_choices = True
            if choice.index == 0:
                if choice.error:
                    return error_within(response, choice.error)
                joined.take_choice(choice)
    if joined.finish is not None:
        return joined.reply(response, raw)
    if is_ended and not has_choices:
        return empty_answer("a stream without a choice", usage_of(joined.usage))
    return cut_stream("its finish reason")


PROTOCOL = WireProtocol("openai", encode, decode, listen=listening(said_in_chat))
