"""A Python function as a tool: its JSON schema from types and docstring, and a model's arguments by these types.

Calls nothing: how long a function may take, and what its result becomes, is the toolbox's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from inspect import BoundArguments, Parameter, signature
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...engine.content import Tool
from ..evaluation.door.defect import BenchmarkDefect
from .docstring import described

# The names that every provider takes.
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REFERENCE = "#/$defs/"


class WrongArguments(Exception):
    """Raised for arguments that a tool doesn't take; the message is for the model."""


class FunctionTool:
    """A function with what a model reads of it. `source`: its fingerprint. The constructor raises BenchmarkDefect for a
    function that can't be described."""

    def __init__(self, function: Callable[..., Any], source: str = "") -> None:
        self.function = function
        self.source = source
        plain = function.func if isinstance(function, partial) else function
        self.name = str(getattr(plain, "__name__", type(plain).__name__))
        if not NAME.fullmatch(self.name):
            raise self._defect("a tool's name has up to 64 letters, digits, _ or -: define it with def")
        hinted = plain if hasattr(plain, "__name__") else type(plain).__call__
        description, texts = described(hinted)
        try:
            self._signature = signature(function)
            hints = get_type_hints(hinted, include_extras=True)
        except (NameError, TypeError, ValueError) as error:
            raise self._defect(f"its types can't be read: {error}") from error
        fields = [self._field(each, hints, texts) for each in self._signature.parameters.values()]
        arguments = msgspec.defstruct("arguments", fields, kw_only=True, forbid_unknown_fields=True)
        self.declared = Tool(self.name, description, _schema_of(arguments))
        """The tool as a model reads it."""
        self._decode = msgspec.json.Decoder(arguments).decode

    def __repr__(self) -> str:
        return f"<FunctionTool {self.name} [{', '.join(self._signature.parameters)}]>"

    def arguments(self, text: str) -> BoundArguments:
        """Returns a model's arguments, converted strictly to the function's types. Raises WrongArguments."""
        try:
            values = self._decode(text.strip() or "{}")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise WrongArguments(f"wrong arguments: {error}. {expected(self.declared)}") from error
        given = {name: getattr(values, name) for name in self._signature.parameters}
        return BoundArguments(self._signature, {name: value for name, value in given.items() if value is not UNSET})

    def _field(
        self, parameter: Parameter, hints: Mapping[str, Any], texts: Mapping[str, str]
    ) -> tuple[str, Any] | tuple[str, Any, Any]:
        """Returns a parameter as a field of a struct. One that has a default may be left out: the function then takes
        its own."""
        name, is_needed = parameter.name, parameter.default is Parameter.empty
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            raise self._defect(f"parameter {name}: write each parameter out, since a model needs their names")
        if name not in hints:
            raise self._defect(f"parameter {name} has no type: write one, as {name}: str")
        hint = hints[name]
        try:
            _schema_of(hint)
        except (TypeError, RecursionError, NameError) as error:
            kind = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
            reason = " ".join(str(error).split()).partition(" - type")[0]
            reason = f"no JSON is made of {kind}" if "custom types" in reason else reason
            reason = f"{kind} holds itself, which not every model reads" if "recursion" in reason else reason
            raise self._defect(f"parameter {name}: {reason}") from error
        words = [each for each in get_args(hint)[1:] if isinstance(each, str)] if get_origin(hint) is Annotated else []
        more: dict[str, Any] = {}
        if text := " ".join(words) or texts.get(name, ""):
            more["description"] = text
        if isinstance(parameter.default, str | int | float | bool):
            more["extra_json_schema"] = {"default": parameter.default}
        if not is_needed:
            hint = Union[hint, UnsetType]  # noqa: UP007 (a hint may be a text of typing's)
        hint = Annotated[hint, Meta(**more)] if more else hint
        return (name, hint) if is_needed else (name, hint, UNSET)

    def _defect(self, what: str) -> BenchmarkDefect:
        return BenchmarkDefect(f"tool {self.name}: {what}")


def expected(tool: Tool) -> str:
    """Returns a sentence on the parameters that a tool takes, for a model that gave others."""
    schema = tool.parameters or {}
    fields, needed = schema.get("properties") or {}, schema.get("required") or ()
    names = (field if field in needed else f"{field} (optional)" for field in fields)
    return f"{tool.name} takes a JSON object with {', '.join(names) or 'no fields'}."


def _schema_of(kind: Any) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([kind], ref_template=_REFERENCE + "{name}")
    return {name: value for name, value in _inlined(schema, parts).items() if name != "title"}


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Returns a schema with what it refers to in the place of the references, which not every provider follows."""
    if isinstance(schema, list):
        return [_inlined(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _inlined(value, parts) for name, value in schema.items() if name != "$ref"}
    reference = schema.get("$ref")
    return inner if reference is None else {**_inlined(parts[reference.removeprefix(_REFERENCE)], parts), **inner}
