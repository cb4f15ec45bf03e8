"""A tool call in an answer of Gemini's. Pure: values in, values out, never an exception."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....engine.content import Native, ToolCall
from ..blocks import native_of, written
from ..repair import mended
from .turns import FAMILY, MADE_ID


class FunctionCall:
    """One tool call. `made_id` is its id if Google gives none. `is_whole` False: its arguments come in pieces, which
    Vertex AI sends to a request that asks for them."""

    def __init__(self, part: dict[str, Any], made_id: str) -> None:
        function = part["functionCall"]
        name, own_id, arguments = (function.get(field) for field in ("name", "id", "args"))
        self.is_named = isinstance(name, str)
        self.is_whole = "partialArgs" not in function and function.get("willContinue") is not True
        self.id = (mended(own_id) if isinstance(own_id, str) else "") or made_id
        self._name = name
        self._arguments = arguments if isinstance(arguments, dict) else {}
        self._beside = {name: value for name, value in part.items() if name != "functionCall"}

    def part(self) -> ToolCall | None:
        arguments = written(self._arguments)
        if arguments is None or not self.is_named:
            return None
        beside: Native | None = native_of(FAMILY, self._beside) if self._beside else None
        return ToolCall(self.id, mended(self._name), arguments, beside)


def made_id(calls: Sequence[FunctionCall]) -> str:
    """Returns an id made from the place of the next call in the answer, from 0, or from a later place if it is in
    use."""
    place = len(calls)
    while any(one.id == f"{MADE_ID}{place}" for one in calls):
        place += 1
    return f"{MADE_ID}{place}"
