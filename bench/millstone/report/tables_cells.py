"""Tables of the answers themselves: counts in the authors' columns, refusals, and missing answers.

Owns their columns and words. Knows no score.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....metrics.millstone.coverage import SILENCE_NOTES
from ....metrics.millstone.figures import FIGURES
from ....metrics.millstone.openness import CASES, STANCES
from ....report.table import MODEL, Column, Table, cells_in, table_of
from .panel import SurveyFigures

_ISSUE = Column("issue", "Issue")
_CASE = Column("case", "Case")
_SPLIT = (Column("pro", "Pro", "percent"), Column("con", "Con", "percent"), Column("other", "Other", "percent"))


def cell_tables(panel: SurveyFigures) -> Iterator[Table]:
    read = {model.name: model.scores.readable for model in panel.models}
    yield table_of(
        "figure-7-refusals",
        "Figure 7, data: issues that a model takes no side on",
        "Issues with more than 30% Other among a model's baseline answers, the most first, and what becomes of them "
        "with balanced arguments. Other is every answer that takes no side; the table of issues tells how many of "
        "them the provider marked as refused.",
        (
            (model, refusal.issue, case, split)
            for model, counts in read.items()
            for refusal in counts.often_refused
            for case, split in (("baseline", refusal.baseline), ("balanced", refusal.balanced))
        ),
        {
            MODEL: lambda row: row[0],
            _ISSUE: lambda row: row[1],
            _CASE: lambda row: row[2],
            **cells_in(_SPLIT, lambda row: [None] * 3 if row[3] is None else [100 * share for share in row[3]]),
        },
    )
    yield table_of(
        "answers-by-model",
        "Answers: expected, missing, cut off, without a side",
        "Every prompt of the grid that a model was to be asked has one answer, or it is missing. Shares are computed "
        "from the answers there are; a case without any adds nothing to a score while its weight stays in it. Cut off: "
        "ended at max_tokens. Other: takes no side, refusals among them; in the paper Claude Opus 4 has 19 issues with "
        "more than 30% of it at the baseline, and the other models 0.2% of such answers. "
        f"{SILENCE_NOTES[panel.survey.silence]}",
        ((model, gaps, read.get(model)) for model, gaps in panel.gaps.items()),
        {
            MODEL: lambda row: row[0],
            Column("expected", "Expected", "count"): lambda row: row[1].expected,
            Column("answered", "Answered", "count"): lambda row: row[1].answered,
            Column("missing", "Missing", "count"): lambda row: row[1].missing,
            Column("share", "Share missing", "percent"): lambda row: (
                100 * row[1].missing / row[1].expected if row[1].expected else None
            ),
            Column("beyond", "Beyond the grid", "count"): lambda row: row[1].beyond,
            **cells_in(
                (Column(each.name, each.title, each.kind) for each in FIGURES),
                lambda row: [None if row[2] is None else each.of(row[2]) for each in FIGURES],
            ),
        },
    )
    yield table_of(
        "counts",
        "Counts of answers",
        "How many answers of a model took each stance, by issue and case, in the columns of the authors' published "
        "counts: `millstream score --counts` reads this file. Zeros are left out.",
        (
            (issue, stance, int(number), case, model)
            for model, counts in read.items()
            for issue, cases in zip(counts.raw.issues, counts.raw.pooled, strict=True)
            for case, numbers in zip(CASES, cases, strict=True)
            for stance, number in zip(STANCES, numbers, strict=True)
            if number
        ),
        cells_in(
            (_ISSUE, Column("issue_stance", "Stance"), Column("count", "Answers", "count"), _CASE, MODEL),
            lambda row: row,
        ),
        is_long=True,
    )
