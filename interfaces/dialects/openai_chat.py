"""OpenAI's chat completions as a server sees them: requests in, answers out.

Pure but for the clock, which stands in every answer and is handed in. Streams: openai_chat_stream. What of a request
is left out, and why, stands in DROPPED; what no field of a call is for goes into its `extra` as it came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...engine.call import Call, Outcome
from .dialect import Asked, Dialect, Refused
from .openai_answers import completion
from .openai_chat_stream import ChatStream
from .openai_problems import dumps, listed, listing, problem
from .openai_tools import choice, schema, tools
from .openai_turns import FAMILY, turns
from .openai_values import (
    field,
    flag,
    missing,
    number,
    rows,
    table,
    text,
    text_in,
    whole,
    writable,
    wrong_type,
    wrong_value,
)

COUNT_MAX = 128
TOP_LOGPROBS_MAX = 20
# What a call would be another one by, though its answer would not.
DROPPED = {
    "user": "who asks",
    "safety_identifier": "who asks",
    "metadata": "the caller's own notes on what is stored; nothing is stored at the provider",
    "store": "whether the provider keeps the answer for its dashboard",
    "prompt_cache_key": "where the provider keeps a prompt that was read: the price alone",
    "prompt_cache_retention": "how long it keeps it",
    "prompt_cache_options": "how it keeps it",
}
# Goes to a provider of the same family; any other can do without.
SPARE = frozenset({"service_tier"})
_LIMITS = ("max_tokens", "max_completion_tokens")
# These say what is so without them too.
_DEFAULTS: Mapping[str, Any] = {"frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}, "modalities": ["text"]}
_READ = frozenset(
    {
        "model", "messages", "temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "seed", "logprobs",
        "top_logprobs", "reasoning_effort", "n", "stream", "stream_options", "tools", "tool_choice",
        "parallel_tool_calls", "response_format", "modalities", "audio",
    }
)  # fmt: skip


def read(body: Mapping[str, Any], named: Callable[[str], str]) -> Asked:
    """`named`: which of our models a client's word means."""
    given = {name: value for name, value in body.items() if value is not None} if None in body.values() else body
    if "model" not in given:
        raise Refused("you must provide a model parameter", "model")
    model = text(given["model"], "model")
    if "messages" not in given:
        missing("messages")
    extra: dict[str, Any] = {}
    spare: set[str] = set()
    if not given.keys() <= _READ:
        extra = {name: writable(given[name], name) for name in given if name not in _READ and name not in DROPPED}
        spare = {name for name in extra if name in SPARE or (name in _DEFAULTS and extra[name] == _DEFAULTS[name])}
    settings = _settings(given, extra, spare)
    is_streamed = "stream" in given and flag(given["stream"], "stream")
    try:
        call = Call(named(model), turns(given["messages"]), stream=is_streamed, extra=extra or None, **settings)
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error
    count = whole(given["n"], "n", 1, COUNT_MAX) if "n" in given else 1
    return Asked(call, model, is_streamed, count, _told(given), frozenset(spare))


def _told(given: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer is written by: whether a stream ends with the usage, and whether tools go by their older name."""
    told: dict[str, Any] = {}
    if "stream_options" in given:
        options = table(given["stream_options"], "stream_options")
        usage = options.get("include_usage")
        told["usage"] = usage is not None and flag(usage, "stream_options.include_usage")
    if "functions" in given:
        told["functions"] = True
    return told


def _settings(given: Mapping[str, Any], extra: dict[str, Any], spare: set[str]) -> dict[str, Any]:
    """The call's own parameters. What it can't say in full goes into `extra`; where a provider of another family can do
    without that, its name goes into `spare`."""
    settings: dict[str, Any] = {}
    if "temperature" in given:
        settings["temperature"] = number(given["temperature"], "temperature", 0)
    if "top_p" in given:
        settings["top_p"] = number(given["top_p"], "top_p", 0)
    limits = {whole(given[name], name, 1) for name in _LIMITS if name in given}
    if len(limits) > 1:
        raise Refused("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    settings["max_tokens"] = next(iter(limits), None)
    if "stop" in given:
        settings["stop"] = _stop(given["stop"])
    if "seed" in given:
        settings["seed"] = whole(given["seed"], "seed")
    if "reasoning_effort" in given:
        settings["reasoning_effort"] = text(given["reasoning_effort"], "reasoning_effort")
    if "logprobs" in given or "top_logprobs" in given:
        settings["logprobs"] = _logprobs(given)
    if "modalities" in given or "audio" in given:
        _refuse_sound(given)
    if "response_format" in given:
        _form(table(given["response_format"], "response_format"), settings, extra, spare)
    if "tools" in given:
        settings["tools"] = tools(given["tools"], FAMILY)
    if "tool_choice" in given:
        settings["tool_choice"] = choice(given["tool_choice"], settings.get("tools"), is_flat=False)
        if settings["tool_choice"] is None:
            extra["tool_choice"] = writable(given["tool_choice"], "tool_choice")
    if "parallel_tool_calls" in given:
        settings["parallel_tools"] = flag(given["parallel_tool_calls"], "parallel_tool_calls")
    return settings


def _stop(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        wrong_type("stop", "one of a string or array of strings", value)
    return tuple(text(one, f"stop[{index}]") for index, one in enumerate(rows(value, "stop"))) or None


def _logprobs(given: Mapping[str, Any]) -> int | None:
    is_wanted = flag(given.get("logprobs", False), "logprobs")
    if "top_logprobs" not in given:
        return 0 if is_wanted else None
    count = whole(given["top_logprobs"], "top_logprobs", 0, TOP_LOGPROBS_MAX)
    if not is_wanted:
        raise Refused("'top_logprobs' is only allowed when 'logprobs' is true.", "top_logprobs")
    return count


def _refuse_sound(given: Mapping[str, Any]) -> None:
    """What is spoken has no place in an answer here."""
    if "modalities" in given:
        for index, kind in enumerate(rows(given["modalities"], "modalities")):
            if kind != "text":
                wrong_value(f"modalities[{index}]", kind, ("text",))
    if "audio" in given:
        raise Refused("Unsupported parameter: 'audio': answers here are text.", "audio")


def _form(form: Mapping[str, Any], settings: dict[str, Any], extra: dict[str, Any], spare: set[str]) -> None:
    kind = text_in(form, "type", "response_format")
    if kind == "json_schema":
        at = "response_format.json_schema"
        described = table(field(form, "json_schema", "response_format"), at)
        settings["json_schema"], is_all = schema(described, at)
        if not is_all:
            extra["response_format"] = writable(form, "response_format")
            if settings["json_schema"] is not None:
                spare.add("response_format")
    elif kind != "text":
        extra["response_format"] = writable(form, "response_format")


def dialect(now: Callable[[], float] = time.time) -> Dialect:
    """`now`: the clock that answers are dated by."""

    def answered(asked: Asked, outcomes: Sequence[Outcome]) -> bytes:
        return dumps(completion(asked, outcomes, int(now())))

    def streamed(asked: Asked) -> ChatStream:
        return ChatStream(asked, int(now()))

    return Dialect("openai-chat", read, answered, streamed, problem, listing, listed)


DIALECT = dialect()
