"""Tables of the figures that the paper states in its text alone, in sections 1 and 6, beside a run's own.

Owns their columns and words. Their figures are the panel's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from statistics import median

from ....report.table import Cell, Column, Table
from .likeness import rank_kind
from .panel import CONTROVERSIAL, SIDES, IssueSetScores, SurveyFigures
from .published import beside_published

_MODEL = Column("model", "Model")


def paper_text_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _leader(panel)
    yield _single_argument(panel)
    yield _ranges(panel)


def _leader(panel: SurveyFigures) -> Table:
    groups: dict[Hashable, list[IssueSetScores]] = {}
    for scores in panel.sets.get(CONTROVERSIAL, ()):
        if scores.readable.is_ranked:
            key = (scores.readable.ranked_on, rank_kind(panel.survey, scores.model))
            groups.setdefault(key, []).append(scores)
    return beside_published(
        "most-open-minded",
        "How far the most open-minded model is ahead",
        "By how many percent the highest OM of table 5 is above the median of the models that were ranked with it, and "
        "above the next one. The paper prints two values for Grok 3 above the median, 39.2% in section 1 and 44.8% in "
        "section 6.2. Its own table 5 gives 39.2% above the median (10.58 to 7.60) and 12.6% above the next model "
        "(10.58 to 9.40): the 44.8% and the 17.7% of section 6.2 do not follow from it.",
        (
            _MODEL,
            Column("place", "Place in the paper"),
            Column("models", "Models", "count"),
            Column("above_median", "Above the median, %", "amount"),
            Column("above_next", "Above the next, %", "amount"),
        ),
        [row for group in groups.values() if (row := _lead(group))],
    )


def _lead(group: list[IssueSetScores]) -> tuple[Cell, ...] | None:
    """Returns the row of the first of these models; None with one model, or if its score is 0."""
    scores = {each.model: mean for each in group if (mean := each.figures["om"].mean) is not None}
    ordered = sorted(scores.values(), reverse=True)
    if len(ordered) < 2 or not ordered[0]:
        return None
    first = max(scores, key=lambda model: scores[model])
    middle = median(ordered)
    above = [100 * (ordered[0] / other - 1) if other else None for other in (middle, ordered[1])]
    return (first, None, len(ordered), *above)


def _single_argument(panel: SurveyFigures) -> Table:
    compared = [model.scores for model in panel.models if any(model.scores.figures[side].known for side in SIDES)]
    moved = [any(scores.over_half) for scores in compared]
    return beside_published(
        "single-argument",
        "Models that a single argument moves",
        "How many models have an issue that a single contradicting argument (the difference of figure 5) moves by more "
        "than 50 points, over all issues that each was asked about.",
        (
            Column("models", "Models", "count"),
            Column("moved", "With such an issue", "count"),
        ),
        [(len(moved), sum(moved))] if moved else [],
    )


def _ranges(panel: SurveyFigures) -> Table:
    found: dict[str, list[tuple[float, str]]] = {}
    names = panel.correlations.models
    for (first, second), each in panel.correlations.pairs.items():
        if each.r is not None and panel.models[first].answers.pair.model != panel.models[second].answers.pair.model:
            found.setdefault(names[first], []).append((each.r, names[second]))
            found.setdefault(names[second], []).append((each.r, names[first]))
    return beside_published(
        "figure-6-ranges",
        "Figure 6: a model's least and greatest correlation",
        "Of each model with any other: the ends of its row in figure 6. In the paper Gemini 2.0 Flash stands apart, "
        "with 0 to 0.17; the authors' script read the prompt in place of its answer, so that may be an artefact.",
        (
            _MODEL,
            Column("pairs", "Other models", "count"),
            Column("least", "Least", "correlation"),
            Column("least_with", "With"),
            Column("greatest", "Greatest", "correlation"),
            Column("greatest_with", "With"),
        ),
        [(model, len(found[model]), *min(found[model]), *max(found[model])) for model in names if model in found],
    )
