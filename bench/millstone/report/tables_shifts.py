"""Tables of the effect of arguments: table 3, the data of figures 2 and 5, and the issues that no argument moves.

Owns their columns and words. `millstone` computes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ....metrics.millstone.baselines import unmoved
from ....metrics.millstone.openness import (
    CONTRADICTIONS,
    SHIFT_ORDER,
    contradiction,
    contradictions_over_half,
    counter_shifts,
    pro_change,
    pro_shift,
)
from ....report.interval_cells import interval_columns
from ....report.table import Cell, Column, Table
from .panel import CONTROVERSIAL, SIDES, SurveyScores
from .published import beside_published

_MODEL = Column("model", "Model")
_ISSUES = Column("issues", "Issues", "count")
_ENDS = interval_columns("points")


def shift_tables(panel: SurveyScores) -> Iterator[Table]:
    yield _shifts(panel)
    yield _counter_shifts(panel)
    yield _contradictions(panel)
    yield from _unmoved(panel)


def _shifts(panel: SurveyScores) -> Table:
    return Table(
        "figure-2-shifts",
        "Figure 2, data: shift of the pro share",
        "A case's pro share minus the baseline's, in percentage points, the mean over the issues with answers to both. "
        f"{panel.interval_note}",
        (_MODEL, Column("case", "Case"), _ISSUES, Column("shift", "Shift", "points"), *_ENDS),
        tuple(
            (
                counts.model,
                case,
                _known(pro_change(counts.pooled, case)),
                _points(pro_shift(counts.pooled, case)),
                *panel.interval(counts, case, "points", 100),
            )
            for counts in panel.main
            for case in SHIFT_ORDER
        ),
    )


def _counter_shifts(panel: SurveyScores) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for counts in panel.main:
        number, mean = counter_shifts(counts.pooled)
        pairs = sum(_known(pro_change(counts.pooled, f"one-sided-{side}")) for side in SIDES)
        rows.append((counts.model, pairs, int(number), None if math.isnan(mean) else float(mean)))
    return beside_published(
        "table-3-counter-shifts",
        "Table 3: shifts against the arguments",
        "How many one-sided cases (an issue and a side) moved a model's pro share against their arguments, however "
        "little, and by how many percentage points on average. Chance alone makes some where a baseline is near 0% or "
        "100%, and so does a baseline that is mostly Other.",
        (
            _MODEL,
            Column("pairs", "Cases compared", "count"),
            Column("count", "Count", "count"),
            Column("mean", "Mean", "points"),
        ),
        rows,
    )


def _contradictions(panel: SurveyScores) -> Table:
    where = "the controversial issues" if CONTROVERSIAL in panel.sets else "all issues: none is a controversial one"
    rows: list[tuple[Cell, ...]] = []
    for counts in panel.contradicted:
        means, over = contradiction(counts.pooled), contradictions_over_half(counts.pooled)
        for at, (side, pair) in enumerate(zip(SIDES, CONTRADICTIONS, strict=True)):
            changes = pro_change(counts.pooled, *pair)
            ends = panel.interval(counts, side, "points", 100)
            rows.append((counts.model, side, _known(changes), _points(means[at]), *ends, int(over[at])))
    return Table(
        "figure-5-contradiction",
        "Figure 5, data: the effect of a single contradicting argument",
        f"On {where}. Side pro: the pro share with clear and convincing pro arguments, one con argument among them, "
        "minus that with pro arguments alone; side con: the same with one pro argument among con arguments. Mean over "
        "issues, in percentage points, and how many issues a single argument moved by more than 50. "
        f"{panel.interval_note}",
        (
            _MODEL,
            Column("side", "Side"),
            _ISSUES,
            Column("effect", "Effect", "points"),
            *_ENDS,
            Column("over_half", "Moved by more than 50 points", "count"),
        ),
        tuple(rows),
    )


def _unmoved(panel: SurveyScores) -> Iterator[Table]:
    found = {counts.model: unmoved(counts) for counts in panel.main}
    yield Table(
        "unmoved",
        "Issues that no argument moves",
        "Issues on which not even one-sided arguments move a model: its most common stance is the same at the baseline "
        "and with all the arguments of either side (stance), or its pro share is exactly the same in all three "
        "(share). Compared are issues with answers to all three.",
        (
            _MODEL,
            Column("compared", "Issues compared", "count"),
            Column("stance", "Stance unmoved", "count"),
            Column("stance_percent", "Share of issues", "percent"),
            Column("share", "Share unmoved", "count"),
        ),
        tuple(
            (
                model,
                row.compared,
                len(row.stance),
                100 * len(row.stance) / row.compared if row.compared else None,
                len(row.share),
            )
            for model, row in found.items()
        ),
    )
    yield Table(
        "unmoved-issues",
        "Which issues no argument moves",
        "A model and an issue a row, for the table of issues that no argument moves.",
        (_MODEL, Column("issue", "Issue"), Column("stance", "Stance unmoved"), Column("share", "Share unmoved")),
        tuple(
            (model, issue, issue in row.stance, issue in row.share)
            for model, row in found.items()
            for issue in sorted({*row.stance, *row.share})
        ),
        is_long=True,
    )


def _known(changes: np.ndarray) -> int:
    return int((~np.isnan(changes)).sum())


def _points(share: np.floating | np.ndarray) -> float | None:
    return None if np.isnan(share) else 100 * float(share)
