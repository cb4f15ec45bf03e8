"""Tables, and figures drawn from them.

Owns the shapes alone, so that the writer of a page or a file imports no chart and no score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from msgspec import Struct

# `share` is from 0 to 1 and shown as a percentage, `rate` from 0 to 1 and shown with three decimals; `percent` is from
# 0 to 100; `points` are signed percentage points; `score` is from 0 to 100; `small` may be far below 1; `amount` is
# anything that is not counted, such as calls a second; `seconds` may be less than a thousandth; `verdict` is a text,
# coloured if it begins with `kept` or `missed`.
Kind = Literal[
    "text",
    "count",
    "share",
    "percent",
    "score",
    "points",
    "p",
    "correlation",
    "rate",
    "small",
    "amount",
    "seconds",
    "verdict",
]
Cell = str | int | float | bool | None
_T = TypeVar("_T")

# The values of the column `source`, which says where a row is from.
THIS_RUN = "this run"
PUBLISHED = "published"


def number_of(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


class Column(Struct, frozen=True):
    name: str
    title: str
    kind: Kind = "text"


MODEL = Column("model", "Model")


class Table(Struct, frozen=True):
    """A table of a report. `name` is the stem of its file; `note` says what it shows, how it was computed, and what to
    beware of.

    A missing value is None. Only tables with a column `source` have rows of the paper's own. `is_long`: better read as
    a file than on a page.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_long: bool = False

    def records(self) -> Iterator[dict[str, Cell]]:
        """Yields each row as a mapping by the names of its columns."""
        names = [column.name for column in self.columns]
        for row in self.rows:
            yield dict(zip(names, row, strict=True))


Cells = Mapping[Column, Callable[[_T], Cell]]
"""Columns, each with what makes its cell of a row's subject."""


def rows_of(cells: Cells[_T], subjects: Iterable[tuple[Sequence[Cell], _T]]) -> tuple[tuple[Cell, ...], ...]:
    """Returns a row for each subject: the cells that stand before it, as model and turn, and those of `cells`."""
    return tuple((*before, *(cell(subject) for cell in cells.values())) for before, subject in subjects)


def table_of(
    name: str, title: str, note: str, subjects: Iterable[_T], cells: Cells[_T], *, is_long: bool = False
) -> Table:
    """Returns a table with a row for each subject."""
    return Table(name, title, note, tuple(cells), rows_of(cells, (((), each) for each in subjects)), is_long)


def cells_in(columns: Iterable[Column], of: Callable[[_T], Sequence[Cell]]) -> Cells[_T]:
    """Returns columns whose cells are what `of` returns, in this order."""
    return {column: partial(lambda at, subject: of(subject)[at], at) for at, column in enumerate(columns)}


class Figure(Struct, frozen=True):
    """A figure of a report. `spec` is Vega-Lite with its data inside; None if nothing can be drawn, and `empty` says
    why in a sentence.

    On a screen narrower than `min_width` pixels it should scroll sideways and not shrink further, or its labels can't
    be read.
    """

    name: str
    title: str
    caption: str
    table: str
    spec: dict[str, Any] | None = None
    empty: str = ""
    min_width: int = 0
