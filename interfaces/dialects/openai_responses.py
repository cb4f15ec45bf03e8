"""OpenAI's Responses as a server sees them: requests in, answers out.

Pure but for the clock, which stands in every answer and is handed in. Nothing is stored here, so whatever refers to
what was stored is refused. What else of a request is left out, and why, stands in openai_chat.DROPPED.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...engine.call import Call, Outcome
from .dialect import Asked, Dialect, Refused
from .openai_chat import DROPPED, TOP_LOGPROBS_MAX
from .openai_items import FAMILY, turns
from .openai_problems import dumps, listed, listing, problem
from .openai_response_objects import ECHOED, response
from .openai_response_stream import ResponseStream
from .openai_tools import choice, schema, tools
from .openai_values import flag, missing, number, rows, table, text, text_in, whole, writable

_STORED = {
    "previous_response_id": "nothing is stored here: send the whole conversation as 'input'",
    "conversation": "nothing is stored here: send the whole conversation as 'input'",
    "prompt": "no prompts are stored here: send the prompt itself as 'input'",
}
# Goes to a provider of the same family; any other can do without.
SPARE = frozenset({"service_tier", "store"})
_LOGPROBS = "message.output_text.logprobs"
# These say what is so without them too.
_DEFAULTS: Mapping[str, Any] = {"truncation": "disabled"}
_READ = frozenset(
    {
        "model", "input", "instructions", "temperature", "top_p", "max_output_tokens", "reasoning", "text", "tools",
        "tool_choice", "parallel_tool_calls", "stream", "stream_options", "include", "top_logprobs", "background",
    }
)  # fmt: skip


def read(body: Mapping[str, Any], named: Callable[[str], str]) -> Asked:
    """`named`: which of our models a client's word means."""
    given = {name: value for name, value in body.items() if value is not None}
    for name, why in _STORED.items():
        if name in given:
            raise Refused(f"Unsupported parameter: '{name}': {why}.", name)
    if flag(given.get("background", False), "background"):
        raise Refused("Unsupported parameter: 'background': answers are given at once.", "background")
    if "model" not in given:
        raise Refused("you must provide a model parameter", "model")
    model = text(given["model"], "model")
    if "input" not in given:
        missing("input")
    extra = {name: writable(value, name) for name, value in given.items() if name not in _READ | DROPPED.keys()}
    if "store" in given and not flag(given["store"], "store"):
        # The protocol's own servers keep every answer unless they are told not to.
        extra["store"] = False
    spare = {name for name in extra if name in SPARE or (name in _DEFAULTS and extra[name] == _DEFAULTS[name])}
    settings = _settings(given, extra, spare)
    if "stream_options" in given:
        table(given["stream_options"], "stream_options")
    is_streamed = flag(given.get("stream", False), "stream")
    messages = turns(given["input"], given.get("instructions"))
    try:
        call = Call(named(model), messages, stream=is_streamed, extra=extra or None, **settings)
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error
    told = {name: writable(given[name], name) for name in ECHOED if name in given}
    return Asked(call, model, is_streamed, 1, told, frozenset(spare))


def _settings(given: Mapping[str, Any], extra: dict[str, Any], spare: set[str]) -> dict[str, Any]:
    """The call's own parameters. What it can't say in full goes into `extra`; where a provider of another family can do
    without that, its name goes into `spare`."""
    settings: dict[str, Any] = {}
    if "temperature" in given:
        settings["temperature"] = number(given["temperature"], "temperature", 0)
    if "top_p" in given:
        settings["top_p"] = number(given["top_p"], "top_p", 0)
    if "max_output_tokens" in given:
        settings["max_tokens"] = whole(given["max_output_tokens"], "max_output_tokens", 1)
    if "reasoning" in given:
        _reasoning(table(given["reasoning"], "reasoning"), settings, extra, spare)
    if "text" in given:
        _text(table(given["text"], "text"), settings, extra, spare)
    _logprobs(given, settings, extra, spare)
    if "tools" in given:
        settings["tools"] = tools(given["tools"], FAMILY)
    if "tool_choice" in given:
        settings["tool_choice"] = choice(given["tool_choice"], settings.get("tools"), is_flat=True)
        if settings["tool_choice"] is None:
            extra["tool_choice"] = writable(given["tool_choice"], "tool_choice")
    if "parallel_tool_calls" in given:
        settings["parallel_tools"] = flag(given["parallel_tool_calls"], "parallel_tool_calls")
    return settings


def _reasoning(wanted: Mapping[str, Any], settings: dict[str, Any], extra: dict[str, Any], spare: set[str]) -> None:
    said = {name: value for name, value in wanted.items() if value is not None}
    if "effort" in said:
        settings["reasoning_effort"] = text(said["effort"], "reasoning.effort")
    if others := said.keys() - {"effort"}:
        extra["reasoning"] = writable(said, "reasoning")
        # A summary is told beside the answer.
        if others <= {"summary", "generate_summary"}:
            spare.add("reasoning")


def _text(wanted: Mapping[str, Any], settings: dict[str, Any], extra: dict[str, Any], spare: set[str]) -> None:
    said = {name: value for name, value in wanted.items() if value is not None}
    is_all = True
    if "format" in said:
        form = table(said["format"], "text.format")
        kind = text_in(form, "type", "text.format")
        if kind == "json_schema":
            settings["json_schema"], is_all = schema(form, "text.format")
        elif kind != "text":
            is_all = False
    is_schema = settings.get("json_schema") is not None
    others = said.keys() - {"format"}
    is_plain = not others or (others == {"verbosity"} and said["verbosity"] == "medium")
    if others or not is_all:
        extra["text"] = writable(said, "text")
        if is_plain and (is_all or is_schema):
            spare.add("text")


def _logprobs(given: Mapping[str, Any], settings: dict[str, Any], extra: dict[str, Any], spare: set[str]) -> None:
    count = whole(given.get("top_logprobs", 0), "top_logprobs", 0, TOP_LOGPROBS_MAX)
    wanted = [text(one, f"include[{index}]") for index, one in enumerate(rows(given.get("include", []), "include"))]
    if _LOGPROBS in wanted:
        settings["logprobs"] = count
    elif count:
        extra["top_logprobs"] = count
    if wanted and wanted != [_LOGPROBS]:
        # More of what a provider knows, never another answer.
        extra["include"] = wanted
        spare.add("include")


def dialect(now: Callable[[], float] = time.time) -> Dialect:
    """`now`: the clock that answers are dated by."""

    def answered(asked: Asked, outcomes: Sequence[Outcome]) -> bytes:
        return dumps(response(asked, outcomes[0], int(now())))

    def streamed(asked: Asked) -> ResponseStream:
        return ResponseStream(asked, int(now()))

    return Dialect("openai-responses", read, answered, streamed, problem, listing, listed)


DIALECT = dialect()
