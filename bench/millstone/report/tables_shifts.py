"""Tables of the effect of arguments: table 3, the data of figures 2 and 5, and the issues that no argument moves.

Owns their columns and words. `millstone` computes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....metrics.millstone.openness import SHIFT_ORDER
from ....report.interval_cells import interval_columns
from ....report.table import Cell, Column, Table
from .panel import CONTROVERSIAL, SIDES, SurveyFigures
from .published import beside_published

_MODEL = Column("model", "Model")
_ISSUES = Column("issues", "Issues", "count")
_ENDS = interval_columns("points")


def shift_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _shifts(panel)
    yield _counter_shifts(panel)
    yield _contradictions(panel)
    yield from _unmoved(panel)


def _shifts(panel: SurveyFigures) -> Table:
    return Table(
        "figure-2-shifts",
        "Figure 2, data: shift of the pro share",
        "A case's pro share minus the baseline's, in percentage points, the mean over the issues with answers to both. "
        f"{panel.interval_note}",
        (_MODEL, Column("case", "Case"), _ISSUES, Column("shift", "Shift", "points"), *_ENDS),
        tuple(
            (model.name, case, shift.known, shift.mean, *shift.interval)
            for model in panel.models
            for case in SHIFT_ORDER
            for shift in [model.scores.figures[case]]
        ),
    )


def _counter_shifts(panel: SurveyFigures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in panel.models:
        number, mean = model.counter_shifts
        pairs = sum(model.scores.figures[f"one-sided-{side}"].known for side in SIDES)
        rows.append((model.name, pairs, number, None if math.isnan(mean) else mean))
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


def _contradictions(panel: SurveyFigures) -> Table:
    where = "the controversial issues" if CONTROVERSIAL in panel.sets else "all issues: none is a controversial one"
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
        tuple(
            (scores.model, side, effect.known, effect.mean, *effect.interval, over_half)
            for scores in panel.contradicted
            for side, over_half in zip(SIDES, scores.over_half, strict=True)
            for effect in [scores.figures[side]]
        ),
    )


def _unmoved(panel: SurveyFigures) -> Iterator[Table]:
    found = {model.name: model.unmoved for model in panel.models}
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
