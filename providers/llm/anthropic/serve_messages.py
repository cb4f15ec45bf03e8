"""The served side of Anthropic Messages: a client's request becomes a call.

Its turns: serve_turns. Its answers: serve_answers and serve_errors. A field that no parameter of a call covers goes
into `extra` unchanged; fields that can't change the answer are left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ....engine.call import Call
from ..serve_dialect import Dialect, RequestRefusal, ServedRequest, refusing
from .serve_answers import whole
from .serve_errors import THREAD, listed, listing, problem
from .serve_events import MessageStream
from .serve_fields import AnthropicFields
from .serve_turns import FAMILY, tools_of, turns_of

_READ = frozenset(
    {
        "model", "messages", "system", "max_tokens", "stop_sequences", "temperature", "top_p", "top_k", "stream",
        "tools", "tool_choice", "thinking", "output_config", "output_format",
    }
)  # fmt: skip
# The caller's own notes, and a request for the reasons of a price.
_MEANINGLESS = frozenset({"metadata", "diagnostics"})
# Requests for a lower price or more speed: they change no answer.
_SPARE = frozenset({"service_tier", "cache_control", "speed"})
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_CHOICE = frozenset({"type", "name", "disable_parallel_tool_use"})
_ENABLED, _FORMAT = frozenset({"type", "budget_tokens"}), frozenset({"type", "schema"})
_BUDGET_LEAST, _BUDGET_MOST = 1_024, 999_999_999
_EFFORT = re.compile(r"(?!none$)[a-z]{1,20}")


@refusing
def read(request: Mapping[str, Any], named: Callable[[str], str]) -> ServedRequest:
    body = AnthropicFields(request)
    model = body.text("model")
    body.required("max_tokens")
    if body.has(THREAD):
        why = f"{THREAD}: no conversation is held here: send all of it as messages, without a thread"
        raise RequestRefusal(why, THREAD)
    is_streamed = body.boolean("stream") or False
    extra = body.others(_READ | _MEANINGLESS)
    if (top_k := body.integer("top_k", 0)) is not None:
        extra["top_k"] = top_k
    spare = {name for name in extra if name in _SPARE}
    effort, schema = _output(body, extra)
    effort = _thoughts(body, effort, extra, spare)
    choice, is_parallel = _choice(body, extra)
    if extra:
        body.written(extra, "messages")
    call = Call(
        named(model),
        turns_of(body),
        temperature=body.number("temperature", 0),
        max_tokens=body.integer("max_tokens", 1),
        top_p=body.number("top_p", 0),
        stop=body.texts("stop_sequences"),
        extra=extra or None,
        stream=is_streamed,
        reasoning_effort=effort,
        json_schema=schema,
        tools=tools_of(body),
        tool_choice=choice,
        parallel_tools=is_parallel,
    )
    return ServedRequest(call, model, is_streamed, spare=frozenset(spare))


def _output(body: AnthropicFields, extra: dict[str, Any]) -> tuple[str | None, Mapping[str, Any] | None]:
    """Returns the effort and the JSON schema of the answer, each None if not set; the rest of output_config goes into
    `extra`. Older clients send the schema as output_format."""
    config = body.object("output_config", {})
    rest = config.others(())
    if not config.has("format") and body.has("output_format"):
        rest["format"] = body.fields["output_format"]
    effort = rest.get("effort")
    if effort is not None and not isinstance(effort, str):
        raise body.wrong_choice("output_config.effort", ("low", "medium", "high", "xhigh", "max"), effort)
    if effort is not None and _EFFORT.fullmatch(effort):
        del rest["effort"]
    else:
        effort = None
    schema = None
    if "format" in rest:
        form = AnthropicFields(rest["format"], "output_config.format")
        if form.fields.get("type") == "json_schema" and form.holds_only(_FORMAT):
            form.object("schema")
            schema = form.kept("schema")
            del rest["format"]
    if rest:
        extra["output_config"] = rest
    return effort, schema


def _thoughts(body: AnthropicFields, effort: str | None, extra: dict[str, Any], spare: set[str]) -> str | None:
    """Returns the reasoning effort: `effort` if set, else the budget of `thinking` in tokens as a text, `none` if it is
    disabled, or None. If that does not express all of `thinking`, it goes into `extra` whole, and, unless it is
    disabled, into `spare`: other providers may do without it."""
    if not body.has("thinking"):
        return effort
    thinking = body.object("thinking")
    kind = thinking.text("type")
    budgeted = None
    if kind == "enabled":
        enabled = thinking.under("enabled")
        enabled.required("budget_tokens")
        budget = enabled.integer("budget_tokens", _BUDGET_LEAST) or 0
        budgeted = str(budget) if budget <= _BUDGET_MOST else None
    elif kind == "disabled":
        budgeted = "none"
    if effort is not None or budgeted is None or not thinking.holds_only(_ENABLED):
        extra["thinking"] = thinking.raw
        if kind in ("enabled", "adaptive"):
            spare.add("thinking")
    return effort or budgeted


def _choice(body: AnthropicFields, extra: dict[str, Any]) -> tuple[str | None, bool | None]:
    """Returns the tool choice, and whether several tools may be called at once; None where not set. A tool whose name
    is one of our own words, such as `auto`, goes into `extra`."""
    if not body.has("tool_choice"):
        return None, None
    choice = body.object("tool_choice")
    kind = choice.text("type")
    is_single = choice.under(kind).boolean("disable_parallel_tool_use")
    if kind == "tool":
        name = choice.under("tool").text("name")
    elif kind in _CHOICES:
        name = _CHOICES[kind]
    else:
        raise choice.wrong_choice("tool_choice.type", ("auto", "any", "tool", "none"), kind)
    if (kind == "tool" and name in _CHOICES.values()) or not choice.holds_only(_CHOICE):
        extra["tool_choice"] = choice.raw
        return None, None
    return name, None if is_single is None else not is_single


DIALECT = Dialect(FAMILY, read, whole, MessageStream, problem, listing, listed)
