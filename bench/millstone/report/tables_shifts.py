"""Tables of the effect of arguments: table 3, the data of figures 2 and 5, and the issues on which a model is
open-minded by definition 1.

Owns their columns and words. `millstone` computes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....format import count_text
from ....metrics.millstone.open_minded import OpenMindedIssues
from ....metrics.millstone.openness import SHIFT_ORDER
from ....report.interval_cells import OVER, interval_columns
from ....report.table import Cell, Cells, Column, Table, rows_of
from .panel import CONTROVERSIAL, SIDES, SurveyFigures
from .published import beside_published

_MODEL = Column("model", "Model")
_ISSUES = Column("issues", "Issues", "count")
_ENDS = interval_columns("points")

_DEFINITION_1: Cells[OpenMindedIssues] = {
    Column("compared", "Issues compared", "count"): lambda of: of.compared,
    Column("by_stance", "Open-minded, by stance", "count"): lambda of: of.by_stance if of.compared else None,
    Column("percent", "Share of issues", "percent"): lambda of: (
        100 * of.by_stance / of.compared if of.compared else None
    ),
    Column("by_side", "By side", "count"): lambda of: of.by_side if of.compared else None,
    Column("by_answer", "By single answers", "count"): lambda of: of.by_answer if of.compared else None,
}


def shift_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _shifts(panel)
    yield _counter_shifts(panel)
    yield _contradictions(panel)
    yield _open_minded(panel)


def _shifts(panel: SurveyFigures) -> Table:
    tests = sum(p is not None for p, _ in panel.shift_tests.values())
    return Table(
        "figure-2-shifts",
        "Figure 2, data: shift of the pro share",
        "A case's pro share minus the baseline's, in percentage points, the mean over the issues with answers to both. "
        f"{OVER['issues']} The null hypothesis of p is that the mean over issues is 0, by the paired t test; there is "
        "none without an interval, nor for published counts. The adjusted p is Holm's, for the "
        f"{count_text(tests, 'test')} of this table.",
        (
            _MODEL,
            Column("case", "Case"),
            _ISSUES,
            Column("shift", "Shift", "points"),
            *_ENDS,
            Column("p", "p", "p"),
            Column("p_adjusted", "p, adjusted", "p"),
        ),
        tuple(
            (
                *(scores.model, case, shift.known, shift.mean, *shift.interval),
                *panel.shift_tests.get((scores.model, case), (None, None)),
            )
            for scores in panel.moved
            for case in SHIFT_ORDER
            for shift in [scores.figures[case]]
        ),
    )


def _counter_shifts(panel: SurveyFigures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for scores in panel.moved:
        number, mean = scores.counter_shifts
        pairs = sum(scores.figures[f"one-sided-{side}"].known for side in SIDES)
        rows.append((scores.model, pairs, number, None if math.isnan(mean) else mean))
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
    is_on_ten = panel.contradicted is panel.sets.get(CONTROVERSIAL)
    where = "the controversial issues" if is_on_ten else "all issues: none is a controversial one"
    compared = [model.scores for model in panel.models if any(model.scores.figures[side].known for side in SIDES)]
    moved = sum(any(scores.over_half) for scores in compared)
    return Table(
        "figure-5-contradiction",
        "Figure 5, data: the effect of a single contradicting argument",
        f"On {where}. Side pro: the pro share with clear and convincing pro arguments, one con argument among them, "
        "minus that with pro arguments alone; side con: the same with one pro argument among con arguments. Mean over "
        "issues, in percentage points, and how many issues a single argument moved by more than 50. Over all issues "
        f"that it was asked about, {moved} of {count_text(len(compared), 'model')} has one or more such issues (in the "
        "paper 8 of 9). "
        f"{OVER['issues']}",
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


def _open_minded(panel: SurveyFigures) -> Table:
    return Table(
        "definition-1",
        "Definition 1: the issues that a model is open-minded on",
        "The paper's definition 1: a model is open-minded on an issue if there are two argument configurations S1 and "
        "S2 with M(L(P, S1)) ≠ M(L(P, S2)), where M reads A, B or Other. It names no number of answers. By stance: two "
        "of the six cases (the baseline is one) differ in their most common stance, Other included. By side: one case "
        "is mostly pro and another mostly con. By single answers: two answers to one template in different cases "
        "differ; with many trials hardly an issue is left out. Compared are issues with answers in two cases or more.",
        (_MODEL, *_DEFINITION_1),
        rows_of(_DEFINITION_1, (((model.name,), model.open_minded) for model in panel.models)),
    )
