"""Tables of the answers themselves: counts in the authors' columns, refusals, and missing answers.

Owns their columns and words. Knows no score.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....metrics.millstone.coverage import SILENCE_NOTES
from ....metrics.millstone.openness import CASES, STANCES
from ....report.table import Cell, Column, Table
from .panel import SurveyFigures
from .published import beside_published

_MODEL = Column("model", "Model")
_ISSUE = Column("issue", "Issue")
_CASE = Column("case", "Case")
_SPLIT = (Column("pro", "Pro", "percent"), Column("con", "Con", "percent"), Column("other", "Other", "percent"))


def cell_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _often_refused(panel)
    yield _refusals(panel)
    yield from _missing(panel)
    yield _counts(panel)


def coverage_table(panel: SurveyFigures) -> Table:
    return Table(
        "answers-read",
        "Answers that were cut off or take no side",
        "How many of a model's answers ended at max_tokens, and how many take no side (Other), refusals among them. "
        f"{SILENCE_NOTES[panel.survey.silence]}",
        (
            _MODEL,
            Column("answers", "Answers", "count"),
            Column("cut", "Cut off", "count"),
            Column("cut_percent", "Cut off", "percent"),
            Column("other", "Other", "count"),
            Column("other_percent", "Other", "percent"),
            Column("baseline_other_percent", "Other, baseline", "percent"),
            Column("scored", "Issues with a score", "count"),
            Column("unscored", "Without", "count"),
        ),
        tuple(
            (
                model.name,
                found.answers,
                found.cut,
                _percent_of(found.cut, found.answers),
                found.other,
                _percent_of(found.other, found.answers),
                _percent_of(found.baseline_other, found.baseline),
                found.scored,
                len(found.unscored),
            )
            for model in panel.models
            for found in [model.coverage]
        ),
    )


def _percent_of(part: int | None, whole: int) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def _often_refused(panel: SurveyFigures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in panel.models:
        for found in model.often_refused:
            for case, split in (("baseline", found.baseline), ("balanced", found.balanced)):
                shares = [None] * 3 if split is None else [100 * share for share in split]
                rows.append((model.name, found.issue, case, *shares))
    return beside_published(
        "figure-7-refusals",
        "Figure 7, data: issues that a model takes no side on",
        "Issues with more than 30% Other among a model's baseline answers, the most first, and what becomes of them "
        "with balanced arguments. Other is every answer that takes no side; the table of refusals tells how many of "
        "them the provider marked as refused.",
        (_MODEL, _ISSUE, _CASE, *_SPLIT),
        rows,
    )


def _refusals(panel: SurveyFigures) -> Table:
    return beside_published(
        "refusals",
        "Baseline answers without a side",
        "Means over issues of the share of baseline answers that are Other, and of those that were refused. The last "
        "row of this run is the mean over the models but the one with the largest share of Other, as the paper's 0.2% "
        "leaves out Claude Opus 4.",
        (
            _MODEL,
            Column("issues", "Issues", "count"),
            Column("other", "Other", "percent"),
            Column("refused", "Refused", "percent"),
            Column("often", "Issues above 30% Other", "count"),
        ),
        [
            *(
                (model.name, mean.issues, _percent(mean.other), _percent(mean.refused), len(model.often_refused))
                for model in panel.models
                for mean in [model.refusals]
            ),
            *_refusals_of_others(panel),
        ],
    )


def _refusals_of_others(panel: SurveyFigures) -> Iterator[tuple[Cell, ...]]:
    """Yields the row of all models but the one that takes no side most often, where there are two models or more."""
    shares = sorted(model.refusals.other for model in panel.models if model.refusals.other is not None)
    if others := shares[:-1]:
        yield ("all models but the one with the most", None, 100 * sum(others) / len(others), None, None)


def _missing(panel: SurveyFigures) -> Iterator[Table]:
    yield Table(
        "completeness",
        "Answers expected and missing",
        "Every prompt of the grid that a model was to be asked has one answer, or it is missing. Shares are computed "
        "from the answers there are; a case without any adds nothing to a score while its weight stays in it.",
        (
            _MODEL,
            Column("expected", "Expected", "count"),
            Column("answered", "Answered", "count"),
            Column("missing", "Missing", "count"),
            Column("share", "Share missing", "percent"),
            Column("beyond", "Beyond the grid", "count"),
        ),
        tuple(
            (
                model,
                found.expected,
                found.answered,
                found.missing,
                100 * found.missing / found.expected if found.expected else None,
                found.beyond,
            )
            for model, found in panel.gaps.items()
        ),
    )
    yield Table(
        "missing-by-case",
        "Missing answers, by issue and case",
        "A model, an issue and a case a row, where any answer is missing.",
        (_MODEL, _ISSUE, _CASE, Column("missing", "Missing", "count")),
        tuple(
            (model, issue, case, number)
            for model, found in panel.gaps.items()
            for (issue, case), number in found.by_case.items()
        ),
        is_long=True,
    )


def _counts(panel: SurveyFigures) -> Table:
    return Table(
        "counts",
        "Counts of answers",
        "How many answers of a model took each stance, by issue and case, in the columns of the authors' published "
        "counts: `millstream score --counts` reads this file. Zeros are left out.",
        (
            _ISSUE,
            Column("issue_stance", "Stance"),
            Column("count", "Answers", "count"),
            _CASE,
            _MODEL,
        ),
        tuple(
            (issue, stance, int(number), case, counts.model)
            for counts in (model.raw for model in panel.models)
            for issue, cases in zip(counts.issues, counts.pooled, strict=True)
            for case, numbers in zip(CASES, cases, strict=True)
            for stance, number in zip(STANCES, numbers, strict=True)
            if number
        ),
        is_long=True,
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
