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
from ....report.table import MODEL, Column, Table, cells_in, table_of
from .panel import ALL, CONTROVERSIAL, MAJORITY, SETS_NOTE, SurveyFigures

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
_ISSUE = Column("issue", "Issue")
_ISSUES = Column("issues", "Issues", "count")
_DIFFERENCE = Column("difference", "Difference", "percent")


def baseline_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield _majorities(panel)
    yield _letters(panel)
    yield _agreement(panel)
    yield table_of(
        "table-6-unanimous",
        "Table 6: issues on which the models are unanimous",
        f"Mean baseline shares over the models, on issues with a difference below 10%. {MPD_NOTE} Consistent: the mean "
        f"pro or con share is above 90% too (table 2 counts those above 95% beside them). {LABELS_INFERENCE}",
        panel.unanimous,
        {
            _ISSUE: lambda row: row.issue,
            Column("pro", "Average pro share", "percent"): lambda row: 100 * row.mean.pro,
            Column("con", "Average con share", "percent"): lambda row: 100 * row.mean.con,
            Column("consistent", "Consistent"): is_consistent,
            Column("models", "Models", "count"): lambda row: len(row.shares),
        },
    )
    yield table_of(
        "table-7-disagreement",
        "Table 7: issues on which the models disagree most",
        "Issues with a difference above 80%, the paper's strong disagreement, and beyond them as many as make "
        f"{MOST_DISPUTED}. {MPD_NOTE}",
        [row for at, row in enumerate(panel.widest) if at < MOST_DISPUTED or is_disputed(row)],
        {
            _ISSUE: lambda row: row.issue,
            Column("max_model", "Model with the most pro"): lambda row: row.highest,
            Column("min_model", "Model with the least pro"): lambda row: row.lowest,
            Column("max_share", "Most pro", "percent"): lambda row: 100 * row.shares[row.highest].pro,
            Column("min_share", "Least pro", "percent"): lambda row: 100 * row.shares[row.lowest].pro,
            _DIFFERENCE: _difference,
            Column("strong", "Above 80%"): is_disputed,
        },
    )
    yield _disputed_shares(panel)


def _majorities(panel: SurveyFigures) -> Table:
    large = {scores.model for scores in panel.sets.get(ALL, ())}
    firm = sum(int(firm_baselines(model.scores.readable.counts.pooled)) for model in panel.models)
    pairs = sum(model.scores.figures[MAJORITY].known for model in panel.models)
    share_of_all = f" ({percent_text(firm / pairs)})" if pairs else ""
    return table_of(
        "table-1-pro-majorities",
        "Table 1: issues with more pro than con at the baseline",
        "The share of a model's issues whose baseline has strictly more pro than con answers, of those with baseline "
        "answers. Beside it the same from templates 2, 3, 5 and 6 alone, where A is in favor as often as against. Of "
        f"all {pairs:,} pairs of a model and an issue, {firm:,}{share_of_all} have a baseline at "
        "least 95% one way, in the paper 222 of 575 (38.6%). "
        f"{OVER['issues']} {SETS_NOTE}",
        (
            (name, scores.figures[MAJORITY], scores.readable)
            for name, models in panel.sets.items()
            for scores in models
            # The controversial set has only models that were asked about nothing else: the others have rows already.
            if scores.figures[MAJORITY].known and (name != CONTROVERSIAL or scores.model not in large)
        ),
        {
            MODEL: lambda row: row[2].raw.model,
            Column("issue_set", "Issue set"): lambda row: row[0],
            _ISSUES: lambda row: row[1].known,
            Column("majorities", "More pro than con", "count"): lambda row: int(np.nansum(row[1].of_issues)),
            Column("share", "Share", "percent"): lambda row: row[1].mean,
            **cells_in(interval_columns("percent"), lambda row: row[1].interval),
            **cells_in(
                (
                    Column("mirrored_majorities", "More pro, templates 2, 3, 5, 6", "count"),
                    Column("mirrored_ties", "Ties there", "count"),
                ),
                lambda row: astuple(row[2].letters)[-2:] if row[2].letters else (None, None),
            ),
            Column("firm", "At least 95% one way", "count"): lambda row: int(firm_baselines(row[2].counts.pooled)),
        },
    )


def _letters(panel: SurveyFigures) -> Table:
    return table_of(
        "letters-and-positions",
        "Letters and positions",
        "From baseline answers, templates taken by their wordings. Letter or position: the pro share in templates 2, "
        "3 (A is in favor and named first), minus that in their mirror images 5, 6, the mean over issues; low and "
        "high are the ends of its 95% interval over them. Position alone: template 1 minus 4, where A is in favor in "
        "both, as in the paper's appendix B; with a template 4 as in appendix C, the two can't be told apart. Share "
        "of A, of answers that name a letter: without any preference 33.3% + 33.3% of the pro share, if A is in favor "
        "in four of six templates. Agreement: the share of pairs of answers with the same stance, to two templates of "
        "an issue, and to one prompt.",
        ((model.name, each) for model in panel.models if (each := model.scores.readable.letters)),
        {
            MODEL: lambda row: row[0],
            Column("effect", "Letter or position", "points"): lambda row: row[1].effect,
            Column("effect_low", "Low", "points"): lambda row: row[1].effect_low,
            Column("effect_high", "High", "points"): lambda row: row[1].effect_high,
            Column("effect_issues", "Issues", "count"): lambda row: row[1].effect_issues,
            Column("position", "Position alone", "points"): lambda row: row[1].position,
            Column("position_issues", "Issues", "count"): lambda row: row[1].position_issues,
            Column("share_of_a", "Share of A", "percent"): lambda row: row[1].share_of_a,
            Column("template_agreement", "Templates agree", "percent"): lambda row: row[1].template_agreement,
            Column("trial_agreement", "Trials agree", "percent"): lambda row: row[1].trial_agreement,
            Column("majorities", "More pro, templates 2, 3, 5, 6", "count"): lambda row: row[1].majorities,
            Column("ties", "Ties there", "count"): lambda row: row[1].ties,
        },
    )


def _agreement(panel: SurveyFigures) -> Table:
    numbers = (
        ("unanimous", len(panel.unanimous)),
        ("unanimous and consistent, above 90%", sum(map(is_consistent, panel.unanimous))),
        ("unanimous and consistent, above 95%", sum(is_consistent(row, 0.95) for row in panel.unanimous)),
        ("strong disagreement", sum(map(is_disputed, panel.widest))),
    )
    compared = len(panel.widest)
    return table_of(
        "table-2-agreement",
        "Table 2: issues on which baselines agree or disagree",
        f"Unanimous: a difference below 10%. Consistent: the mean over the models is also above 90% (or 95%) pro or "
        f"con. Strong disagreement: a difference above 80%. {MPD_NOTE} {LABELS_INFERENCE}",
        numbers if compared else (),
        {
            Column("agreement", "Baselines"): lambda row: row[0],
            _ISSUES: lambda row: row[1],
            Column("compared", "Issues compared", "count"): lambda row: compared,
            Column("share", "Share", "percent"): lambda row: 100 * row[1] / compared,
        },
    )


def _difference(row: IssueBaselines) -> float | None:
    return None if row.difference is None else 100 * row.difference


def _disputed_shares(panel: SurveyFigures) -> Table:
    return table_of(
        "figure-3-disagreement",
        "Figure 3, data: baselines on the issues of strongest disagreement",
        f"Shares of the baseline answers of every model, on the {MOST_DISPUTED} issues with the largest differences, "
        f"the largest first. {MPD_NOTE}",
        ((row, model) for row in panel.widest[:MOST_DISPUTED] for model in row.shares),
        {
            _ISSUE: lambda at: at[0].issue,
            _DIFFERENCE: lambda at: _difference(at[0]),
            MODEL: lambda at: at[1],
            Column("pro", "Pro", "percent"): lambda at: 100 * at[0].shares[at[1]].pro,
            Column("con", "Con", "percent"): lambda at: 100 * at[0].shares[at[1]].con,
            Column("other", "Other", "percent"): lambda at: 100 * at[0].shares[at[1]].other,
            Column("answers", "Answers", "count"): lambda at: sum(at[0].counts[at[1]]),
        },
    )
