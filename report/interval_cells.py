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


def interval_cells(
    interval: Interval | Comparison | Correlation | None, kind: Kind, factor: float = 1.0
) -> IntervalCells:
    """Returns the cells of `interval_columns`, multiplied by `factor`; all are None if there is no figure."""
    if interval is None:
        return IntervalCells()
    note = interval.note or f"over {interval.clusters:,} {interval.of}"
    if not isinstance(interval, Correlation) and len(interval.figures) > 1:
        note += f": {', '.join(shown_value(kind, factor * figure) for figure in interval.figures)}"
    if interval.low is None or interval.high is None:
        return IntervalCells(None, None, note)
    return IntervalCells(factor * interval.low, factor * interval.high, note)


def cells_of_entry(entry: Mapping[str, Any]) -> IntervalCells:
    """Returns the cells of `interval_columns` for an entry of `scores.json`, which has `ci95`, `ci95_of` and
    `ci95_note`; all are None if it has none of these."""
    low, high = entry.get("ci95") or (None, None)
    over = entry.get("ci95_of") if low is not None else None
    return IntervalCells(low, high, entry.get("ci95_note") or (f"over {over}" if over else None))


def interval_in_a_cell(kind: Kind, low: Cell, high: Cell, note: Cell) -> str | None:
    """Returns both ends and the note as one text, for the cell of a summary; None without either."""
    if low is None or high is None:
        return None if note is None else str(note)
    return f"{shown_value(kind, low)} to {shown_value(kind, high)}, {note}"
