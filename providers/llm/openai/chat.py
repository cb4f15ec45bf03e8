"""The wire protocol of OpenAI chat completions, which most servers speak: pure encode and decode.

No I/O. Only parameters that were set are sent. A reply is made only of an answer that is provably complete: JSON that
ends, or a stream with a finish reason. The contents of answers: shapes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import structs

from ....engine.call import Call, Citation, Reply, TokenLogprob, Usage
from ....engine.content import Part
from ....engine.endpoint import Fault, Request, Response
from ..answer_listeners import chat_text, listener_of
from ..answer_values import later_usage
from ..errors import error_in
from ..families import written_for
from ..faults import bad_json, broken_answer, cut_stream, empty_answer, error_within, refusal_or_fault, unreadable
from ..protocol import (
    Target,
    WireProtocol,
    add_extra,
    named_schema,
    put,
    request_of,
    sampling_of,
)
from ..repair import mended, read_object
from ..sse import events_of
from .parts import MessageParts
from .shapes import (
    ChatAnswer,
    ChatChoice,
    CompletionMessage,
    CompletionMessageOfParts,
    answer_of,
    citations_of,
    joined_origin,
    logprobs_of,
    usage_of,
    with_parts,
)
from .turns import FAMILY, add_tools, choice_of, function_tool, turns_of

PATH = "/chat/completions"
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
STREAM_ALONE: dict[str, Any] = {"stream": True}
_NOT_EXTRA = ("messages", "model", "stream")
_FINISHES = {"eos": "stop", "model_length": "length", "function_call": "tool_calls"}
# The last is DeepSeek's, for an answer that it could not continue.
_BROKEN = ("error", "insufficient_system_resource")

_decode_answer = msgspec.json.Decoder(ChatAnswer).decode


def encode(call: Call, target: Target) -> Request:
    return encode_to(call, target, PATH)


def encode_to(call: Call, target: Target, path: str) -> Request:
    """Returns the request for a call; `path` is where this server has its chat completions."""
    call = written_for(call, FAMILY)
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
    """Returns the request's body without the messages, with the target's own names of the parameters."""
    names = target.names
    params = sampling_of(call, target, max_tokens=names.get("max_tokens", "max_tokens"), seed=names.get("seed", "seed"))
    params["model"] = target.model
    if call.reasoning_effort is not None:
        put(params, names.get("reasoning_effort", "reasoning_effort"), call.reasoning_effort)
    if call.json_schema is not None:
        params["response_format"] = {"type": "json_schema", "json_schema": named_schema(call)}
    if call.logprobs is not None:
        _ask_for_logprobs(params, call.logprobs, names.get("top_logprobs", "top_logprobs"))
    if call.tools is not None or call.tool_choice is not None or call.parallel_tools is not None:
        parallel = names.get("parallel_tools", "parallel_tool_calls")
        add_tools(call, params, FAMILY, function_tool, choice_of, parallel)
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
    if response.status != 200:
        return refusal_or_fault(response)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return decode_stream(response, _ChatChunks())
    answer, is_strict = read_answer(response.body)
    if answer is None:
        return unreadable(response.body)
    if answer.error:
        return refusal_or_fault(response)
    if answer.choices is None:
        return bad_json("200 with JSON that is no chat completion")
    if not answer.choices:
        return empty_answer("an empty list of choices", usage_of(answer.usage))
    choice = answer.choices[0]
    if choice.error:
        return error_within(response, choice.error)  # OpenRouter reports here what failed behind it
    if choice.message is None:
        return bad_json("200 with a choice that holds no message")
    logprobs = None if choice.logprobs is None else logprobs_of(choice.logprobs, None)
    beside = None
    if choice.message.says_more:
        beside = MessageParts()
        beside.take(choice.message, is_whole=True)
    return reply_of(choice, answer, usage_of(answer.usage), logprobs, response, beside, is_strict=is_strict)


def reply_of(
    choice: ChatChoice,
    answer: ChatAnswer,
    usage: Usage | None,
    logprobs: list[TokenLogprob] | None,
    response: Response,
    beside: MessageParts | None,
    *,
    is_strict: bool,
) -> Reply | Fault:
    message, finish = choice.message or CompletionMessage(), choice.finish_reason
    text = message.content or message.refusal or ""
    is_refused = bool(message.refusal)
    if finish != "stop" and finish is not None:
        if finish in _BROKEN:
            return broken_answer(f"finish reason is `{finish}`")
        is_refused = is_refused or finish == "content_filter"
        finish = _FINISHES.get(finish, finish)
    if not text and (finish == "stop" or finish is None) and not is_refused and message.is_empty:
        return empty_answer("a message that says nothing", usage)
    raw_hash = sha256(response.body).hexdigest()
    parts: tuple[Part, ...] = ()
    if beside is not None:
        parts = beside.parts(message.spoken if isinstance(message, CompletionMessageOfParts) else (text,), raw_hash)
        if beside.has_calls and (finish is None or finish == "stop"):
            finish = "tool_calls"
    citations: tuple[Citation, ...] = ()
    if message.annotations or answer.citations or answer.search_results:
        citations = citations_of(message.annotations, answer.citations, answer.search_results)
    return Reply(
        text if is_strict else mended(text),
        usage,
        finish,
        is_refused,
        raw_hash,
        None if is_strict else response.body,
        None if logprobs is None else tuple(logprobs),
        citations,
        parts=parts,
        answer_id=answer.id or None,
        served=answer.model or None,
        fingerprint=answer.system_fingerprint or None,
        tier=answer.service_tier or None,
        router=answer.provider or None,
    )


def read_answer(data: bytes) -> tuple[ChatAnswer | None, bool]:
    """Returns the answer in the JSON, None if it can't be read, and whether it is JSON as the standard defines it."""
    try:
        return _decode_answer(data), True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parsed, is_strict = read_object(data)
        return (None if parsed is None else answer_of(parsed)), is_strict


class Chunks:
    """The chunks of a stream, joined into one answer."""

    def __init__(self) -> None:
        self.logprobs: list[TokenLogprob] | None = None
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.citations: list[Any] | None = None
        self.results: list[Any] | None = None
        self.origin = ChatAnswer()
        self.has_choices = False

    def take(self, chunk: ChatAnswer, response: Response, data: bytes) -> Reply | Fault | None:
        """Adds a chunk, of whose choices only the first counts. Returns the reply or fault of an error in it, whose
        JSON is `data`, else None."""
        if chunk.error:
            return refusal_or_fault(response, error_in(data))
        self.usage = later_usage(self.usage, usage_of(chunk.usage), has_more=bool(chunk.choices))
        self.citations = chunk.citations or self.citations
        self.results = chunk.search_results or self.results
        self.origin = joined_origin(self.origin, chunk)
        for choice in chunk.choices or ():
            self.has_choices = True
            if choice.index == 0:
                if choice.error:
                    return error_within(response, choice.error)
                self.take_choice(choice)
                self.finish = choice.finish_reason or self.finish
        return None

    def take_choice(self, choice: ChatChoice) -> None:
        raise NotImplementedError

    def reply(self, response: Response, *, is_strict: bool) -> Reply | Fault:
        raise NotImplementedError


class _ChatChunks(Chunks):
    def __init__(self) -> None:
        super().__init__()
        self.spoken: list[str | dict[str, Any]] = []
        self.beside: MessageParts | None = None
        self.tools: Any = None
        self.refusals: list[str] = []
        self.notes: list[Any] = []

    def take_choice(self, choice: ChatChoice) -> None:
        delta = choice.delta or choice.message or CompletionMessage()
        if isinstance(delta, CompletionMessageOfParts):
            self.spoken += delta.spoken
        elif delta.content is not None:
            self.spoken.append(delta.content)
        if delta.says_more:
            self.beside = self.beside or MessageParts()
            self.beside.take(delta)
        self.tools = delta.tool_calls or delta.function_call or self.tools
        self.refusals.append(delta.refusal or "")
        self.notes += delta.annotations or ()
        if choice.logprobs is not None:
            self.logprobs = [] if self.logprobs is None else self.logprobs
            self.logprobs += logprobs_of(choice.logprobs, delta.content) or ()

    def reply(self, response: Response, *, is_strict: bool) -> Reply | Fault:
        texts = [one for one in self.spoken if isinstance(one, str)]
        message = CompletionMessage("".join(texts) if texts else None, "".join(self.refusals), self.notes, self.tools)
        if len(texts) < len(self.spoken):
            message = with_parts(message, self.spoken)
        answer = structs.replace(self.origin, citations=self.citations, search_results=self.results)
        choice = ChatChoice(message=message, finish_reason=self.finish)
        return reply_of(choice, answer, self.usage, self.logprobs, response, self.beside, is_strict=is_strict)


def decode_stream(response: Response, joined: Chunks) -> Reply | Fault:
    """Returns the reply or the fault of a stream, which is complete only with a finish reason."""
    is_ended, are_strict = False, True
    for data in events_of(response.body):
        if data == b"[DONE]":
            is_ended = True
            break
        chunk, is_strict = read_answer(data)
        if chunk is None:
            return bad_json("a stream with a chunk that is no JSON")
        are_strict = are_strict and is_strict
        if (result := joined.take(chunk, response, data)) is not None:
            return result
    if joined.finish is not None:
        return joined.reply(response, is_strict=are_strict)
    if is_ended and not joined.has_choices:
        return empty_answer("a stream without a choice", joined.usage)
    return cut_stream("its finish reason")


PROTOCOL = WireProtocol("openai", encode, decode, listen=listener_of(chat_text), is_verbatim=True, family=FAMILY)
