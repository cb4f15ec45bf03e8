"""Schemas in Google's own form, as the JSON schemas that every provider takes.

Google's form has its types in capitals, `nullable`, an order of the properties beside them, and whole numbers as texts.
What is a JSON schema already comes out as it went in. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .gemini_fields import camel, refuse_value, whole_number

_DEPTH_MAX = 100
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_RENAMED = {"defs": "$defs", "ref": "$ref"}
_Inner = Callable[[Any, str], Any]


def json_schema(given: Any, path: str, depth: int = 0) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        refuse_value(path, "a schema", given)
    if depth > _DEPTH_MAX:
        refuse_value(path, f"at most {_DEPTH_MAX} schemas within each other", "more")

    def inner(value: Any, where: str) -> dict[str, Any]:
        return json_schema(value, where, depth + 1)

    told = {camel(str(name)): value for name, value in given.items() if value is not None}
    schema: dict[str, Any] = {}
    for name, value in told.items():
        if name not in ("nullable", "propertyOrdering", "format", "example"):
            schema[_RENAMED.get(name, name)] = _keyword(name, value, f"{path}.{name}", inner)
    # Google says of a text with an enum that it is one; others know no such format.
    if "format" in told and told["format"] != "enum":
        schema["format"] = told["format"]
    if "example" in told:
        schema["examples"] = [told["example"]]
    if schema.get("type") == "":
        del schema["type"]
    _order(schema, told.get("propertyOrdering"))
    if told.get("nullable") is True:
        _allow_null(schema)
    return schema


def _keyword(name: str, value: Any, path: str, inner: _Inner) -> Any:
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
            return whole_number(value, path, 0)
    return value


def _order(schema: dict[str, Any], order: Any) -> None:
    """Answers have their properties in the order in which a JSON schema has them."""
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
