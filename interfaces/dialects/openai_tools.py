"""Tools, their choice and the form of an answer, as requests of both OpenAI's protocols tell them.

Pure. What a call has no field for goes into `extra`, in the protocol's own words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...engine.content import Native, Tool
from .dialect import Refused
from .openai_turns import MARKS, placed
from .openai_values import flag, kind_of, rows, table, text, text_in, writable, wrong_value

CHOICES = ("none", "auto", "required")
_TOOL = frozenset({"name", "description", "parameters", "strict"})
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


def tools(value: Any, family: str, where: str = "tools") -> tuple[Tool | Native, ...] | None:
    """An empty list is none at all: not every server takes it."""
    return tuple(_tool(table(one, at), family, at) for one, at in placed(rows(value, where), where)) or None


def _tool(given: Mapping[str, Any], family: str, where: str) -> Tool | Native:
    """The Responses protocol has a function's fields in the tool itself."""
    is_flat = family == "openai-responses"
    kind = text_in(given, "type", where)
    said = {name for name, value in given.items() if value is not None and name not in MARKS}
    if kind != "function":
        return Native(family, writable(given, where))
    if is_flat:
        function, at = given, where
        named = said - {"type"}
    else:
        at = f"{where}.function"
        function = table(given.get("function") or {}, at)
        named = {name for name, value in function.items() if value is not None}
        if said - {"type", "function"}:
            return Native(family, writable(given, where))
    name = text_in(function, "name", at)
    description, parameters = function.get("description"), function.get("parameters")
    if description is not None:
        text(description, f"{at}.description")
    if parameters is not None:
        writable(table(parameters, f"{at}.parameters"), f"{at}.parameters")
    strict = function.get("strict")
    if strict is not None:
        flag(strict, f"{at}.strict")
    if not named <= _TOOL:
        return Native(family, writable(given, where))
    return Tool(name, description or "", parameters, strict)


def choice(value: Any, given: tuple[Tool | Native, ...] | None, *, is_flat: bool) -> str | None:
    """A word or a function's name; None for what a call can't say, which stays as it is."""
    where = "tool_choice"
    if isinstance(value, str):
        if value not in CHOICES:
            wrong_value(where, value, CHOICES)
        return value
    if not isinstance(value, Mapping):
        raise Refused(
            f"Invalid type for '{where}': expected one of a string or an object, but got {kind_of(value)} instead.",
            where,
        )
    if text_in(value, "type", where) != "function":
        return None
    at = where if is_flat else f"{where}.function"
    name = text_in(value if is_flat else table(value.get("function") or {}, at), "name", at)
    if not any(isinstance(tool, Tool) and tool.name == name for tool in given or ()):
        if not any(isinstance(tool, Native) for tool in given or ()):
            raise Refused(f"Invalid value for '{where}': no function named '{name}' was specified in 'tools'.", where)
        return None
    return None if name in CHOICES else name


def schema(form: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any] | None, bool]:
    """The JSON schema of a form of answer, and whether a call that has it says all of it: its name and its strictness
    are else only in the form itself."""
    name, strict, given = text_in(form, "name", where), form.get("strict"), form.get("schema")
    if strict is not None:
        flag(strict, f"{where}.strict")
    if given is None:
        return None, False
    writable(table(given, f"{where}.schema"), f"{where}.schema")
    # As every provider of these protocols is told a schema's name.
    title = given.get("title")
    told = _NO_NAME.sub("_", title)[:64] if isinstance(title, str) and title else "answer"
    others = {key for key, value in form.items() if value is not None} - {"type", "name", "schema", "strict"}
    return given, strict is True and told == name and not others
