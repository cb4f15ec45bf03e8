"""A Python function as a tool: its JSON schema from types and docstring, and a model's arguments by these types."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import BoundArguments, Parameter, getdoc, iscoroutinefunction, signature
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ...engine.content import Tool, ToolResult
from ..evaluation.door.defect import BenchmarkDefect
from .carrying_out import Workers

# The names that every provider takes.
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REFERENCE = "#/$defs/"
_AFTER_FIRST = re.compile(r"\n\s*\n|^:(?:param|parameter|arg)\s|^(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):[ ]*((?:\n(?:[ ].*)?)*)", re.MULTILINE)
# What is indented more goes on with the description.
_ENTRY = re.compile(r"^( +)\*{0,2}(?P<name>\w+) *(?:\([^)]*\))? *:(?P<text>.*(?:\n\1 +.*)*)", re.MULTILINE)
_FIELD = re.compile(
    r"^:(?:param|parameter|arg) +(?:[^:\n]* )?\*{0,2}(?P<name>\w+) *:(?P<text>.*(?:\n +.*)*)", re.MULTILINE
)


class OfferedTool(Struct, frozen=True):
    """A tool that is offered to a model.

    declared: what a model reads of it.
    source: what decides its results beside the arguments.
    decode: returns a model's arguments from JSON; raises msgspec's errors.
    carry_out: carries out a call with these arguments.
    """

    declared: Tool
    source: Any
    decode: Callable[[str], Any]
    carry_out: Callable[[Any], Awaitable[ToolResult]]


def function_tool(function: Callable[..., Any], workers: Workers, source: str = "") -> OfferedTool:
    """Returns a function as a tool. `source`: its fingerprint. Raises BenchmarkDefect if it can't be described."""
    plain = function.func if isinstance(function, partial) else function
    name = str(getattr(plain, "__name__", type(plain).__name__))
    if not NAME.fullmatch(name):
        raise _defect(name, "a tool's name has up to 64 letters, digits, _ or -: define it with def")
    hinted = plain if hasattr(plain, "__name__") else type(plain).__call__
    description, texts = _described(getdoc(hinted) or "")
    try:
        parameters = signature(function)
        hints = get_type_hints(hinted, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise _defect(name, f"its types can't be read: {error}") from error
    fields = [_field(name, each, hints, texts) for each in parameters.parameters.values()]
    struct = msgspec.defstruct("arguments", fields, kw_only=True, forbid_unknown_fields=True)
    decoder = msgspec.json.Decoder(struct)

    def decode(text: str) -> BoundArguments:
        values = structs.asdict(decoder.decode(text))
        return BoundArguments(parameters, {name: each for name, each in values.items() if each is not UNSET})

    def carry_out(bound: BoundArguments) -> Awaitable[ToolResult]:
        begin = workers.awaited if iscoroutinefunction(function) else workers.in_thread
        return begin(name, partial(function, *bound.args, **bound.kwargs))

    return OfferedTool(Tool(name, description, _schema_of(struct)), source, decode, carry_out)


def _field(
    tool: str, parameter: Parameter, hints: Mapping[str, Any], texts: Mapping[str, str]
) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Returns a parameter as a field of a struct. One that has a default may be left out: the function then takes
    its own."""
    name = parameter.name
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        raise _defect(tool, f"parameter {name}: write each parameter out, since a model needs their names")
    if name not in hints:
        raise _defect(tool, f"parameter {name} has no type: write one, as {name}: str")
    hint = hints[name]
    try:
        _schema_of(hint)
    except (TypeError, RecursionError, NameError) as error:
        kind = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
        reason = " ".join(str(error).split()).partition(" - type")[0]
        reason = f"no JSON is made of {kind}" if "custom types" in reason else reason
        reason = f"{kind} holds itself, which not every model reads" if "recursion" in reason else reason
        raise _defect(tool, f"parameter {name}: {reason}") from error
    words = [each for each in get_args(hint)[1:] if isinstance(each, str)] if get_origin(hint) is Annotated else []
    default = parameter.default
    meta = Meta(
        description=" ".join(words) or texts.get(name) or None,
        extra_json_schema={"default": default} if isinstance(default, str | int | float | bool) else None,
    )
    if default is Parameter.empty:
        return name, Annotated[hint, meta]
    return name, Annotated[Union[hint, UnsetType], meta], UNSET  # noqa: UP007 (a hint may be a text of typing's)


def _defect(tool: str, what: str) -> BenchmarkDefect:
    return BenchmarkDefect(f"tool {tool}: {what}")


def _described(text: str) -> tuple[str, dict[str, str]]:
    """Returns the first paragraph of a docstring, and the descriptions of parameters, which stand in a section `Args:`
    or in lines `:param NAME: …`."""
    sections = "\n".join(match[1] for match in _SECTION.finditer(text))
    entries = [*_ENTRY.finditer(sections), *_FIELD.finditer(text)]
    first = _AFTER_FIRST.split(text, maxsplit=1)[0]
    return " ".join(first.split()), {entry["name"]: " ".join(entry["text"].split()) for entry in entries}


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
