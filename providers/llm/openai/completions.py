"""The wire protocol of OpenAI's older completions, which continue a text: pure encode and decode.

A call is a bare prompt. With `echo` in its extra, the answer repeats the prompt, and with logprobs also its tokens'
log-probabilities: NaN for a token without one, as the first. Complete under the same rules as a chat completion.
"""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Any

from ....engine.call import Call, Reply, TokenLogprob, Usage
from ....engine.endpoint import EncodeError, Fault, Request, Response
from ..answer_listeners import completion_text, listener_of
from ..answer_values import is_number, later_usage
from ..faults import bad_json, broken_answer, cut_stream, empty_answer, error_within, refusal_or_fault, unreadable
from ..protocol import Target, WireProtocol, add_extra, check_absent, request_of, sampling_of
from ..repair import mended, read_object
from ..sse import events_of
from .chat import BROKEN, FINISHES, STREAM, STREAM_ALONE
from .shapes import ChatAnswer, alternatives_of, answer_of, joined_origin, logprobs_of, usage_of

PATH = "/completions"
_NOT_EXTRA = ("prompt", "model", "stream")
_NOT_HERE = ("reasoning_effort", "json_schema", "tools", "tool_choice", "parallel_tools")


def encode(call: Call, target: Target) -> Request:
    check_absent(call, _NOT_HERE, "OpenAI's older completions have no NAME: leave it out, or use kind openai")
    params = {"model": target.model, **sampling_of(call, target, seed=target.names.get("seed", "seed"))}
    if call.logprobs is not None:
        params["logprobs"] = call.logprobs
    add_extra(call, params, _NOT_EXTRA)
    streamed = STREAM_ALONE if "stream_options" in target.refuses else STREAM
    return request_of(call, target, PATH, params, {"prompt": _prompt_of(call)}, streamed=streamed)


def _prompt_of(call: Call) -> str:
    if isinstance(call.input, str):
        return call.input
    only = call.input[0] if len(call.input) == 1 else None
    if only is None or only.role != "user" or not isinstance(only.content, str):
        raise EncodeError(
            f"{call.model}: OpenAI's older completions go on with one text: give a prompt, or use kind openai"
        )
    return only.content


def decode(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of a response."""
    if response.status != 200:
        return refusal_or_fault(response, response.body)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _decode_stream(response)
    answer, is_strict = read_object(response.body)
    if answer is None:
        return unreadable(response.body)
    joined = _CompletionChunks()
    fault = joined.take(answer, response, response.body)
    if fault is not None:
        return fault
    if not joined.is_one:
        return bad_json("200 with JSON that is no completion")
    if not joined.has_choices:
        return empty_answer("an empty list of choices", joined.usage)
    if not joined.texts and joined.finish != "stop":
        return bad_json("200 with a choice that holds no text")
    return joined.reply(response, None if is_strict else response.body)


def _decode_stream(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of a stream, which is complete only with a finish reason."""
    joined = _CompletionChunks()
    raw: bytes | None = None
    is_ended = False
    for data in events_of(response.body):
        if data == b"[DONE]":
            is_ended = True
            break
        chunk, is_strict = read_object(data)
        if chunk is None:
            return bad_json("a stream with a chunk that is no JSON")
        if not is_strict:
            raw = response.body
        fault = joined.take(chunk, response, data)
        if fault is not None:
            return fault
    if joined.finish is not None:
        return joined.reply(response, raw)
    if is_ended and not joined.has_choices:
        return empty_answer("a stream without a choice", joined.usage)
    return cut_stream("its finish reason")


class _CompletionChunks:
    """The chunks of a stream, joined into one answer, or a whole answer as the only chunk."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.logprobs: list[TokenLogprob] | None = None
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.origin = ChatAnswer()
        self.is_one = self.has_choices = False

    def take(self, given: dict[str, Any], response: Response, said: bytes) -> Reply | Fault | None:
        """Adds the first choice of a chunk. Returns the reply or fault of an error in it, else None."""
        answer = answer_of(given)
        if answer.error:
            return refusal_or_fault(response, said)
        self.usage = later_usage(self.usage, usage_of(answer.usage), has_more=bool(answer.choices))
        self.origin = joined_origin(self.origin, answer)
        self.is_one = self.is_one or answer.choices is not None
        raw_choices = [one for one in given.get("choices") or () if isinstance(one, dict)] if answer.choices else []
        for choice, raw in zip(answer.choices or (), raw_choices, strict=True):
            self.has_choices = True
            if choice.index != 0:
                continue
            if choice.error:
                return error_within(response, choice.error)
            text = raw.get("text")
            if isinstance(text, str):
                self.texts.append(text)
            self._take_logprobs(choice.logprobs, text if isinstance(text, str) else None)
            self.finish = choice.finish_reason or self.finish
        return None

    def _take_logprobs(self, given: Any, text: str | None) -> None:
        rows = aligned_logprobs(given)
        if rows is None and given is not None:
            rows = logprobs_of(given, text)
        if rows is not None:
            self.logprobs = [*(self.logprobs or ()), *rows]

    def reply(self, response: Response, raw: bytes | None) -> Reply | Fault:
        finish = self.finish
        if finish in BROKEN:
            return broken_answer(f"finish reason is `{finish}`")
        if not self.texts and finish == "stop":
            return empty_answer("a choice that says nothing", self.usage)
        return Reply(
            mended("".join(self.texts)),
            self.usage,
            None if finish is None else FINISHES.get(finish, finish),
            finish == "content_filter",
            sha256(response.body).hexdigest(),
            raw,
            None if self.logprobs is None else tuple(self.logprobs),
            answer_id=self.origin.id,
            served=self.origin.model,
            fingerprint=self.origin.system_fingerprint,
            tier=self.origin.service_tier,
            router=self.origin.provider,
        )


def aligned_logprobs(given: Any) -> list[TokenLogprob] | None:
    """Returns a row for each token of parallel lists, so that tokens can be counted, with NaN where the number is
    missing; None if they are not such lists."""
    if not isinstance(given, dict):
        return None
    tokens, values, tops = (given.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        return None
    rows = tops if isinstance(tops, list) and len(tops) == len(tokens) else [None] * len(tokens)
    return [
        TokenLogprob(mended(str(token)), float(value) if is_number(value) else math.nan, alternatives_of(row))
        for token, value, row in zip(tokens, values, rows, strict=True)
    ]


PROTOCOL = WireProtocol("openai-completions", encode, decode, listen=listener_of(completion_text), is_verbatim=True)
