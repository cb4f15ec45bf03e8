"""Templates with braces: `{column}` is replaced by the row's value, `{{` and `}}` stand for a brace.

Owns how a template is parsed and how a value is written into a text. Knows no message and no scorer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from .rows import TaskError, TaskRow, is_missing, shown

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARKS = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class ColumnSlot(NamedTuple):
    """A place in a template that is filled with the value of the column `name`."""

    name: str


class Template(Struct, frozen=True):
    """A text with places for the columns of a row.

    name: what the template is in the task, as in "prompt", for messages.
    text: the template as it was given.
    pieces: its plain texts and columns, in order.
    """

    name: str
    text: str
    pieces: tuple[str | ColumnSlot, ...]

    def fill(self, row: TaskRow) -> str:
        """Returns the text with the row's values. Raises TaskError for a column that the row lacks."""
        return "".join(piece if isinstance(piece, str) else self._text(row, piece.name) for piece in self.pieces)

    def alternatives(self, row: TaskRow) -> tuple[Any, ...]:
        """Returns the values that the template allows: the elements of the list if the template is one column that
        holds a list, else one value."""
        if len(self.pieces) == 1 and isinstance(self.pieces[0], ColumnSlot):
            value = self._value(row, self.pieces[0].name)
            if isinstance(value, list | tuple):
                if not value or any(map(is_missing, value)):
                    raise TaskError(f"{row.where}: {self.name}: column {shown(self.pieces[0].name)} has no value")
                return tuple(value)
            return (value,)
        return (self.fill(row),)

    def _value(self, row: TaskRow, name: str) -> Any:
        if name not in row.data:
            raise TaskError(
                f"{self.name}: {row.where} has no column {shown(name)}: it has {', '.join(row.data)}; "
                f"write {{{{ and }}}} for braces that are part of the text"
            )
        value = _plain(row.data[name])
        if is_missing(value):
            raise TaskError(_no_value(self.name, row, name))
        return value

    def _text(self, row: TaskRow, name: str) -> str:
        value = self._value(row, name)
        if isinstance(value, list | tuple):
            return _options(value, f"{self.name}: column {shown(name)} of {row.where}")
        if isinstance(value, str) and not value.strip():
            raise TaskError(_no_value(self.name, row, name))
        if isinstance(value, Mapping | bytes):
            raise TaskError(
                f"{self.name}: column {shown(name)} of {row.where} holds a {type(value).__name__}: use a function "
                f"of the row in place of the template"
            )
        return str(value)


def template(text: str, name: str) -> Template:
    """Returns a text parsed as a template; `name` is its name in error messages. Raises TaskError for a brace without
    its partner."""
    pieces: list[str | ColumnSlot] = []
    end = 0
    for match in _MARKS.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        if match[1] is not None:
            pieces.append(ColumnSlot(match[1].strip()))
        elif len(match[0]) == 2:
            pieces.append(match[0][0])
        else:
            raise TaskError(
                f"{name}: {match[0]} at character {match.start()} has no partner: write {match[0] * 2} for a brace "
                f"that is part of the text"
            )
    pieces.append(text[end:])
    return Template(name, text, tuple(piece for piece in pieces if piece))


def _no_value(template: str, row: TaskRow, column: str) -> str:
    return (
        f"{template}: column {shown(column)} of {row.where} has no value: fill it, leave the row out, or use a "
        f"function of the row in place of the template"
    )


def _plain(value: Any) -> Any:
    """Returns numpy arrays and numbers as lists and numbers of Python, other values as they are."""
    plain = getattr(value, "tolist", None)
    return plain() if callable(plain) else value


def _options(values: list[Any] | tuple[Any, ...], where: str) -> str:
    """Returns a list as answer options, one on each line, with letters from A."""
    if len(values) > len(LETTERS):
        raise TaskError(f"{where}: expected at most {len(LETTERS)} options, got {len(values)}")
    for value in values:
        if is_missing(value) or isinstance(value, Mapping | list | tuple | bytes):
            raise TaskError(f"{where}: expected a list of texts or numbers, got {shown(value)} in it")
    return "\n".join(f"{letter}. {value}" for letter, value in zip(LETTERS, values, strict=False))
