"""The wire protocol of Anthropic Messages: pure encode and decode.

An answer is complete only with a stop reason. Thoughts are no part of its text. There are neither seeds nor
log-probabilities, and the newer version of the API has no sampling. Vertex AI takes the same bodies (vertex).
Turns: turns. The contents of answers: shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ....engine.call import Call, Reply
from ....engine.endpoint import EncodeError, Fault, Request, Response
from ..answer_listeners import listener_of, message_text
from ..blocks import fields_of_tools
from ..families import marked
from ..faults import bad_json, cut_stream, error_within, refusal_or_fault, unreadable
from ..protocol import Target, WireProtocol, add_extra, add_object, check_absent, request_of, sampling_of, schema_of
from ..repair import read_object
from ..sse import events_of
from .shapes import MessageReader
from .turns import FAMILY, add_tools, prompt_of

VERSION = "2026-10-21"
# The version before it, with sampling parameters, and with the API key in a header of its own.
OLDER_VERSION = "2023-06-01"

# Messages requires max_tokens. If none is set: as many as Anthropic's clients allow for an answer that is not streamed;
# fewer for models that refuse that number.
OUTPUT_DEFAULT = 16_384
_OUTPUT_OF_OLD = (
    (re.compile(r"claude-(?:2|instant|3-(?:opus|sonnet|haiku))"), 4_096),
    (re.compile(r"claude-3-5-"), 8_192),
)

_NOT_EXTRA = ("messages", "model", "stream", "system")
_STREAM = {"stream": True}
_HAS_VERSION = re.compile(r"/v\d+$")
_DATED = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"\d{1,9}")

ErrorReader = Callable[[Response, Any], Reply | Fault]


def encode(call: Call, target: Target) -> Request:
    return marked(call, FAMILY, lambda variant: _written(variant, target))


def _written(call: Call, target: Target) -> Request:
    version = version_of(target)
    params = params_of(call, target, version)
    params["model"] = target.model
    # People give the address with and without the beginning of the path.
    path = "/messages" if _HAS_VERSION.search(target.base_url) else "/v1/messages"
    identity = f"{path} ({version})"
    return request_of(call, target, path, params, prompt_of(call), streamed=_STREAM, identity=identity)


def headers(target: Target) -> Mapping[str, str]:
    return {"anthropic-version": version_of(target)}


def version_of(target: Target) -> str:
    return target.version or VERSION


def is_newer(version: str) -> bool:
    """Returns whether a version of the API is VERSION, the first without sampling parameters, or a later one."""
    return _DATED.fullmatch(version) is not None and version >= VERSION


def params_of(call: Call, target: Target, version: str, older: str = OLDER_VERSION) -> dict[str, Any]:
    """Returns the request's body without messages and model. The caller's own output_config is added to ours. `older`
    is the name of the version with sampling parameters at this address, for error messages."""
    check_absent(call, ("seed", "logprobs"), "Anthropic Messages has no NAME: leave it out")
    if is_newer(version):
        lacks = (
            f"version {version} of Anthropic's API takes no NAME, not even the default: send none, or for a model that "
            f'still has it set version = "{older}" under [providers.{target.provider}] in a --config file'
        )
        check_absent(call, ("temperature", "top_p"), lacks)
    params = sampling_of(call, target, stop="stop_sequences")
    config: dict[str, Any] = {}
    most = call.max_tokens if call.max_tokens is not None else default_output(target.model)
    params["max_tokens"] = most
    effort = call.reasoning_effort
    if effort is not None and _NUMBER.fullmatch(effort):
        params["thinking"] = {"type": "enabled", "budget_tokens": _thoughts(call, int(effort), most)}
    elif effort == "none":
        params["thinking"] = {"type": "disabled"}
    elif effort is not None:
        config["effort"] = effort
    if call.json_schema is not None:
        config["format"] = {"type": "json_schema", "schema": schema_of(call)}
    add_tools(call, params)
    add_extra(call, params, (*_NOT_EXTRA, *fields_of_tools(call)))
    add_object(call, params, "output_config", config)
    return params


def default_output(model: str) -> int:
    """Returns the max_tokens that is sent if a call sets none."""
    return next((most for name, most in _OUTPUT_OF_OLD if name.search(model)), OUTPUT_DEFAULT)


def _thoughts(call: Call, budget: int, most: int) -> int:
    """Returns the budget for thoughts, in tokens. Raises EncodeError if it leaves nothing of the default max_tokens,
    which is not raised silently, since `--max-cost` has reserved no more."""
    if call.max_tokens is None and budget >= most:
        raise EncodeError(
            f"{call.model}: {budget:,} tokens to think leave nothing for the answer of the {most:,} that are sent as "
            "max_tokens where it is not set: set it higher"
        )
    return budget


def decode(response: Response) -> Reply | Fault:
    if response.status != 200:
        return refusal_or_fault(response)
    return read(response, error_within)


def read(response: Response, read_error: ErrorReader) -> Reply | Fault:
    """Returns the reply or the fault of a response with status 200; `read_error` does so for an error object in it."""
    if response.stream and not response.body.lstrip().startswith((b"{", b"[")):
        return _read_stream(response, read_error)
    answer, is_strict = read_object(response.body)
    if answer is None:
        return unreadable(response.body)
    if answer.get("error"):
        return read_error(response, answer["error"])
    if not isinstance(answer.get("content"), list):
        return bad_json("200 with JSON that is no message")
    gathered = MessageReader()
    gathered.add_message(answer)
    return gathered.result(response, None if is_strict else response.body)


def _read_stream(response: Response, read_error: ErrorReader) -> Reply | Fault:
    """Returns the reply or the fault of a stream, whose events are joined into one message."""
    gathered = MessageReader()
    is_repaired = is_ended = False
    for data in events_of(response.body):
        event, is_strict = read_object(data)
        if event is None:
            return bad_json("a stream with an event that is no JSON")
        is_repaired = is_repaired or not is_strict
        if event.get("type") == "error" or event.get("error"):
            return read_error(response, event.get("error") or event)
        if event.get("type") == "message_stop":
            is_ended = True
            break
        gathered.add_event(event)
    if gathered.stop is None and not is_ended:
        return cut_stream("its stop reason")
    return gathered.result(response, response.body if is_repaired else None)


EFFORTS = ("none", "low", "medium", "high", "xhigh", "max", "N")
PROTOCOL = WireProtocol(
    "anthropic",
    encode,
    decode,
    headers,
    listener_of(message_text),
    default_output,
    EFFORTS,
    caches_marked=True,
    is_verbatim=True,
    family=FAMILY,
)
