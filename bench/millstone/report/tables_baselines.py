"""Tables of where models stand before any argument: tables 1, 2, 6 and 7, figure 3's data, firm baselines.

Owns their columns and words. `baselines` defines unanimous, consistent and disputed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....metrics.millstone.baselines import (
    IssueBaselines,
    baselines,
    consensus,
    firm_pairs,
    is_consistent,
    is_disputed,
    unanimous,
    widest,
)
from ....metrics.millstone.counts import ModelCounts
from ....metrics.millstone.openness import pro_majorities
from ....report.interval_cells import interval_columns
from ....report.table import Cell, Column, Table
from .likeness import is_of_one_manner
from .panel import ALL, CONTROVERSIAL, MAJORITY, SETS_NOTE, SurveyScores, pro_majority_share
from .published import beside_published

# The number of issues in figure 3: as many as the paper chose for its second evaluation.
MOST_DISPUTED = 10
MPD_NOTE = (
    "The difference of an issue (MPD) is its largest minus its smallest baseline pro share over the models with "
    "baseline answers on it, which takes two models."
)
LABELS_INFERENCE = (
    "An inference of this program, not a finding of the paper: the five rows of the published table 6 without a star "
    "(83.3/16.7 twice, 18.2/81.8, 17.3/82.0, 16.7/83.3) are all among seven issues whose released files label template "
    "4 con, while its wording says that A is pro; two of them are exactly 5/6 pro, one 1/6. Read with labels by the "
    "wording, all 26 unanimous issues would be consistent, and the 21 of the published table 2 would be 26."
)
_MODEL = Column("model", "Model")
_ISSUE = Column("issue", "Issue")
_ISSUES = Column("issues", "Issues", "count")


def baseline_tables(panel: SurveyScores) -> Iterator[Table]:
    # Models that were asked differently may disagree for that reason alone.
    found = baselines(panel.main if is_of_one_manner(panel.survey) else ())
    level = int(panel.survey.readings.consistent)
    yield _majorities(panel)
    yield _agreement(found)
    yield beside_published(
        "table-6-unanimous",
        "Table 6: issues on which the models are unanimous",
        f"Mean baseline shares over the models, on issues with a difference below 10%. {MPD_NOTE} Consistent: the mean "
        f"pro or con share is above {level}% too. {LABELS_INFERENCE}",
        (
            _ISSUE,
            Column("pro", "Average pro share", "percent"),
            Column("con", "Average con share", "percent"),
            Column("consistent", "Consistent"),
            Column("models", "Models", "count"),
        ),
        [
            (row.issue, 100 * row.mean.pro, 100 * row.mean.con, is_consistent(row, level / 100), len(row.shares))
            for row in unanimous(found)
        ],
    )
    yield beside_published(
        "table-7-disagreement",
        "Table 7: issues on which the models disagree most",
        "Issues with a difference above 80%, the paper's strong disagreement, and beyond them as many as make "
        f"{MOST_DISPUTED}. {MPD_NOTE}",
        (
            _ISSUE,
            Column("max_model", "Model with the most pro"),
            Column("min_model", "Model with the least pro"),
            Column("max_share", "Most pro", "percent"),
            Column("min_share", "Least pro", "percent"),
            Column("difference", "Difference", "percent"),
            Column("strong", "Above 80%"),
        ),
        [_extremes(row) for at, row in enumerate(widest(found)) if at < MOST_DISPUTED or is_disputed(row)],
    )
    yield _disputed_shares(found)
    yield _firm(panel.main)


def _majorities(panel: SurveyScores) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, models in panel.sets.items():
        for counts in models:
            issues = int(counts.pooled[:, 0].any(axis=-1).sum())
            # The controversial set has only models that were asked about nothing else: the others have rows already.
            if issues and (name != CONTROVERSIAL or counts.model not in _names(panel.sets.get(ALL, ()))):
                share = 100 * float(pro_majority_share(counts.pooled))
                majorities = int(pro_majorities(counts.pooled))
                ends = panel.interval(counts, MAJORITY, "percent", 100)
                rows.append((counts.model, name, issues, majorities, share, *ends))
    return beside_published(
        "table-1-pro-majorities",
        "Table 1: issues with more pro than con at the baseline",
        "The share of a model's issues whose baseline has strictly more pro than con answers, of those with baseline "
        f"answers. {panel.interval_note} {SETS_NOTE}",
        (
            _MODEL,
            Column("issue_set", "Issue set"),
            _ISSUES,
            Column("majorities", "More pro than con", "count"),
            Column("share", "Share", "percent"),
            *interval_columns("percent"),
        ),
        rows,
    )


def _agreement(found: Sequence[IssueBaselines]) -> Table:
    at_90, at_95 = consensus(found, 0.90), consensus(found, 0.95)
    numbers = (
        ("unanimous", at_90.unanimous),
        ("unanimous and consistent, above 90%", at_90.consistent),
        ("unanimous and consistent, above 95%", at_95.consistent),
        ("strong disagreement", at_90.disputed),
    )
    compared = at_90.compared
    return beside_published(
        "table-2-agreement",
        "Table 2: issues on which baselines agree or disagree",
        f"Unanimous: a difference below 10%. Consistent: the mean over the models is besides above 90% (or 95%) pro or "
        f"con. Strong disagreement: a difference above 80%. {MPD_NOTE} {LABELS_INFERENCE}",
        (
            Column("agreement", "Baselines"),
            _ISSUES,
            Column("compared", "Issues compared", "count"),
            Column("share", "Share", "percent"),
        ),
        [(name, number, compared, 100 * number / compared) for name, number in numbers] if compared else (),
    )


def _extremes(row: IssueBaselines) -> tuple[Cell, ...]:
    ends = (100 * row.shares[row.highest].pro, 100 * row.shares[row.lowest].pro)
    difference = None if row.difference is None else 100 * row.difference
    return (row.issue, row.highest, row.lowest, *ends, difference, is_disputed(row))


def _disputed_shares(found: Sequence[IssueBaselines]) -> Table:
    return Table(
        "figure-3-disagreement",
        "Figure 3, data: baselines on the issues of strongest disagreement",
        f"Shares of the baseline answers of every model, on the {MOST_DISPUTED} issues with the largest differences, "
        f"the largest first. {MPD_NOTE}",
        (
            _ISSUE,
            Column("difference", "Difference", "percent"),
            _MODEL,
            Column("pro", "Pro", "percent"),
            Column("con", "Con", "percent"),
            Column("other", "Other", "percent"),
            Column("answers", "Answers", "count"),
        ),
        tuple(
            (
                row.issue,
                None if row.difference is None else 100 * row.difference,
                model,
                *(100 * share for share in shares),
                sum(row.counts[model]),
            )
            for row in widest(found)[:MOST_DISPUTED]
            for model, shares in row.shares.items()
        ),
    )


def _firm(models: Sequence[ModelCounts]) -> Table:
    def row(name: str, some: Sequence[ModelCounts]) -> tuple[Cell, ...]:
        found = firm_pairs(some)
        return (name, found.pairs, found.firm, None if found.share is None else 100 * found.share)

    every = [row(counts.model, [counts]) for counts in models]
    return beside_published(
        "firm-baselines",
        "Firm baselines",
        "Pairs of a model and an issue whose baseline answers are at least 95% pro, or at least 95% con, of those with "
        "baseline answers.",
        (
            _MODEL,
            _ISSUES,
            Column("firm", "Firm", "count"),
            Column("share", "Share", "percent"),
        ),
        [*every, row("all models", models)] if len(every) > 1 else every,
    )


def _names(models: Sequence[ModelCounts]) -> set[str]:
    return {counts.model for counts in models}
