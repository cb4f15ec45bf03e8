"""Reads tools, their choice and the form of an answer from requests of both OpenAI's protocols.

Pure. What a call has no field for goes into `extra` unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....engine.content import Native, Tool
from ..protocol import schema_name
from ..serve_dialect import RequestRefusal
from .serve_fields import OpenAIFields
from .serve_turns import MARKS

CHOICES = ("none", "auto", "required")
_TOOL = frozenset({"name", "description", "parameters", "strict"})
_FORM = frozenset({"type", "name", "schema", "strict"})
_CHOICE = "tool_choice"


def tools(body: OpenAIFields, family: str) -> tuple[Tool | Native, ...] | None:
    """Returns the tools; None also for an empty list, since not every server takes one."""
    return tuple(_tool(tool, family) for tool in body.objects("tools")) or None


def _tool(tool: OpenAIFields, family: str) -> Tool | Native:
    """Returns a function as a Tool, else a native part. In the Responses protocol the tool itself has its fields."""
    if tool.text("type") != "function":
        return tool.native(family)
    others = tool.others({"type", *MARKS})
    function = tool
    if family == "openai":
        function = tool.object("function", {})
        if others.keys() - {"function"}:
            return tool.native(family)
        others = function.others(())
    name, description = function.text("name"), function.text("description", "")
    parameters = _schema_in(function, "parameters")
    strict = function.boolean("strict")
    return Tool(name, description, parameters, strict) if others.keys() <= _TOOL else tool.native(family)


def _schema_in(holder: OpenAIFields, name: str) -> Mapping[str, Any] | None:
    if not holder.has(name):
        return None
    holder.object(name)
    schema: Mapping[str, Any] = holder.kept(name)
    return schema


def choice(
    body: OpenAIFields, tools: tuple[Tool | Native, ...] | None, extra: dict[str, Any], *, is_flat: bool
) -> str | None:
    """Returns the tool choice: one of CHOICES or a function's name; None if it is not set. A choice that a call can't
    express goes into `extra` unchanged."""
    value = body.fields.get(_CHOICE)
    if value is None:
        return None
    if isinstance(value, str):
        return body.choice(_CHOICE, CHOICES)
    if not isinstance(value, Mapping):
        raise body.wrong_type(_CHOICE, "one of a string or an object", value)
    name = _named(body.object(_CHOICE), tools or (), is_flat=is_flat)
    if name is None:
        extra[_CHOICE] = body.kept(_CHOICE)
    return name


def _named(chosen: OpenAIFields, tools: tuple[Tool | Native, ...], *, is_flat: bool) -> str | None:
    if chosen.text("type") != "function":
        return None
    name = (chosen if is_flat else chosen.object("function", {})).text("name")
    if not any(isinstance(tool, Tool) and tool.name == name for tool in tools):
        if not any(isinstance(tool, Native) for tool in tools):
            message = f"Invalid value for '{_CHOICE}': no function named '{name}' was specified in 'tools'."
            raise RequestRefusal(message, _CHOICE)
        return None
    return None if name in CHOICES else name


def schema(form: OpenAIFields) -> tuple[Mapping[str, Any] | None, bool]:
    """Returns the JSON schema of an answer, None if there is none, and whether a call with that schema expresses the
    whole form. It does not if the form has another name for the schema or does not set `strict`."""
    name, strict, json_schema = form.text("name"), form.boolean("strict"), _schema_in(form, "schema")
    if json_schema is None:
        return None, False
    return json_schema, strict is True and schema_name(json_schema) == name and form.holds_only(_FORM)
