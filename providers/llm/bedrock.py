"""The wire protocol of Amazon Bedrock, Converse and ConverseStream: pure encode and decode.

Whole only with a stop reason; a stream is binary, and every message of it checked (event_stream). What was thought
aloud is no part of the text. There are neither seeds nor log-probabilities. What errors mean: bedrock_errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson
from msgspec import Struct

from ...engine.call import Call, Citation, Reply, Usage
from ...engine.endpoint import EncodeError, Fault, Request, Response
from .bedrock_errors import bedrock_refusal_or_fault, name_within, told
from .event_stream import BrokenStream, messages_of
from .faults import TOKENS_MAX, bad_json, broken_answer, cut_stream, empty_answer
from .openai_shapes import counted
from .protocol import Target, WireProtocol, add_extra, finite, named_schema, refuse_known, request_of, schema_of
from .repair import mended, object_of, parse_leniently

_SYSTEM = ("system", "developer")
_ROLES = ("user", "assistant")
_NOT_EXTRA = ("messages", "model", "modelId", "stream", "system")
# Converse's own fields; whatever else is extra belongs to the model.
_FIELDS = frozenset(
    {
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "inferenceConfig",
        "outputConfig",
        "performanceConfig",
        "promptVariables",
        "requestMetadata",
        "serviceTier",
        "toolConfig",
    }
)
_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "content_filter",
}
# Bedrock's words for an answer that the model did not bring to an end.
_BROKEN = ("malformed_model_output", "malformed_tool_use")
_NO_ANSWER = "200 with JSON that is no answer of Converse's"


def encode(call: Call, target: Target) -> Request:
    # A name may be an ARN with slashes and colons: it is one part of the path.
    path = f"/model/{quote(target.model, safe='')}/converse"
    return request_of(
        call, target, path, _params_of(call, target), _prompt_of(call), stream_path=f"{path}-stream", identity=path
    )


def _prompt_of(call: Call) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    system: list[dict[str, str]] = []
    for message in call.messages():
        block = {"text": message.words}
        if message.role in _SYSTEM:
            system.append(block)
        elif message.role in _ROLES:
            messages.append({"content": [block], "role": message.role})
        else:
            raise EncodeError(
                f"{call.model}: Bedrock has no role {message.role!r}, only system, user and assistant: "
                f"mend the messages"
            )
    if not messages:
        raise EncodeError(f"{call.model}: Bedrock wants at least one message of a user besides the system prompt")
    return {"messages": messages, "system": system} if system else {"messages": messages}


def _params_of(call: Call, target: Target) -> dict[str, Any]:
    """Everything in the body but what is said. The caller's own fields are added to ours, each where it belongs."""
    refuse_known(call, target)
    for name in ("seed", "logprobs"):
        if getattr(call, name) is not None:
            raise EncodeError(
                f"{call.model}: Bedrock has no {name}: leave it out, or put the model's own field for it into extra"
            )
    config: dict[str, Any] = {}
    if call.temperature is not None:
        config["temperature"] = finite(call, "temperature", call.temperature)
    if call.max_tokens is not None:
        config["maxTokens"] = call.max_tokens
    if call.top_p is not None:
        config["topP"] = finite(call, "top_p", call.top_p)
    if call.stop is not None:
        config["stopSequences"] = call.stop
    output: dict[str, Any] = {}
    if call.reasoning_effort is not None:
        output["effort"] = call.reasoning_effort
    if call.json_schema is not None:
        # The schema goes as a text within the JSON.
        given = {"name": named_schema(call)["name"], "schema": orjson.dumps(schema_of(call)).decode()}
        output["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": given}}
    extra: dict[str, Any] = {}
    add_extra(call, extra, _NOT_EXTRA)
    params = {name: value for name, value in extra.items() if name in _FIELDS}
    own = {name: value for name, value in extra.items() if name not in _FIELDS}
    for name, ours in (("inferenceConfig", config), ("outputConfig", output), ("additionalModelRequestFields", own)):
        if ours:
            params[name] = {**ours, **_object_in_extra(call, params, name)}
    return params


def _object_in_extra(call: Call, params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = params.get(name, {})
    if not isinstance(value, Mapping):
        raise EncodeError(f"{call.model}: {name} in extra must be an object")
    return value


class _Joined(Struct):
    """What an answer says, from one body or from many events. `is_said`: there was something besides thoughts, if only
    an empty text."""

    texts: list[str] = []
    finish: str | None = None
    usage: Usage | None = None
    citations: dict[str, Citation] = {}
    is_said: bool = False

    def say(self, text: Any) -> None:
        self.is_said = True
        if isinstance(text, str):
            self.texts.append(text)

    def cite(self, given: Any) -> None:
        """Only what leads somewhere: a place in a document that was sent along has no address."""
        location, title = _object(given).get("location"), _object(given).get("title")
        url = _object(_object(location).get("web")).get("url")
        if isinstance(url, str) and url:
            named = mended(title) if isinstance(title, str) and title else None
            self.citations.setdefault(url, Citation(mended(url), named))


def decode(response: Response) -> Reply | Fault:
    """A reply, or the fault that the bytes amount to."""
    if response.status != 200:
        return bedrock_refusal_or_fault(response)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _decode_stream(response)
    answer, is_sound = _read(response.body)
    if answer is None:
        what = "is empty" if not response.body else "ends in the middle or is none"
        return bad_json(f"200 with JSON that {what}")
    if "stopReason" not in answer:
        if answer.get("error") or name_within(answer) is not None:
            return bedrock_refusal_or_fault(response)
        return bad_json(_NO_ANSWER)
    message = _object(_object(answer.get("output")).get("message"))
    if not isinstance(message.get("content"), list):
        return bad_json(_NO_ANSWER)
    joined = _Joined(finish=_finish_of(answer), usage=_usage_of(answer.get("usage")))
    for block in _dicts(message["content"]):
        _take_block(joined, block)
    return _reply(joined, response, None if is_sound else response.body)


def _read(data: bytes) -> tuple[dict[str, Any] | None, bool]:
    """The object that the JSON is, and whether the standards allow every byte of it."""
    try:
        return object_of(orjson.loads(data)), True
    except orjson.JSONDecodeError:
        return object_of(parse_leniently(data)), False


def _take_block(joined: _Joined, block: dict[str, Any]) -> None:
    if "text" in block:
        joined.say(block["text"])
    elif "citationsContent" in block:
        cited = _object(block["citationsContent"])
        for part in _dicts(cited.get("content")):
            joined.say(part.get("text"))
        for citation in _dicts(cited.get("citations")):
            joined.cite(citation)
    elif "toolUse" in block:
        joined.is_said = True


def _decode_stream(response: Response) -> Reply | Fault:
    """Whole only if a stop reason came; the usage comes behind it."""
    joined = _Joined()
    raw: bytes | None = None
    try:
        for message in messages_of(response.body):
            kind = message.headers.get(":message-type", "event")
            if kind == "error":
                named = message.headers.get(":error-code", "UnknownError")
                return told(response, named, {"message": message.headers.get(":error-message", "")})
            value, is_sound = _read(message.payload)
            if kind == "exception":
                named = message.headers.get(":exception-type") or "UnknownError"
                return told(response, named[:1].upper() + named[1:], value or {})
            if value is None:
                return bad_json("a stream with an event that is no JSON")
            if not is_sound:
                raw = response.body
            _take_event(joined, message.headers.get(":event-type", ""), value)
    except BrokenStream as error:
        return bad_json(f"a stream with {error}")
    if joined.finish is None:
        return cut_stream("its stop reason")
    return _reply(joined, response, raw)


def _take_event(joined: _Joined, kind: str, value: dict[str, Any]) -> None:
    """There are kinds that mean nothing here."""
    if kind == "contentBlockDelta":
        delta = _object(value.get("delta"))
        if "text" in delta:
            joined.say(delta["text"])
        joined.cite(delta.get("citation"))
    elif kind == "contentBlockStart":
        start = value.get("start")
        joined.is_said = joined.is_said or (start is not None and "reasoningContent" not in _object(start))
    elif kind == "messageStop":
        joined.finish = _finish_of(value)
    elif kind == "metadata":
        joined.usage = _usage_of(value.get("usage"))


def _reply(joined: _Joined, response: Response, raw: bytes | None) -> Reply | Fault:
    finish = joined.finish
    if finish is None:
        return broken_answer("stop reason is missing")
    if finish in _BROKEN:
        return broken_answer(f"stop reason is `{finish}`")
    finish = _FINISHES.get(finish, mended(finish))
    if finish == "stop" and not joined.is_said:
        return empty_answer("a message that says nothing", joined.usage)
    return Reply(
        mended("".join(joined.texts)),
        joined.usage,
        finish,
        finish == "content_filter",
        sha256(response.body).hexdigest(),
        raw,
        citations=tuple(joined.citations.values()),
    )


def _finish_of(value: dict[str, Any]) -> str | None:
    reason = value.get("stopReason")
    return reason if isinstance(reason, str) and reason else None


def _usage_of(given: Any) -> Usage | None:
    """Bedrock counts as input only what was neither read from a cache nor written into one."""
    if not isinstance(given, dict):
        return None
    counts = [given.get(name) for name in ("inputTokens", "outputTokens")]
    counts += [given.get(f"cache{way}InputTokens") or 0 for way in ("Read", "Write")]
    fresh, written, cached, stored = (_count(count) for count in counts)
    if fresh is None or written is None or cached is None or stored is None:
        return None
    return counted(fresh + cached + stored, written, 0, cached)


def _count(given: Any) -> int | None:
    is_count = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < TOKENS_MAX
    return given if is_count else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


PROTOCOL = WireProtocol("bedrock", encode, decode)
