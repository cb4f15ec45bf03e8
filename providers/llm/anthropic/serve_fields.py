"""Reads the fields of a request to Anthropic Messages, with the error messages of Anthropic's servers. Pure.

A path is written as in `messages.0.content`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..serve_fields import FieldReader


class AnthropicFields(FieldReader):
    """A JSON object in a request to Messages, with the error messages of Anthropic's servers."""

    types: ClassVar[Mapping[str, str]] = {
        "text": "a valid string",
        "boolean": "a valid boolean",
        "integer": "a valid integer",
        "number": "a valid number",
        "object": "a valid dictionary",
        "list": "a valid list",
    }
    number_bound = 1 << 53
    item = "{path}.{index}"
    missing = "{path}: Field required"
    wrong = "{path}: Input should be {expected}; came {value}"
    unwritable = "{path}: can't be written as JSON again ({error})"

    @classmethod
    def parameter(cls, path: str) -> str:
        return path.partition(".")[0]

    @classmethod
    def range_text(cls, path: str, sign: str, bound: float, value: float) -> str:
        return cls.type_text(path, f"{'greater' if sign == '>=' else 'less'} than or equal to {bound}", value)

    @classmethod
    def as_number(cls, value: Any) -> float | None:
        """Returns the number as it was sent, since errors show it; None if it is no number."""
        return None if super().as_number(value) is None else value
