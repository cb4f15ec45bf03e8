"""Turns schemas of Google's own form into the JSON schemas that every provider takes.

In Google's form types are in capitals, whole numbers are texts, and `nullable` and the order of properties are
keywords. A JSON schema stays unchanged. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .serve_fields import GeminiFields

_DEPTH_MAX = 100
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_RENAMED = {"defs": "$defs", "ref": "$ref"}
_Inner = Callable[[Any, str], Any]


def json_schema(google_schema: Any, path: str, depth: int = 0) -> dict[str, Any]:
    if not isinstance(google_schema, Mapping):
        raise GeminiFields.wrong_type(path, "a schema", google_schema)
    if depth > _DEPTH_MAX:
        raise GeminiFields.wrong_type(path, f"at most {_DEPTH_MAX} schemas within each other", "more")

    def inner(value: Any, where: str) -> dict[str, Any]:
        return json_schema(value, where, depth + 1)

    form = GeminiFields(google_schema, path)
    schema: dict[str, Any] = {}
    for name in form.others({"nullable", "propertyOrdering", "format", "example"}):
        schema[_RENAMED.get(name, name)] = _keyword(form, name, inner)
    # Google gives a text with an enum the format `enum`, which no other provider knows.
    if form.has("format") and form.fields["format"] != "enum":
        schema["format"] = form.fields["format"]
    if form.has("example"):
        schema["examples"] = [form.fields["example"]]
    if schema.get("type") == "":
        del schema["type"]
    _order(schema, form.fields.get("propertyOrdering"))
    if form.fields.get("nullable") is True:
        _allow_null(schema)
    return schema


def _keyword(form: GeminiFields, name: str, inner: _Inner) -> Any:
    value, path = form.fields[name], form.path_to(name)
    match name, value:
        case "type", str():
            return "" if value == "TYPE_UNSPECIFIED" else value.lower()
        case (("properties" | "defs" | "$defs"), Mapping()):
            return {str(each): inner(schema, f"{path}.{each}") for each, schema in value.items()}
        case (("items" | "additionalProperties"), Mapping()):
            return inner(value, path)
        case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
            return [inner(schema, f"{path}[{place}]") for place, schema in enumerate(value)]
        case _ if name in _COUNTS:
            return form.integer(name, 0)
    return value


def _order(schema: dict[str, Any], order: Any) -> None:
    """Puts the properties into the order of `propertyOrdering`, since answers follow the schema's order."""
    properties = schema.get("properties")
    if isinstance(order, list) and isinstance(properties, dict):
        first = [name for name in order if isinstance(name, str) and name in properties]
        schema["properties"] = {name: properties[name] for name in dict.fromkeys([*first, *properties])}


def _allow_null(schema: dict[str, Any]) -> None:
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
