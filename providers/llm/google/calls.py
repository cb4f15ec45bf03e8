"""Reads the tool calls in an answer of Gemini's, whole or in the pieces of a stream.

A piece names the place of its value in the arguments (`$.places[0].name`); a text may have several pieces. Pure: values
in, values out, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ....engine.content import Native, ToolCall
from ..blocks import native_of, written
from ..repair import mended
from .turns import FAMILY, MADE_ID

_STEP = re.compile(r"""\.(?P<name>[^.\[\]]+)|\[(?P<place>\d{1,4})\]|\['(?P<single>[^']*)'\]|\["(?P<double>[^"]*)"\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class FunctionCallBuilder:
    """The builder of one tool call from its pieces. `made_id` is its id if Google gives none."""

    def __init__(self, part: dict[str, Any], made_id: str) -> None:
        self._fields: dict[str, Any] = {}
        self._arguments: dict[str, Any] = {}
        self._beside: dict[str, Any] = {}
        self._made_id = made_id
        self.is_open = False
        self.is_broken = False
        self.take(part)

    @property
    def id(self) -> str:
        return mended(self._fields.get("id", "")) or self._made_id

    @property
    def is_named(self) -> bool:
        return isinstance(self._fields.get("name"), str)

    def take(self, part: dict[str, Any]) -> None:
        function = part["functionCall"]
        self._beside.update({name: value for name, value in part.items() if name != "functionCall"})
        self._fields.update({name: function[name] for name in ("id", "name") if isinstance(function.get(name), str)})
        if isinstance(function.get("args"), dict):
            self._arguments.update(function["args"])
        pieces = function.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            self.is_broken = not (isinstance(piece, dict) and _place(self._arguments, piece)) or self.is_broken
        self.is_open = function.get("willContinue") is True

    def part(self) -> ToolCall | None:
        arguments = written(self._arguments)
        if arguments is None or not self.is_named:
            return None
        beside: Native | None = native_of(FAMILY, self._beside) if self._beside else None
        return ToolCall(self.id, mended(self._fields["name"]), arguments, beside)


def made_id(calls: Sequence[FunctionCallBuilder]) -> str:
    """Returns an id made from the place of the next call in the answer, from 0, or from a later place if it is in
    use."""
    place = len(calls)
    while any(one.id == f"{MADE_ID}{place}" for one in calls):
        place += 1
    return f"{MADE_ID}{place}"


def _place(arguments: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Puts a piece at its place in the arguments; returns False if there is no such place."""
    path, kind = piece.get("jsonPath"), next((name for name in _VALUES if name in piece), None)
    steps = _steps(path) if isinstance(path, str) else None
    if not steps or kind is None or not isinstance(steps[0], str):
        return False
    holder: Any = arguments
    for step, following in pairwise(steps):
        inner = _at(holder, step)
        if inner is None:
            inner = {} if isinstance(following, str) else []
            if not _set(holder, step, inner):
                return False
        holder = inner
    value, before = piece[kind], _at(holder, steps[-1])
    if kind == "nullValue":
        value = None
    elif kind == "numberValue" and isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        value = int(value)
    elif isinstance(value, str) and isinstance(before, str):
        value = before + value
    return _set(holder, steps[-1], value)


def _steps(path: str) -> list[str | int] | None:
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        name = next((step[kind] for kind in ("name", "single", "double") if step[kind] is not None), None)
        steps.append(int(step["place"]) if name is None else name)
    return steps if path.startswith("$") else None


def _at(holder: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return holder.get(step) if isinstance(holder, dict) else None
    return holder[step] if isinstance(holder, list) and step < len(holder) else None


def _set(holder: Any, step: str | int, value: Any) -> bool:
    """Sets a value in an object, or in a list that may grow by one place; returns False if there is no such place."""
    if isinstance(step, str) and isinstance(holder, dict):
        holder[step] = value
        return True
    if isinstance(step, int) and isinstance(holder, list) and step <= len(holder):
        holder[step : step + 1] = [value]
        return True
    return False
