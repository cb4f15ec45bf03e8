"""The wire protocol of Amazon Bedrock, Converse and ConverseStream: pure encode and decode.

An answer is complete only with a stop reason; a stream is binary, and every message of it is checked (event_stream).
Thoughts are no part of the text. There are neither seeds nor log-probabilities. Turns: turns. The contents of answers:
shapes. Errors: errors.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson

from ....engine.call import Call, Reply
from ....engine.endpoint import Fault, Request, Response
from ..answer_listeners import FrameListener
from ..answer_values import as_object, objects_in
from ..event_stream import BrokenStream, messages_of
from ..families import written_for
from ..faults import bad_json, cut_stream, unreadable
from ..protocol import (
    Target,
    WireProtocol,
    add_extra,
    add_object,
    check_absent,
    named_schema,
    request_of,
    sampling_of,
    schema_of,
)
from ..repair import read_object
from .errors import bedrock_refusal_or_fault, name_within, result_of
from .shapes import ConverseReader
from .turns import FAMILY, prompt_of, tools_of

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
_NO_ANSWER = "200 with JSON that is no answer of Converse's"


def encode(call: Call, target: Target) -> Request:
    call = written_for(call, FAMILY)
    # A name may be an ARN with slashes and colons: it is one part of the path.
    path = f"/model/{quote(target.model, safe='')}/converse"
    return request_of(
        call, target, path, _params_of(call, target), prompt_of(call), stream_path=f"{path}-stream", identity=path
    )


def _params_of(call: Call, target: Target) -> dict[str, Any]:
    """Returns the body without the messages. The caller's own fields are added to ours, each in its place."""
    lacks = "Bedrock has no NAME: leave it out, or put the model's own field for it into extra"
    check_absent(call, ("seed", "logprobs"), lacks)
    config = sampling_of(call, target, max_tokens="maxTokens", top_p="topP", stop="stopSequences")
    output: dict[str, Any] = {}
    if call.reasoning_effort is not None:
        output["effort"] = call.reasoning_effort
    if call.json_schema is not None:
        # The schema goes as a text within the JSON.
        form = {"name": named_schema(call)["name"], "schema": orjson.dumps(schema_of(call)).decode()}
        output["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": form}}
    extra: dict[str, Any] = {}
    add_extra(call, extra, _NOT_EXTRA)
    params = {name: value for name, value in extra.items() if name in _FIELDS}
    tools, tool_fields = tools_of(call, target.model)
    model_fields = {**tool_fields, **{name: value for name, value in extra.items() if name not in _FIELDS}}
    objects = {
        "inferenceConfig": config,
        "outputConfig": output,
        "additionalModelRequestFields": model_fields,
        "toolConfig": tools,
    }
    for name, ours in objects.items():
        if ours:
            add_object(call, params, name, ours)
    return params


def decode(response: Response) -> Reply | Fault:
    if response.status != 200:
        return bedrock_refusal_or_fault(response)
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _decode_stream(response)
    answer, is_strict = read_object(response.body)
    if answer is None:
        return unreadable(response.body)
    if "stopReason" not in answer:
        if answer.get("error") or name_within(answer) is not None:
            return bedrock_refusal_or_fault(response)
        return bad_json(_NO_ANSWER)
    message = as_object(as_object(answer.get("output")).get("message"))
    if not isinstance(message.get("content"), list):
        return bad_json(_NO_ANSWER)
    gathered = ConverseReader()
    gathered.add_answer(answer, objects_in(message["content"]))
    return gathered.result(response, None if is_strict else response.body)


def _decode_stream(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of a stream: complete only with a stop reason, which the usage follows."""
    gathered = ConverseReader()
    raw: bytes | None = None
    try:
        for message in messages_of(response.body):
            kind = message.headers.get(":message-type", "event")
            if kind == "error":
                named = message.headers.get(":error-code", "UnknownError")
                return result_of(response, named, {"message": message.headers.get(":error-message", "")})
            value, is_strict = read_object(message.payload)
            if kind == "exception":
                named = message.headers.get(":exception-type") or "UnknownError"
                return result_of(response, named[:1].upper() + named[1:], value or {})
            if value is None:
                return bad_json("a stream with an event that is no JSON")
            if not is_strict:
                raw = response.body
            gathered.add_event(message.headers.get(":event-type", ""), value)
    except BrokenStream as error:
        return bad_json(f"a stream with {error}")
    if gathered.stop is None:
        return cut_stream("its stop reason")
    return gathered.result(response, raw)


EFFORTS = ("low", "medium", "high", "xhigh", "max")
PROTOCOL = WireProtocol(
    "bedrock", encode, decode, listen=FrameListener, efforts=EFFORTS, caches_marked=True, is_verbatim=True
)
