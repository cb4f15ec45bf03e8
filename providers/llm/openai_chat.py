"""The wire protocol of OpenAI chat completions, which most servers speak: pure encode and decode.

Bytes in, values out, no I/O. Only what was set is sent. A reply is made only of bytes that prove
themselves whole: JSON that ends, or a stream that gave a finish reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from ...engine.call import Call, Reply, Usage
from ...engine.endpoint import EncodeError, Fault, Request, Response
from .faults import ErrorBody, fault_of
from .repair import is_strict, mended, object_of, parse_leniently

PATH = "/chat/completions"
_STREAM_OPTIONS = {"include_usage": True}
_NOT_EXTRA = ("messages", "model", "stream")
# No model counts this far: a usage beyond it is noise, and would keep a lane waiting for years.
_TOKENS_MAX = 1_000_000_000


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


def encode(call: Call, model: str, *, base_url: str, identity: str, max_tokens_name: str = "max_tokens") -> Request:
    """The request for a call; `model` is the provider's own name for it."""
    params: dict[str, Any] = {"model": model}
    if call.temperature is not None:
        params["temperature"] = _number(call, "temperature", call.temperature)
    if call.max_tokens is not None:
        params[max_tokens_name] = call.max_tokens
    if call.top_p is not None:
        params["top_p"] = _number(call, "top_p", call.top_p)
    if call.stop is not None:
        params["stop"] = call.stop
    if call.seed is not None:
        params["seed"] = call.seed
    if call.extra is not None:
        if taken := [name for name in _NOT_EXTRA if name in call.extra]:
            raise EncodeError(
                f"extra of the call to {call.model} can't set {', '.join(taken)}: the call itself says it"
            )
        params.update(call.extra)
    try:
        prompt = orjson.dumps([{"content": message.content, "role": message.role} for message in call.messages()])
        body = orjson.dumps({**params, "messages": orjson.Fragment(prompt)}, option=orjson.OPT_SORT_KEYS)
        wire = body
        if call.stream:
            streamed = {**params, "messages": orjson.Fragment(prompt), "stream": True}
            streamed.setdefault("stream_options", _STREAM_OPTIONS)
            wire = orjson.dumps(streamed, option=orjson.OPT_SORT_KEYS)
        stated = orjson.dumps(params, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise EncodeError(f"the call to {call.model} can't be written as JSON ({error}): mend its text") from error
    return Request(base_url + PATH, identity + PATH, body, wire, prompt, stated, call.stream)


def _number(call: Call, name: str, value: float) -> float:
    """0 and 0.0 and -0.0 are one request; JSON has no words for infinities."""
    if not math.isfinite(value):
        raise EncodeError(f"{name} ({value}) of the call to {call.model} must be a finite number")
    return float(value) + 0.0


def decode(response: Response) -> Reply | Fault:
    """A reply, or the fault that the bytes amount to."""
    if response.status != 200:
        return _refusal_or_fault(response, response.body)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _decode_stream(response)
    answer, raw = _read(response.body)
    if answer is None:
        what = "is empty" if not response.body else "ends in the middle or is none"
        return _bad_json(f"200 with JSON that {what}")
    if answer.error:
        return _refusal_or_fault(response, response.body)
    if answer.choices is None:
        return _bad_json("200 with JSON that is no chat completion")
    if not answer.choices:
        return _empty(answer.usage)
    choice = answer.choices[0]
    if choice.message is None:
        return _bad_json("200 with a choice that holds no message")
    return _reply(choice.message, answer.usage, choice.finish_reason, response, raw)


def _bad_json(detail: str) -> Fault:
    return Fault("bad_json", detail, "retry", 200, is_billed_maybe=True)


def _empty(usage: _Usage | None) -> Fault:
    counted = _usage(usage)
    tokens = 0 if counted is None else counted.input + counted.output
    detail = "200 with an empty list of choices"
    return Fault("empty", detail, "retry", 200, quota="settle", attempts_max=2, usage_tokens=tokens)


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None or not (0 <= usage.prompt_tokens < _TOKENS_MAX and 0 <= usage.completion_tokens < _TOKENS_MAX):
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


def _refusal_or_fault(response: Response, said: bytes) -> Reply | Fault:
    """A content filter's refusal is an answer; everything else is a fault. `said`: the JSON that tells."""
    if response.status in (200, 400, 403, 422):
        error = ErrorBody(said)
        if error.is_content_filter:
            raw_hash = sha256(response.body).hexdigest()
            return Reply(error.message, None, "content_filter", refused=True, raw_hash=raw_hash)
    return fault_of(Response(response.status, said, headers=response.headers))


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
    if not all(isinstance(count, int | float) and 0 <= count < _TOKENS_MAX for count in counts):
        return None
    return _Usage(int(counts[0]), int(counts[1]))


def events_of(body: bytes) -> Iterator[bytes]:
    """The data of each whole server-sent event; a last one without its blank line is not whole."""
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    whole, _, _ = text.rpartition(b"\n\n")
    for block in whole.split(b"\n\n"):
        lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(lines)


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
            return _bad_json("a stream with a chunk that is no JSON")
        if chunk.error:
            return _refusal_or_fault(response, data)
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
        return _empty(usage)
    if finish is None:
        detail = "a stream that ended before its finish reason"
        return Fault("incomplete", detail, "retry", 200, is_billed_maybe=True)
    return _reply(_Message("".join(texts), "".join(refusals)), usage, finish, response, raw)
