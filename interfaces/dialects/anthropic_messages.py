"""Anthropic Messages as its servers speak it: a client's request becomes a call.

What is said in it: anthropic_turns. What clients get: anthropic_answers and anthropic_errors. What no field of a call
covers goes into `extra` in Anthropic's own words; what means nothing for the answer is left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...engine.call import Call
from .anthropic_answers import whole
from .anthropic_errors import THREAD, listed, listing, problem
from .anthropic_events import stream
from .anthropic_fields import (
    flag,
    holds_only,
    mapping,
    number,
    refuse,
    refuse_type,
    required,
    text,
    texts,
    whole_number,
    written,
)
from .anthropic_turns import tools_of, turns_of
from .dialect import Asked, Dialect, Refused

_READ = frozenset(
    {
        "model", "messages", "system", "max_tokens", "stop_sequences", "temperature", "top_p", "top_k", "stream",
        "tools", "tool_choice", "thinking", "output_config", "output_format",
    }
)  # fmt: skip
# Who asks, and why something was not cheaper.
_MEANINGLESS = frozenset({"metadata", "diagnostics"})
# What shall be cheaper and what faster: no answer is another for it.
_SPARE = frozenset({"service_tier", "cache_control", "speed"})
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_CHOICE = frozenset({"type", "name", "disable_parallel_tool_use"})
_ENABLED, _FORMAT = frozenset({"type", "budget_tokens"}), frozenset({"type", "schema"})
_BUDGET_LEAST, _BUDGET_MOST = 1_024, 999_999_999
_EFFORT = re.compile(r"(?!none$)[a-z]{1,20}")


def read(body: Mapping[str, Any], known: Callable[[str], str]) -> Asked:
    try:
        return _read(body, known)
    except (TypeError, ValueError) as error:
        # What a call itself refuses, such as text that no bytes can hold.
        raise Refused(str(error)) from error


def _read(body: Mapping[str, Any], known: Callable[[str], str]) -> Asked:
    model = text(body, "model")
    required(body, "max_tokens")
    if body.get("thread") is not None:
        refuse(THREAD, "no conversation is held here: send all of it as messages, without a thread")
    is_streamed = flag(body, "stream") or False
    extra = {name: value for name, value in body.items() if name not in _READ and name not in _MEANINGLESS}
    extra = {name: value for name, value in extra.items() if value is not None}
    if (top_k := whole_number(body, "top_k", 0)) is not None:
        extra["top_k"] = top_k
    spare = {name for name in extra if name in _SPARE}
    effort, schema = _output(body, extra)
    effort = _thoughts(body, effort, extra, spare)
    choice, is_parallel = _choice(body, extra)
    if extra:
        written(extra, "messages")
    call = Call(
        known(model),
        turns_of(body),
        temperature=number(body, "temperature"),
        max_tokens=whole_number(body, "max_tokens", 1),
        top_p=number(body, "top_p"),
        stop=texts(body, "stop_sequences"),
        extra=extra or None,
        stream=is_streamed,
        reasoning_effort=effort,
        json_schema=schema,
        tools=tools_of(body),
        tool_choice=choice,
        parallel_tools=is_parallel,
    )
    return Asked(call, model, is_streamed, spare=frozenset(spare))


def _output(body: Mapping[str, Any], extra: dict[str, Any]) -> tuple[str | None, Mapping[str, Any] | None]:
    """How hard to try and the shape of the answer; what else it may hold stays Anthropic's. The shape has had another
    name."""
    given = body.get("output_config")
    rest = {} if given is None else dict(mapping(given, "output_config"))
    if rest.get("format") is None and body.get("output_format") is not None:
        rest["format"] = body["output_format"]
    effort, shape = rest.get("effort"), rest.get("format")
    if effort is not None and not isinstance(effort, str):
        refuse_type("output_config.effort", "'low', 'medium', 'high', 'xhigh' or 'max'", effort)
    if effort is not None and _EFFORT.fullmatch(effort):
        del rest["effort"]
    else:
        effort = None
    schema = None
    if shape is not None:
        shape = mapping(shape, "output_config.format")
        if shape.get("type") == "json_schema" and holds_only(shape, _FORMAT):
            schema = mapping(required(shape, "schema", "output_config.format"), "output_config.format.schema")
            written(schema, "output_config.format.schema")
            del rest["format"]
    rest = {name: value for name, value in rest.items() if value is not None}
    if rest:
        extra["output_config"] = rest
    return effort, schema


def _thoughts(body: Mapping[str, Any], effort: str | None, extra: dict[str, Any], spare: set[str]) -> str | None:
    """So many tokens to think, or none. What more is said of thoughts is Anthropic's own, and so is all of it where an
    effort is told too: of how they are shown others know nothing, and how long they are may be for the model to say."""
    given = body.get("thinking")
    if given is None:
        return effort
    thinking = mapping(given, "thinking")
    kind = text(thinking, "type", "thinking")
    said = None
    if kind == "enabled":
        required(thinking, "budget_tokens", "thinking.enabled")
        budget = whole_number(thinking, "budget_tokens", _BUDGET_LEAST, "thinking.enabled") or 0
        said = str(budget) if budget <= _BUDGET_MOST else None
    elif kind == "disabled":
        said = "none"
    if effort is not None or said is None or not holds_only(thinking, _ENABLED):
        extra["thinking"] = thinking
        if kind in ("enabled", "adaptive"):
            spare.add("thinking")
    return effort or said


def _choice(body: Mapping[str, Any], extra: dict[str, Any]) -> tuple[str | None, bool | None]:
    """Which tool, and whether several at once. A tool that is named as one of our own words is asked for in
    Anthropic's."""
    given = body.get("tool_choice")
    if given is None:
        return None, None
    choice = mapping(given, "tool_choice")
    kind = text(choice, "type", "tool_choice")
    is_single = flag(choice, "disable_parallel_tool_use", f"tool_choice.{kind}")
    is_parallel = None if is_single is None else not is_single
    if kind == "tool":
        name = text(choice, "name", "tool_choice.tool")
    elif kind in _CHOICES:
        name = _CHOICES[kind]
    else:
        refuse_type("tool_choice.type", "'auto', 'any', 'tool' or 'none'", kind)
    if (kind == "tool" and name in _CHOICES.values()) or not holds_only(choice, _CHOICE):
        extra["tool_choice"] = choice
        return None, None
    return name, is_parallel


DIALECT = Dialect("anthropic-messages", read, whole, stream, problem, listing, listed)
