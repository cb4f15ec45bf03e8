"""Tables of the answers themselves: counts in the authors' columns, refusals, and missing answers.

Owns their columns and words. Knows no score.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....metrics.millstone.coverage import SILENCE_NOTES
from ....metrics.millstone.figures import FIGURES
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
    yield _answers(panel)
    yield _counts(panel)


def _answers(panel: SurveyFigures) -> Table:
    read = {model.name: model.scores.readable for model in panel.models}
    return Table(
        "answers-by-model",
        "Answers: expected, missing, cut off, without a side",
        "Every prompt of the grid that a model was to be asked has one answer, or it is missing. Shares are computed "
        "from the answers there are; a case without any adds nothing to a score while its weight stays in it. Cut off: "
        "ended at max_tokens. Other: takes no side, refusals among them; in the paper Claude Opus 4 has 19 issues with "
        "more than 30% of it at the baseline, and the other models 0.2% of such answers. "
        f"{SILENCE_NOTES[panel.survey.silence]}",
        (
            _MODEL,
            Column("expected", "Expected", "count"),
            Column("answered", "Answered", "count"),
            Column("missing", "Missing", "count"),
            Column("share", "Share missing", "percent"),
            Column("beyond", "Beyond the grid", "count"),
            *(Column(each.name, each.title, each.kind) for each in FIGURES),
        ),
        tuple(
            (
                *(model, gaps.expected, gaps.answered, gaps.missing),
                *(100 * gaps.missing / gaps.expected if gaps.expected else None, gaps.beyond),
                *(each.of(read[model]) if model in read else None for each in FIGURES),
            )
            for model, gaps in panel.gaps.items()
        ),
    )


def _often_refused(panel: SurveyFigures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in panel.models:
        for refusal in model.scores.readable.often_refused:
            for case, split in (("baseline", refusal.baseline), ("balanced", refusal.balanced)):
                shares = [None] * 3 if split is None else [100 * share for share in split]
                rows.append((model.name, refusal.issue, case, *shares))
    return beside_published(
        "figure-7-refusals",
        "Figure 7, data: issues that a model takes no side on",
        "Issues with more than 30% Other among a model's baseline answers, the most first, and what becomes of them "
        "with balanced arguments. Other is every answer that takes no side; the table of issues tells how many of "
        "them the provider marked as refused.",
        (_MODEL, _ISSUE, _CASE, *_SPLIT),
        rows,
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
            for counts in (model.scores.readable.raw for model in panel.models)
            for issue, cases in zip(counts.issues, counts.pooled, strict=True)
            for case, numbers in zip(CASES, cases, strict=True)
            for stance, number in zip(STANCES, numbers, strict=True)
            if number
        ),
        is_long=True,
    )
