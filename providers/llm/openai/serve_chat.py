"""The served side of OpenAI's chat completions: requests in, answers out.

Pure but for the clock that dates answers, which is passed in. Streams: serve_chat_stream. Fields that are left out are
listed in DROPPED with the reason; a field that no parameter of a call covers goes into its `extra` unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....engine.call import Call, Outcome
from ..serve_dialect import Dialect, RequestRefusal, ServedRequest, refusing
from ..serve_replies import dumps
from .serve_answers import completion
from .serve_chat_stream import ChatStream
from .serve_fields import OpenAIFields
from .serve_problems import listed, listing, problem
from .serve_tools import choice, schema, tools
from .serve_turns import FAMILY, turns

COUNT_MAX = 128
TOP_LOGPROBS_MAX = 20
# Fields that would change the cache key but not the answer.
DROPPED = {
    "user": "who asks",
    "safety_identifier": "who asks",
    "metadata": "the caller's own notes on what is stored; nothing is stored at the provider",
    "store": "whether the provider keeps the answer for its dashboard",
    "prompt_cache_key": "where the provider keeps a prompt that was read: the price alone",
    "prompt_cache_retention": "how long it keeps it",
    "prompt_cache_options": "how it keeps it",
}
# Sent to a provider of the same family; left out for any other.
SPARE = frozenset({"service_tier"})
_LIMITS = ("max_tokens", "max_completion_tokens")
# Values that change nothing, since they are the defaults.
_DEFAULTS: Mapping[str, Any] = {"frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}, "modalities": ["text"]}
_READ = frozenset(
    {
        "model", "messages", "temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "seed", "logprobs",
        "top_logprobs", "reasoning_effort", "n", "stream", "stream_options", "tools", "tool_choice",
        "parallel_tool_calls", "response_format", "modalities", "audio",
    }
)  # fmt: skip
_NOT_EXTRA = _READ | DROPPED.keys()


@refusing
def read(request: Mapping[str, Any], named: Callable[[str], str]) -> ServedRequest:
    body = OpenAIFields(request)
    if not body.has("model"):
        raise RequestRefusal("you must provide a model parameter", "model")
    model = body.text("model")
    body.required("messages")
    extra = {name: body.kept(name) for name in body.others(_NOT_EXTRA)}
    spare = {name for name in extra if name in SPARE or (name in _DEFAULTS and extra[name] == _DEFAULTS[name])}
    settings = _settings(body, extra, spare)
    is_streamed = body.boolean("stream") or False
    call = Call(named(model), turns(body), stream=is_streamed, extra=extra or None, **settings)
    count = body.integer("n", 1, COUNT_MAX) or 1
    return ServedRequest(call, model, is_streamed, count, _answer_form(body), frozenset(spare))


def _answer_form(body: OpenAIFields) -> dict[str, Any]:
    """Returns how the answer is to be written: `usage` is True if a stream ends with the usage, `functions` is True if
    tool calls have their older form, `function_call`; missing keys count as False."""
    form: dict[str, Any] = {}
    if (options := body.optional_object("stream_options")) is not None:
        form["usage"] = options.boolean("include_usage") or False
    if body.has("functions"):
        form["functions"] = True
    return form


def _settings(body: OpenAIFields, extra: dict[str, Any], spare: set[str]) -> dict[str, Any]:
    """Returns the call's own parameters. What they can't express goes into `extra`, and its name into `spare` if
    providers of other families can do without it."""
    limits = {body.integer(name, 1) for name in _LIMITS if body.has(name)}
    if len(limits) > 1:
        raise RequestRefusal("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    _check_modalities(body)
    return {
        "temperature": body.number("temperature", 0),
        "top_p": body.number("top_p", 0),
        "max_tokens": next(iter(limits), None),
        "stop": body.texts("stop", "one of a string or array of strings", may_be_one=True),
        "seed": body.integer("seed"),
        "reasoning_effort": body.optional_text("reasoning_effort"),
        "logprobs": _logprobs(body),
        "json_schema": _form(body, extra, spare),
        "tools": (offered := tools(body, FAMILY)),
        "tool_choice": choice(body, offered, extra, is_flat=False),
        "parallel_tools": body.boolean("parallel_tool_calls"),
    }


def _logprobs(body: OpenAIFields) -> int | None:
    is_wanted = body.boolean("logprobs")
    count = body.integer("top_logprobs", 0, TOP_LOGPROBS_MAX)
    if not is_wanted and count is not None:
        raise RequestRefusal("'top_logprobs' is only allowed when 'logprobs' is true.", "top_logprobs")
    return count or 0 if is_wanted else None


def _check_modalities(body: OpenAIFields) -> None:
    """Raises RequestRefusal if anything but text is asked for: an answer here has no place for sound."""
    for index, kind in enumerate(body.list("modalities")):
        if kind != "text":
            raise body.wrong_choice(f"modalities[{index}]", ("text",), kind)
    if body.has("audio"):
        raise RequestRefusal("Unsupported parameter: 'audio': answers here are text.", "audio")


def _form(body: OpenAIFields, extra: dict[str, Any], spare: set[str]) -> Mapping[str, Any] | None:
    form = body.optional_object("response_format")
    if form is None or (kind := form.text("type")) == "text":
        return None
    json_schema, is_all = schema(form.object("json_schema")) if kind == "json_schema" else (None, False)
    if not is_all:
        extra["response_format"] = body.kept("response_format")
        if json_schema is not None:
            spare.add("response_format")
    return json_schema


def dialect(now: Callable[[], float] = time.time) -> Dialect:
    """Returns the dialect; `now` returns the seconds since 1970 that date its answers."""

    def answered(request: ServedRequest, outcomes: Sequence[Outcome]) -> bytes:
        return dumps(completion(request, outcomes, int(now())))

    def streamed(request: ServedRequest) -> ChatStream:
        return ChatStream(request, int(now()))

    return Dialect(FAMILY, read, answered, streamed, problem, listing, listed)


DIALECT = dialect()
