"""The wire protocol of OpenAI chat completions, which most servers speak: pure encode and decode.

Bytes in, values out, no I/O. Only what was set is sent. A reply is made only of bytes that prove
themselves whole: JSON that ends, or a stream that gave a finish reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from ...engine.call import Call, Reply, Usage
from ...engine.endpoint import EncodeError, Fault, Request, Response
from .faults import ErrorBody, fault_of, parse_leniently

PATH = "/chat/completions"
_STREAM_OPTIONS = {"include_usage": True}


class _Message(Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct, frozen=True):
    message: _Message = _Message()
    finish_reason: str | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Body(Struct, frozen=True):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


_decode_body = msgspec.json.Decoder(_Body).decode


def encode(call: Call, model: str, *, base_url: str, identity: str, max_tokens_name: str = "max_tokens") -> Request:
    """The request for a call; `model` is the provider's own name for it."""
    params: dict[str, Any] = {"model": model}
    if call.temperature is not None:
        params["temperature"] = float(call.temperature)
    if call.max_tokens is not None:
        params[max_tokens_name] = call.max_tokens
    if call.top_p is not None:
        params["top_p"] = float(call.top_p)
    if call.stop is not None:
        params["stop"] = call.stop
    if call.seed is not None:
        params["seed"] = call.seed
    if call.extra is not None:
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


def decode(response: Response) -> Reply | Fault:
    """A reply, or the fault that the bytes amount to."""
    if response.status != 200:
        return _refusal_or_fault(response)
    if response.stream and not response.body.lstrip().startswith(b"{"):
        return _decode_stream(response)
    try:
        body = _decode_body(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_repaired(response)
    return _reply_of(body, response, None)


def _reply_of(body: _Body, response: Response, raw: bytes | None) -> Reply | Fault:
    if not body.choices:
        if body.error and bytes(body.error) != b"null":
            return _refusal_or_fault(response)
        if body.choices is None:
            return Fault("bad_json", "200 with JSON that is no chat completion", "retry", 200, is_billed_maybe=True)
        return _empty(body.usage)
    choice = body.choices[0]
    message = choice.message
    is_refused = message.refusal is not None or choice.finish_reason == "content_filter"
    return Reply(
        message.refusal if message.refusal is not None and not message.content else (message.content or ""),
        _usage(body.usage),
        choice.finish_reason,
        is_refused,
        sha256(response.body).hexdigest(),
        raw,
    )


def _empty(usage: _Usage | None) -> Fault:
    tokens = 0 if usage is None else usage.prompt_tokens + usage.completion_tokens
    detail = "200 with an empty list of choices"
    return Fault("empty", detail, "retry", 200, quota="settle", attempts_max=2, usage_tokens=tokens)


def _usage(usage: _Usage | None) -> Usage | None:
    return None if usage is None else Usage(usage.prompt_tokens, usage.completion_tokens)


def _refusal_or_fault(response: Response) -> Reply | Fault:
    """A content filter's refusal is an answer; everything else is a fault."""
    if response.status in (200, 400, 403, 422):
        error = ErrorBody(response.body)
        if error.is_content_filter:
            raw_hash = sha256(response.body).hexdigest()
            return Reply(error.message, None, "content_filter", refused=True, raw_hash=raw_hash)
    return fault_of(response)


def _decode_repaired(response: Response) -> Reply | Fault:
    """Bytes that are no strict JSON: cut short, or with text that no encoding allows."""
    parsed = parse_leniently(response.body)
    if not isinstance(parsed, dict):
        what = "ends in the middle" if response.body else "is empty"
        return Fault("bad_json", f"200 with JSON that {what}", "retry", 200, is_billed_maybe=True)
    try:
        body = msgspec.convert(_replace_surrogates(parsed), _Body, strict=False)
    except msgspec.ValidationError as error:
        return Fault("bad_json", f"200 with JSON that is no chat completion ({error})", "retry", 200)
    return _reply_of(body, response, response.body)


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        # `error` keeps its bytes nowhere but in the response; here only its presence matters.
        return {k: _replace_surrogates(v) if k != "error" else msgspec.Raw(b"{}") for k, v in value.items()}
    return [_replace_surrogates(v) for v in value] if isinstance(value, list) else value


class _Delta(Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _ChunkChoice(Struct, frozen=True):
    index: int = 0
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Chunk(Struct, frozen=True):
    choices: list[_ChunkChoice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


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
    for data in events_of(response.body):
        if data == b"[DONE]":
            break
        try:
            chunk = _decode_chunk(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            parsed = parse_leniently(data)
            if not isinstance(parsed, dict):
                return Fault("bad_json", "a stream with a chunk that is no JSON", "retry", 200, is_billed_maybe=True)
            chunk = msgspec.convert(_replace_surrogates(parsed), _Chunk, strict=False)
            raw = response.body
        if chunk.error and bytes(chunk.error) != b"null":
            return fault_of(Response(200, data))
        usage = chunk.usage or usage
        for choice in chunk.choices or ():
            if choice.index == 0:
                texts.append(choice.delta.content or "")
                refusals.append(choice.delta.refusal or "")
                finish = choice.finish_reason or finish
    if finish is None:
        detail = "a stream that ended before its finish reason"
        return Fault("incomplete", detail, "retry", 200, is_billed_maybe=True)
    refusal = "".join(refusals)
    text = "".join(texts) or refusal
    is_refused = bool(refusal) or finish == "content_filter"
    return Reply(text, _usage(usage), finish, is_refused, sha256(response.body).hexdigest(), raw)
