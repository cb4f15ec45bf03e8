"""The wire protocol of Gemini, generateContent: pure encode and decode.

An answer is complete only with a finish reason. Thoughts are no part of its text. Vertex AI takes the same bodies
(vertex). Turns: turns. The contents of answers: shapes. Errors: errors.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from ....engine.call import Call, Reply
from ....engine.endpoint import Fault, Request, Response
from ..answer_listeners import candidate_text, listener_of
from ..blocks import fields_of_tools
from ..families import written_for
from ..faults import bad_json, unreadable
from ..protocol import Target, WireProtocol, add_extra, add_object, request_of, sampling_of, schema_of
from ..repair import read_json
from ..sse import events_of
from .errors import google_error_within, google_refusal_or_fault
from .shapes import NO_ANSWER, CandidateReader
from .turns import FAMILY, add_tools, prompt_of

# The API version of Google's own client since its third version.
VERSION = "v1"
_NOT_EXTRA = ("contents", "model", "systemInstruction", "system_instruction")
_HAS_VERSION = re.compile(r"/v\d+[a-z0-9]*$")
# Gemini 2 takes a number of tokens; Google's own layer for OpenAI's clients translates the words into these.
_BUDGETS = {"none": 0, "minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576}
_GEMINI_2 = re.compile(r"gemini-2\.")
_NUMBER = re.compile(r"-?\d{1,9}")


def encode(call: Call, target: Target) -> Request:
    model = target.model if target.model.startswith(("models/", "tunedModels/")) else f"models/{target.model}"
    path = f"{version_of(target, VERSION)}/{quote(model, safe='/@')}"
    return encode_to(call, target, path, path)


def version_of(target: Target, default: str) -> str:
    """Returns the version as the start of the path, such as `/v1`; empty if the address already ends in a version."""
    return "" if _HAS_VERSION.search(target.base_url) else f"/{target.version or default}"


def encode_to(call: Call, target: Target, path: str, identity: str) -> Request:
    """Returns the request for a model at a path; `identity` replaces the path in the cache key."""
    call = written_for(call, FAMILY)
    return request_of(
        call,
        target,
        f"{path}:generateContent",
        _params_of(call, target),
        prompt_of(call, target.model),
        stream_path=f"{path}:streamGenerateContent?alt=sse",
        identity=f"{identity}:generateContent",
    )


def _params_of(call: Call, target: Target) -> dict[str, Any]:
    """Returns the body without the contents. The caller's own generationConfig and toolConfig are added to ours."""
    config = sampling_of(call, target, max_tokens="maxOutputTokens", top_p="topP", stop="stopSequences")
    if call.reasoning_effort is not None:
        config["thinkingConfig"] = _thinking(call.reasoning_effort, target.model)
    if call.json_schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = schema_of(call)
    if call.logprobs is not None:
        config["responseLogprobs"] = True
        if call.logprobs:
            config["logprobs"] = call.logprobs
    ours: dict[str, Any] = {}
    add_tools(call, ours)
    params: dict[str, Any] = {}
    add_extra(call, params, (*_NOT_EXTRA, *fields_of_tools(call)))
    if "tools" in ours:
        params["tools"] = ours["tools"]
    add_object(call, params, "generationConfig", config)
    if "toolConfig" in ours:
        add_object(call, params, "toolConfig", ours["toolConfig"])
    return params


def _thinking(effort: str, model: str) -> dict[str, Any]:
    """Returns thinkingConfig for an effort: a named level, or a budget in tokens, where -1 leaves it to the model."""
    if _NUMBER.fullmatch(effort):
        return {"thinkingBudget": int(effort)}
    if effort == "none" or (_GEMINI_2.search(model) and effort in _BUDGETS):
        return {"thinkingBudget": _BUDGETS[effort]}
    return {"thinkingLevel": effort.upper()}


def decode(response: Response) -> Reply | Fault:
    if response.status != 200:
        return google_refusal_or_fault(response)
    body = response.body
    is_stream = response.stream and not body.lstrip().startswith((b"{", b"["))
    if is_stream:
        # Google ends a stream without a mark; gateways add OpenAI's.
        read = [read_json(data) for data in events_of(body) if data != b"[DONE]"]
        chunks, is_sound = [chunk for chunk, _ in read], all(sound for _, sound in read)
    else:
        parsed, is_sound = read_json(body)
        if parsed is None:
            return unreadable(body)
        # A stream without alt=sse is one list of chunks.
        chunks = parsed if isinstance(parsed, list) else [parsed]
    for chunk in chunks:
        if not isinstance(chunk, dict):
            return bad_json("a stream with an event that is no JSON" if is_stream else NO_ANSWER)
        if chunk.get("error"):
            return google_error_within(response, chunk["error"])
    candidate = CandidateReader(is_stream=is_stream)
    for chunk in chunks:
        candidate.take(chunk)
    return candidate.result(response, None if is_sound else body)


EFFORTS = ("none", "minimal", "low", "medium", "high", "N")
PROTOCOL = WireProtocol(
    "gemini",
    encode,
    decode,
    listen=listener_of(candidate_text),
    efforts=EFFORTS,
    opens_any_file=True,
    is_verbatim=True,
    family=FAMILY,
)
