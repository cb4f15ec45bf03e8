"""The served side of OpenAI's Responses: requests in, answers out.

Pure but for the clock that dates answers, which is passed in. Nothing is stored here, so references to stored objects
are refused. The other fields that are left out are listed in serve_chat.DROPPED with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....engine.call import Call, Outcome
from ..serve_dialect import Dialect, RequestRefusal, ServedRequest, refusing
from ..serve_replies import dumps
from .serve_chat import DROPPED, TOP_LOGPROBS_MAX
from .serve_fields import OpenAIFields
from .serve_items import FAMILY, turns
from .serve_problems import listed, listing, problem
from .serve_response_objects import ECHOED, response
from .serve_response_stream import ResponseStream
from .serve_tools import choice, schema, tools

_STORED = {
    "previous_response_id": "nothing is stored here: send the whole conversation as 'input'",
    "conversation": "nothing is stored here: send the whole conversation as 'input'",
    "prompt": "no prompts are stored here: send the prompt itself as 'input'",
}
# Sent to a provider of the same family; left out for any other.
SPARE = frozenset({"service_tier", "store"})
_LOGPROBS = "message.output_text.logprobs"
# Values that change nothing, since they are the defaults.
_DEFAULTS: Mapping[str, Any] = {"truncation": "disabled"}
_READ = frozenset(
    {
        "model", "input", "instructions", "temperature", "top_p", "max_output_tokens", "reasoning", "text", "tools",
        "tool_choice", "parallel_tool_calls", "stream", "stream_options", "include", "top_logprobs", "background",
    }
)  # fmt: skip
_NOT_EXTRA = _READ | DROPPED.keys()


@refusing
def read(request: Mapping[str, Any], named: Callable[[str], str]) -> ServedRequest:
    body = OpenAIFields(request)
    for name, why in _STORED.items():
        if body.has(name):
            raise RequestRefusal(f"Unsupported parameter: '{name}': {why}.", name)
    if body.boolean("background"):
        raise RequestRefusal("Unsupported parameter: 'background': answers are given at once.", "background")
    if not body.has("model"):
        raise RequestRefusal("you must provide a model parameter", "model")
    model = body.text("model")
    body.required("input")
    extra = {name: body.kept(name) for name in body.others(_NOT_EXTRA)}
    if body.boolean("store") is False:
        # The protocol's own servers keep every answer unless a request forbids it.
        extra["store"] = False
    spare = {name for name in extra if name in SPARE or (name in _DEFAULTS and extra[name] == _DEFAULTS[name])}
    settings = _settings(body, extra, spare)
    body.optional_object("stream_options")
    is_streamed = body.boolean("stream") or False
    messages = turns(body)
    call = Call(named(model), messages, stream=is_streamed, extra=extra or None, **settings)
    echoed = {name: body.kept(name) for name in ECHOED if body.has(name)}
    return ServedRequest(call, model, is_streamed, 1, echoed, frozenset(spare))


def _settings(body: OpenAIFields, extra: dict[str, Any], spare: set[str]) -> dict[str, Any]:
    """Returns the call's own parameters. What they can't express goes into `extra`, and its name into `spare` if
    providers of other families can do without it."""
    return {
        "temperature": body.number("temperature", 0),
        "top_p": body.number("top_p", 0),
        "max_tokens": body.integer("max_output_tokens", 1),
        "reasoning_effort": _effort(body, extra, spare),
        "json_schema": _form(body, extra, spare),
        "logprobs": _logprobs(body, extra, spare),
        "tools": (offered := tools(body, FAMILY)),
        "tool_choice": choice(body, offered, extra, is_flat=True),
        "parallel_tools": body.boolean("parallel_tool_calls"),
    }


def _effort(body: OpenAIFields, extra: dict[str, Any], spare: set[str]) -> str | None:
    reasoning = body.object("reasoning", {})
    if others := reasoning.others({"effort"}):
        extra["reasoning"] = reasoning.others(())
        reasoning.written(extra["reasoning"])
        # A summary of thoughts stands beside the answer, and does not change it.
        if others.keys() <= {"summary", "generate_summary"}:
            spare.add("reasoning")
    return reasoning.optional_text("effort")


def _form(body: OpenAIFields, extra: dict[str, Any], spare: set[str]) -> Mapping[str, Any] | None:
    """Returns the JSON schema of the answer, None if there is none. Other fields of `text` go into `extra`."""
    text = body.object("text", {})
    form = text.object("format", {"type": "text"})
    kind = form.text("type")
    json_schema, is_all = schema(form) if kind == "json_schema" else (None, kind == "text")
    others = text.others({"format"})
    if others or not is_all:
        extra["text"] = text.others(())
        text.written(extra["text"])
        if others in ({}, {"verbosity": "medium"}) and (is_all or json_schema is not None):
            spare.add("text")
    return json_schema


def _logprobs(body: OpenAIFields, extra: dict[str, Any], spare: set[str]) -> int | None:
    count = body.integer("top_logprobs", 0, TOP_LOGPROBS_MAX) or 0
    included = body.texts("include") or ()
    is_wanted = _LOGPROBS in included
    if count and not is_wanted:
        extra["top_logprobs"] = count
    if included not in ((), (_LOGPROBS,)):
        # Asks for more fields, never for another answer.
        extra["include"] = list(included)
        spare.add("include")
    return count if is_wanted else None


def dialect(now: Callable[[], float] = time.time) -> Dialect:
    """Returns the dialect; `now` returns the seconds since 1970 that date its answers."""

    def answered(request: ServedRequest, outcomes: Sequence[Outcome]) -> bytes:
        return dumps(response(request, outcomes[0], int(now())))

    def streamed(request: ServedRequest) -> ResponseStream:
        return ResponseStream(request, int(now()))

    return Dialect(FAMILY, read, answered, streamed, problem, listing, listed)


DIALECT = dialect()
