"""Reads the fields of a request to OpenAI's protocols, with the error messages of OpenAI's servers. Pure.

A path is written as in `messages[0].content`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..serve_dialect import RequestRefusal
from ..serve_fields import FieldReader

CONTENT = "one of a string or array of objects"
_KINDS = {
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    str: "a string",
    list: "an array",
    dict: "an object",
    type(None): "null",
}
_SHOWN_MAX = 60


class OpenAIFields(FieldReader):
    """A JSON object in a request to chat completions or Responses."""

    types: ClassVar[Mapping[str, str]] = {
        "text": "a string",
        "boolean": "a boolean",
        "integer": "an integer",
        "number": "a decimal",
        "object": "an object",
        "list": "an array",
    }

    missing = "Missing required parameter: '{path}'."
    wrong = "Invalid type for '{path}': expected {expected}, but got {value} instead."
    unwritable = "Invalid '{path}': it can't be written as JSON ({error})."
    unbounded = "Invalid '{path}': expected a finite number."

    @classmethod
    def shown(cls, value: Any) -> str:
        return _KINDS.get(type(value), "an object" if isinstance(value, Mapping) else "another value")

    @classmethod
    def choice_text(cls, path: str, allowed: Sequence[str], value: Any) -> str:
        shown = str(value)
        shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"
        quoted = [f"'{one}'" for one in allowed]
        listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
        return f"Invalid value: '{shown}'. Supported values are: {listed}."

    @classmethod
    def range_text(cls, path: str, sign: str, bound: float, value: float) -> str:
        beyond = "integer" if isinstance(value, int) else "decimal"
        beyond += " below minimum" if sign == ">=" else " above maximum"
        # Python writes out no whole number of more than 4,300 digits.
        shown = value if abs(value) < 1 << 64 else "one of many digits"
        return f"Invalid '{path}': {beyond} value. Expected a value {sign} {bound}, but got {shown} instead."

    def filled_list(self, name: str, expected: str = "an array of objects") -> Sequence[Any]:
        """Returns the list in a field; raises RequestRefusal if it is missing or empty."""
        self.required(name)
        items = self.list(name, expected)
        if not items:
            path = self.path_to(name)
            message = f"Invalid '{path}': empty array. Expected an array with minimum length 1, but got an empty array"
            raise RequestRefusal(f"{message} instead.", path)
        return items
