"""Tables, and figures drawn from them.

Owns the shapes alone, so that the writer of a page or a file imports no chart and no score.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

# `share` lies between 0 and 1 and is shown as a percentage, `rate` so too, with three decimals; `percent` is one times
# 100; `points` are percentage points, signed; `score` is 0 to 100; `small` may lie far below 1; `amount` is anything
# that is not counted, such as calls a second; `seconds` may be less than a thousandth.
Kind = Literal[
    "text", "count", "share", "percent", "score", "points", "p", "correlation", "rate", "small", "amount", "seconds"
]
Cell = str | int | float | bool | None

# The column `source` of a row says whose it is.
THIS_RUN = "this run"
PUBLISHED = "published"


class Column(Struct, frozen=True):
    name: str
    title: str
    kind: Kind = "text"


class Table(Struct, frozen=True):
    """`name` is the stem of its file; `note` says what it is, how it was computed, and what to beware of.

    A missing value is None. Rows of the paper's own stand only in tables with a column `source`. `is_long`: better read
    as a file than on a page.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_long: bool = False

    def records(self) -> Iterator[dict[str, Cell]]:
        """Each row by the names of its columns."""
        names = [column.name for column in self.columns]
        for row in self.rows:
            yield dict(zip(names, row, strict=True))


class Figure(Struct, frozen=True):
    """`spec` is Vega-Lite with its data inside; None where nothing can be drawn, and `empty` says why in a sentence.

    `width` and `height` are the picture's own size in pixels. On a screen narrower than `min_width` it should scroll
    sideways and not shrink further, or its labels can't be read.
    """

    name: str
    title: str
    caption: str
    table: str
    spec: dict[str, Any] | None
    empty: str = ""
    width: int = 0
    height: int = 0
    min_width: int = 0
