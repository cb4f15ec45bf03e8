"""Tables of where models stand before any argument: tables 1, 2, 6 and 7, figure 3's data.

Owns their columns and words. `baselines` defines unanimous, consistent and disputed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple

import numpy as np

from ....format import percent_text
from ....metrics.millstone.baselines import IssueBaselines, is_consistent, is_disputed
from ....metrics.millstone.openness import firm_baselines
from ....report.interval_cells import OVER, interval_columns
from ....report.table import Cell, Column, Table
from .panel import ALL, CONTROVERSIAL, MAJORITY, SETS_NOTE, SurveyFigures
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


def baseline_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _majorities(panel)
    yield _letters(panel)
    yield _agreement(panel)
    yield beside_published(
        "table-6-unanimous",
        "Table 6: issues on which the models are unanimous",
        f"Mean baseline shares over the models, on issues with a difference below 10%. {MPD_NOTE} Consistent: the mean "
        f"pro or con share is above 90% too (table 2 counts those above 95% beside them). {LABELS_INFERENCE}",
        (
            _ISSUE,
            Column("pro", "Average pro share", "percent"),
            Column("con", "Average con share", "percent"),
            Column("consistent", "Consistent"),
            Column("models", "Models", "count"),
        ),
        [
            (row.issue, 100 * row.mean.pro, 100 * row.mean.con, is_consistent(row), len(row.shares))
            for row in panel.unanimous
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
        [_extremes(row) for at, row in enumerate(panel.widest) if at < MOST_DISPUTED or is_disputed(row)],
    )
    yield _disputed_shares(panel)


def _majorities(panel: SurveyFigures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    large = {scores.model for scores in panel.sets.get(ALL, ())}
    for name, models in panel.sets.items():
        for scores in models:
            share = scores.figures[MAJORITY]
            # The controversial set has only models that were asked about nothing else: the others have rows already.
            if share.known and (name != CONTROVERSIAL or scores.model not in large):
                majorities = int(np.nansum(share.of_issues))
                mirrored = astuple(figures)[-2:] if (figures := scores.readable.letters) else (None, None)
                firm = int(firm_baselines(scores.readable.counts.pooled))
                rows.append((scores.model, name, share.known, majorities, share.mean, *share.interval, *mirrored, firm))
    firm = sum(int(firm_baselines(model.scores.readable.counts.pooled)) for model in panel.models)
    pairs = sum(model.scores.figures[MAJORITY].known for model in panel.models)
    share_of_all = f" ({percent_text(firm / pairs)})" if pairs else ""
    return beside_published(
        "table-1-pro-majorities",
        "Table 1: issues with more pro than con at the baseline",
        "The share of a model's issues whose baseline has strictly more pro than con answers, of those with baseline "
        "answers. Beside it the same from templates 2, 3, 5 and 6 alone, where A is in favor as often as against. Of "
        f"all {pairs:,} pairs of a model and an issue, {firm:,}{share_of_all} have a baseline at "
        "least 95% one way, in the paper 222 of 575 (38.6%). "
        f"{OVER['issues']} {SETS_NOTE}",
        (
            _MODEL,
            Column("issue_set", "Issue set"),
            _ISSUES,
            Column("majorities", "More pro than con", "count"),
            Column("share", "Share", "percent"),
            *interval_columns("percent"),
            Column("mirrored_majorities", "More pro, templates 2, 3, 5, 6", "count"),
            Column("mirrored_ties", "Ties there", "count"),
            Column("firm", "At least 95% one way", "count"),
        ),
        rows,
    )


def _letters(panel: SurveyFigures) -> Table:
    return Table(
        "letters-and-positions",
        "Letters and positions",
        "From baseline answers, templates taken by their wordings. Letter or position: the pro share in templates 2, "
        "3 (A is in favor and named first), minus that in their mirror images 5, 6, the mean over issues; low and "
        "high are the ends of its 95% interval over them. Position alone: template 1 minus 4, where A is in favor in "
        "both, as in the paper's appendix B; with a template 4 as in appendix C, the two can't be told apart. Share "
        "of A, of answers that name a letter: without any preference 33.3% + 33.3% of the pro share, if A is in favor "
        "in four of six templates. Agreement: the share of pairs of answers with the same stance, to two templates of "
        "an issue, and to one prompt.",
        (
            _MODEL,
            Column("effect", "Letter or position", "points"),
            Column("effect_low", "Low", "points"),
            Column("effect_high", "High", "points"),
            Column("effect_issues", "Issues", "count"),
            Column("position", "Position alone", "points"),
            Column("position_issues", "Issues", "count"),
            Column("share_of_a", "Share of A", "percent"),
            Column("template_agreement", "Templates agree", "percent"),
            Column("trial_agreement", "Trials agree", "percent"),
            Column("majorities", "More pro, templates 2, 3, 5, 6", "count"),
            Column("ties", "Ties there", "count"),
        ),
        tuple((model.name, *astuple(figures)) for model in panel.models if (figures := model.scores.readable.letters)),
    )


def _agreement(panel: SurveyFigures) -> Table:
    numbers = (
        ("unanimous", len(panel.unanimous)),
        ("unanimous and consistent, above 90%", sum(map(is_consistent, panel.unanimous))),
        ("unanimous and consistent, above 95%", sum(is_consistent(row, 0.95) for row in panel.unanimous)),
        ("strong disagreement", sum(map(is_disputed, panel.widest))),
    )
    compared = len(panel.widest)
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


def _disputed_shares(panel: SurveyFigures) -> Table:
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
            for row in panel.widest[:MOST_DISPUTED]
            for model, shares in row.shares.items()
        ),
    )
