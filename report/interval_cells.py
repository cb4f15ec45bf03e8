"""Cells of intervals in tables: two ends, and a note on the unit that they are over, how reliable they are, or why
there are none.

Owns these columns and words, for every benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..metrics.statistics.comparisons import Comparison
from ..metrics.statistics.intervals import Correlation, Interval
from .html_tables import shown_value
from .table import Cell, Column, Kind

FEW = (
    "fewer than 10 of them have none but their single figures, fewer than 30 an approximate one; figures that are all "
    "0 or 1 have an exact one, from 5 on"
)
OVER: Mapping[str, str] = MappingProxyType(
    {
        "issues": "Low and high are the ends of a 95% interval over issues (would other issues give this?): Student's "
        f"t over the issues' own figures; {FEW}.",
        "conversations": "Low and high are the ends of a 95% interval over conversations (would other conversations "
        f"give this?): Student's t over the conversations' own figures; {FEW}.",
    }
)


class IntervalCells(NamedTuple):
    low: float | None = None
    high: float | None = None
    told: str | None = None


def interval_columns(kind: Kind, prefix: str = "") -> tuple[Column, Column, Column]:
    return (
        Column(f"{prefix}low", "Low", kind),
        Column(f"{prefix}high", "High", kind),
        Column(f"{prefix}interval", "Interval"),
    )


def interval_cells(found: Interval | Comparison | Correlation | None, kind: Kind, factor: float = 1.0) -> IntervalCells:
    """Returns the cells of `interval_columns`, multiplied by `factor`; all are None if there is no figure."""
    if found is None:
        return IntervalCells()
    told = found.note or f"over {found.clusters:,} {found.of}"
    if not isinstance(found, Correlation) and len(found.figures) > 1:
        told += f": {', '.join(shown_value(kind, factor * figure) for figure in found.figures)}"
    if found.low is None or found.high is None:
        return IntervalCells(None, None, told)
    return IntervalCells(factor * found.low, factor * found.high, told)


def cells_of_entry(entry: Mapping[str, Any]) -> IntervalCells:
    """Returns the cells of `interval_columns` for an entry of `scores.json`, which has `ci95`, `ci95_of` and
    `ci95_note`; all are None if it has none of these."""
    low, high = entry.get("ci95") or (None, None)
    over = entry.get("ci95_of") if low is not None else None
    return IntervalCells(low, high, entry.get("ci95_note") or (f"over {over}" if over else None))


def interval_in_a_cell(kind: Kind, low: Cell, high: Cell, told: Cell) -> str | None:
    """Returns both ends and the note as one text, for the cell of a summary; None without either."""
    if low is None or high is None:
        return None if told is None else str(told)
    return f"{shown_value(kind, low)} to {shown_value(kind, high)}, {told}"
