"""Tables of the effect of arguments: table 3, the data of figures 2 and 5, and the issues on which a model is
open-minded by definition 1.

Owns their columns and words. `millstone` computes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....format import count_text
from ....metrics.millstone.openness import SHIFT_ORDER
from ....report.interval_cells import OVER, interval_columns
from ....report.table import MODEL, Column, Table, cells_in, table_of
from .panel import CONTROVERSIAL, SIDES, IssueSetScores, SurveyFigures

_ISSUES = Column("issues", "Issues", "count")
_ENDS = interval_columns("points")


def shift_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _shifts(panel)
    yield _counter_shifts(panel)
    yield _contradictions(panel)
    yield _open_minded(panel)


def _shifts(panel: SurveyFigures) -> Table:
    tests = sum(p is not None for p, _ in panel.shift_tests.values())
    return table_of(
        "figure-2-shifts",
        "Figure 2, data: shift of the pro share",
        "A case's pro share minus the baseline's, in percentage points, the mean over the issues with answers to both. "
        f"{OVER['issues']} The null hypothesis of p is that the mean over issues is 0, by the paired t test; there is "
        "none without an interval, nor for published counts. The adjusted p is Holm's, for the "
        f"{count_text(tests, 'test')} of this table.",
        ((scores.model, case, scores.figures[case]) for scores in panel.moved for case in SHIFT_ORDER),
        {
            MODEL: lambda row: row[0],
            Column("case", "Case"): lambda row: row[1],
            _ISSUES: lambda row: row[2].known,
            Column("shift", "Shift", "points"): lambda row: row[2].mean,
            **cells_in(_ENDS, lambda row: row[2].interval),
            **cells_in(
                (Column("p", "p", "p"), Column("p_adjusted", "p, adjusted", "p")),
                lambda row: panel.shift_tests.get(row[:2], (None, None)),
            ),
        },
    )


def _counter_shifts(panel: SurveyFigures) -> Table:
    def mean(scores: IssueSetScores) -> float | None:
        points = scores.counter_shifts[1]
        return None if math.isnan(points) else points

    return table_of(
        "table-3-counter-shifts",
        "Table 3: shifts against the arguments",
        "How many one-sided cases (an issue and a side) moved a model's pro share against their arguments, however "
        "little, and by how many percentage points on average. Chance alone makes some where a baseline is near 0% or "
        "100%, and so does a baseline that is mostly Other.",
        panel.moved,
        {
            MODEL: lambda scores: scores.model,
            Column("pairs", "Cases compared", "count"): lambda scores: sum(
                scores.figures[f"one-sided-{side}"].known for side in SIDES
            ),
            Column("count", "Count", "count"): lambda scores: scores.counter_shifts[0],
            Column("mean", "Mean", "points"): mean,
        },
    )


def _contradictions(panel: SurveyFigures) -> Table:
    is_on_ten = panel.contradicted is panel.sets.get(CONTROVERSIAL)
    where = "the controversial issues" if is_on_ten else "all issues: none is a controversial one"
    compared = [model.scores for model in panel.models if any(model.scores.figures[side].known for side in SIDES)]
    moved = sum(any(scores.over_half) for scores in compared)
    return table_of(
        "figure-5-contradiction",
        "Figure 5, data: the effect of a single contradicting argument",
        f"On {where}. Side pro: the pro share with clear and convincing pro arguments, one con argument among them, "
        "minus that with pro arguments alone; side con: the same with one pro argument among con arguments. Mean over "
        "issues, in percentage points, and how many issues a single argument moved by more than 50. Over all issues "
        f"that it was asked about, {moved} of {count_text(len(compared), 'model')} has one or more such issues (in the "
        "paper 8 of 9). "
        f"{OVER['issues']}",
        (
            (scores.model, side, scores.figures[side], over_half)
            for scores in panel.contradicted
            for side, over_half in zip(SIDES, scores.over_half, strict=True)
        ),
        {
            MODEL: lambda row: row[0],
            Column("side", "Side"): lambda row: row[1],
            _ISSUES: lambda row: row[2].known,
            Column("effect", "Effect", "points"): lambda row: row[2].mean,
            **cells_in(_ENDS, lambda row: row[2].interval),
            Column("over_half", "Moved by more than 50 points", "count"): lambda row: row[3],
        },
    )


def _open_minded(panel: SurveyFigures) -> Table:
    return table_of(
        "definition-1",
        "Definition 1: the issues that a model is open-minded on",
        "The paper's definition 1: a model is open-minded on an issue if there are two argument configurations S1 and "
        "S2 with M(L(P, S1)) ≠ M(L(P, S2)), where M reads A, B or Other. It names no number of answers. By stance: two "
        "of the six cases (the baseline is one) differ in their most common stance, Other included. By side: one case "
        "is mostly pro and another mostly con. By single answers: two answers to one template in different cases "
        "differ; with many trials hardly an issue is left out. Compared are issues with answers in two cases or more.",
        ((model.name, of, of.compared or None) for model in panel.models for of in [model.open_minded]),
        {
            MODEL: lambda row: row[0],
            Column("compared", "Issues compared", "count"): lambda row: row[1].compared,
            Column("by_stance", "Open-minded, by stance", "count"): lambda row: row[2] and row[1].by_stance,
            Column("percent", "Share of issues", "percent"): lambda row: row[2] and 100 * row[1].by_stance / row[2],
            Column("by_side", "By side", "count"): lambda row: row[2] and row[1].by_side,
            Column("by_answer", "By single answers", "count"): lambda row: row[2] and row[1].by_answer,
        },
    )
