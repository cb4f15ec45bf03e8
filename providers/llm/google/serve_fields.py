"""Reads the fields of a request to Gemini as Google's servers do, with their error messages. Pure.

A name may be written in camel case or with underscores, a number as a text, and one object in place of a list. A path
is written as in `generationConfig.topP`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..serve_dialect import RequestRefusal
from ..serve_fields import FieldReader

_WHOLE = re.compile(r"-?\d{1,18}")
_UNDERSCORED = re.compile(r"_([a-z0-9])")


def camel(name: str) -> str:
    return _UNDERSCORED.sub(lambda match: match[1].upper(), name) if "_" in name else name


class GeminiFields(FieldReader):
    """A JSON object in a request to generateContent. `fields` have their names in camel case, and none is null."""

    types: ClassVar[Mapping[str, str]] = {
        "text": "TYPE_STRING",
        "boolean": "TYPE_BOOL",
        "integer": "TYPE_INT32",
        "number": "TYPE_FLOAT",
        "object": "an object",
        "list": "a list",
    }
    number_bound = 1e15
    missing = "* GenerateContentRequest.{path}: {path} is not specified"
    wrong = "Invalid value at '{path}' ({expected}), {value}"
    unwritable = "'{path}' can't be written as JSON again ({error})"

    @classmethod
    def fields_of(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        return {camel(str(name)): inner for name, inner in value.items() if inner is not None}

    @classmethod
    def parameter(cls, path: str) -> str:
        return re.split(r"[.\[]", path, maxsplit=1)[0]

    @classmethod
    def line(cls, path: str, why: str) -> str:
        return f"* GenerateContentRequest.{path}: {why}"

    @classmethod
    def range_text(cls, path: str, sign: str, bound: float, value: float) -> str:
        return cls.line(path, f"{value} is out of range: it must be at {'least' if sign == '>=' else 'most'} {bound}")

    @classmethod
    def as_list(cls, value: Any) -> Sequence[Any] | None:
        return [value] if isinstance(value, Mapping) else super().as_list(value)

    @classmethod
    def as_integer(cls, value: Any) -> int | None:
        if isinstance(value, str):
            return int(value) if _WHOLE.fullmatch(value) else None
        is_whole = isinstance(value, float) and abs(value) < cls.number_bound and value.is_integer()
        return int(value) if is_whole else super().as_integer(value)

    @classmethod
    def as_number(cls, value: Any) -> float | None:
        """Returns a float, also from a text; None for a value that is no number. `NaN` and `Infinity` are read as
        Google reads them, and then refused as out of bounds."""
        try:
            return float(value) if isinstance(value, str) else super().as_number(value)
        except ValueError:
            return None

    def refused(self, name: str, why: str) -> RequestRefusal:
        path = self.path_to(name)
        return self.refusal(path, self.line(path, why))

    def named(self) -> str:
        """Returns the name of a function; raises RequestRefusal if it is empty."""
        name = self.text("name", "")
        if not name:
            raise self.refused("name", "Name cannot be empty.")
        return name
