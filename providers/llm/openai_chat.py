"""The wire protocol of OpenAI chat completions, which most servers speak: pure encode and decode.

Bytes in, values out, no I/O. Only what was set is sent. A reply is made only of bytes that prove
themselves whole: JSON that ends, or a stream that gave a finish reason.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from ...engine.call import Call, Reply, Usage
from ...engine.endpoint import Fault, Request, Response
from .faults import TOKENS_MAX, bad_json, cut_stream, empty_answer, refusal_or_fault
from .protocol import Target, WireProtocol, add_extra, finite, named_schema, put, refuse_known, request_of
from .repair import is_strict, mended, object_of, parse_leniently
from .sse import events_of

PATH = "/chat/completions"
_STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
_NOT_EXTRA = ("messages", "model", "stream")


class _Message(Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct, frozen=True):
    """`message` in a whole answer, `delta` in a chunk of a stream."""

    index: int = 0
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Answer(Struct, frozen=True):
    """A whole body or one chunk of a stream: as much of it as means something here."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode_answer = msgspec.json.Decoder(_Answer).decode


def encode(call: Call, target: Target) -> Request:
    params = params_of(call, target)
    messages = [{"content": message.content, "role": message.role} for message in call.messages()]
    return request_of(call, target, PATH, params, {"messages": messages}, streamed=_STREAM)


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
        params["response_format"] = {"type": "json_schema", "json_schema": named_schema(call.json_schema)}
    if call.logprobs is not None:
        params["logprobs"] = True
        if call.logprobs:
            params["top_logprobs"] = call.logprobs
    add_extra(call, params, _NOT_EXTRA)
    return params


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
        return empty_answer("an empty list of choices", _usage(answer.usage))
    choice = answer.choices[0]
    if choice.message is None:
        return bad_json("200 with a choice that holds no message")
    return _reply(choice.message, answer.usage, choice.finish_reason, response, raw)


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None or not (0 <= usage.prompt_tokens < TOKENS_MAX and 0 <= usage.completion_tokens < TOKENS_MAX):
        return None
    return Usage(usage.prompt_tokens, usage.completion_tokens)


def _reply(
    message: _Message, usage: _Usage | None, finish: str | None, response: Response, raw: bytes | None
) -> Reply | Fault:
    if finish == "error":
        return Fault("server_error", "200 whose finish reason is `error`", "retry", 200, is_billed_maybe=True)
    text = message.content or message.refusal or ""
    is_refused = bool(message.refusal) or finish == "content_filter"
    raw_hash = sha256(response.body).hexdigest()
    return Reply(text if raw is None else mended(text), _usage(usage), finish, is_refused, raw_hash, raw)


def _read(data: bytes) -> tuple[_Answer | None, bytes | None]:
    """What the JSON holds, and its bytes where its texts need repair."""
    try:
        return _decode_answer(data), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parsed = object_of(parse_leniently(data))
        return (None if parsed is None else _answer_of(parsed)), (None if is_strict(data) else data)


def _answer_of(parsed: dict[str, Any]) -> _Answer:
    """The same from JSON of a less usual shape: what has another type than it should is not there."""
    choices = parsed.get("choices")
    usage = parsed.get("usage")
    return _Answer(
        [_choice_of(one) for one in choices if isinstance(one, dict)] if isinstance(choices, list) else None,
        _usage_of(usage) if isinstance(usage, dict) else None,
        parsed.get("error"),
    )


def _choice_of(choice: dict[str, Any]) -> _Choice:
    index, finish = choice.get("index"), choice.get("finish_reason")
    return _Choice(
        index if isinstance(index, int) else 0,
        _message_of(choice.get("message")),
        _message_of(choice.get("delta")),
        mended(finish) if isinstance(finish, str) else None,
    )


def _message_of(message: Any) -> _Message | None:
    return (
        _Message(_text_of(message.get("content")), _text_of(message.get("refusal")))
        if isinstance(message, dict)
        else None
    )


def _text_of(value: Any) -> str | None:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return value if isinstance(value, str) else None


def _usage_of(usage: dict[str, Any]) -> _Usage | None:
    counts = [usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int | float) and 0 <= count < TOKENS_MAX for count in counts):
        return None
    return _Usage(int(counts[0]), int(counts[1]))


def _decode_stream(response: Response) -> Reply | Fault:
    """Chunks joined into one answer. Whole only if a finish reason came."""
    texts: list[str] = []
    refusals: list[str] = []
    usage: _Usage | None = None
    finish: str | None = None
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
        usage = chunk.usage or usage
        for choice in chunk.choices or ():
            has_choices = True
            if choice.index == 0:
                delta = choice.delta or choice.message or _Message()
                texts.append(delta.content or "")
                refusals.append(delta.refusal or "")
                finish = choice.finish_reason or finish
    if finish is None and is_ended and not has_choices:
        return empty_answer("a stream without a choice", _usage(usage))
    if finish is None:
        return cut_stream("its finish reason")
    return _reply(_Message("".join(texts), "".join(refusals)), usage, finish, response, raw)


PROTOCOL = WireProtocol("openai", encode, decode)
