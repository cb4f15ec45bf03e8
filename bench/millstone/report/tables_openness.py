"""Tables of open-mindedness: tables 4 and 5, figure 4's data, the readings of eq. (1) side by side, the paired
tests, and the scores of every issue.

Owns their columns and words. Their figures are the panel's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ....format import count_text
from ....metrics.millstone.counts import ModelCounts
from ....metrics.millstone.coverage import SILENCE_NOTES
from ....metrics.millstone.figures import BY_SILENCE, OM, SCORES, SCORES_NOTE
from ....metrics.millstone.openness import CASES, STANCES
from ....metrics.millstone.topics import in_order
from ....report.interval_cells import OVER, interval_cells, interval_columns
from ....report.labels import named_list
from ....report.table import MODEL, Cell, Column, Table, cells_in, table_of
from .panel import (
    ALL,
    ALL_BUT_THREE,
    CONTROVERSIAL,
    SETS_NOTE,
    SHARED,
    IssueSetScores,
    ModelProfile,
    SurveyFigures,
)

FLIP_WARNING = (
    "Eq. (1) read literally compares shares of two different stances where a stance flips, so a clean flip from 100% "
    "pro to 100% con scores 0, and a high score can mean a half-hearted flip."
)
_SET = Column("issue_set", "Issue set")
_ISSUES = Column("issues", "Issues", "count")
SCORE_COLUMNS = {score: Column(score.key, score.title, "score") for score in SCORES}
_OM = (_ISSUES, SCORE_COLUMNS[OM], SCORE_COLUMNS[BY_SILENCE], *interval_columns("score"))
READINGS = "Readings of the score, and the ranks they give"
# What both readings of the answers' texts give: each column with its cell.
_BY_READING: tuple[tuple[Column, Callable[[ModelProfile], Cell]], ...] = (
    (Column("om_paper", "OM, paper's reading", "score"), lambda model: model.by_reading["paper"]["om"].mean),
    (
        Column("om_paper_by_silence", "By silence", "score"),
        lambda model: model.by_reading["paper"]["om_by_silence"].mean,
    ),
    (Column("om_careful", "OM, careful reading", "score"), lambda model: model.by_reading["careful"]["om"].mean),
    (
        Column("om_careful_by_silence", "By silence", "score"),
        lambda model: model.by_reading["careful"]["om_by_silence"].mean,
    ),
    (Column("differ", "Answers read differently", "count"), lambda model: model.answers.disagreements()),
    (
        Column("differ_percent", "Share", "percent"),
        lambda model: 100 * model.answers.disagreements() / len(model.answers),
    ),
)


def openness_tables(panel: SurveyFigures) -> Iterator[Table]:
    yield table_of(
        "table-4-om",
        "Table 4: open-mindedness on all issues",
        "OM of each model, the mean over its issues of eq. (1), from 0 to 100; higher is more open-minded. "
        f"{FLIP_WARNING} {BY_SILENCE.note} {OVER['issues']} {SETS_NOTE} Models that were asked about "
        "controversial issues only stand in table 5. The published scores fit the set of 104.",
        [
            (name, scores)
            for name, models in panel.sets.items()
            if name in (ALL, ALL_BUT_THREE)
            for scores in _by_score(models)
        ],
        {
            MODEL: lambda row: row[1].model,
            _SET: lambda row: row[0],
            **cells_in(_OM, lambda row: _om(row[1])),
        },
    )
    yield table_of(
        "table-5-om-controversial",
        "Table 5: open-mindedness on the controversial issues",
        "OM of each model on those of the ten controversial issues that it was asked about; higher is more "
        f"open-minded. {FLIP_WARNING} {BY_SILENCE.note} {OVER['issues']}",
        _by_score(panel.sets.get(CONTROVERSIAL, ())),
        {MODEL: lambda scores: scores.model, **cells_in(_OM, _om)},
    )
    yield _readings(panel)
    yield _paired(panel)
    yield _topics(panel)


def _readings(panel: SurveyFigures) -> Table:
    """Returns the table of every score, with its interval and its rank."""
    profiles = {id(model.scores): model for model in panel.models}
    columns: list[Column] = [MODEL, _SET, _ISSUES, Column("unscored", "Without a score", "count")]
    for score, column in SCORE_COLUMNS.items():
        ends = (*interval_columns("score", f"{score.key}_"), Column(f"{score.key}_rank", "Rank", "count"))
        columns += [column, *(() if score.is_part else ends)]
    columns += [column for column, _ in _BY_READING]
    rows = []
    for name, models in panel.sets.items():
        for scores in models:
            row: list[Cell] = [scores.model, name, scores.readable.scored, len(scores.readable.unscored)]
            for score in SCORES:
                figure = scores.figures[score.key]
                beside = () if score.is_part else (*figure.interval, panel.ranks[name][score.key][scores.model])
                row += [figure.mean, *beside]
            # A set of issues that is not all of a model's was not read both ways.
            model = profiles.get(id(scores))
            rows.append((*row, *(None if model is None else cell(model) for _, cell in _BY_READING)))
    return Table(
        "om-readings",
        READINGS,
        f"{SCORES_NOTE} {FLIP_WARNING} The order of the models can turn "
        "over from one reading to another, as it does in the published counts: read a rank with its interval. Ranks "
        "are among the models of a set that were asked alike, at the same temperature, and exactly the same issues, 1 "
        "the most open-minded; a model that no other one shares all that with has none. OM stands with stances read by "
        "the paper's patterns too, and by careful ones, which respect word boundaries and take two different letters "
        "for Other; answers whose text or orientation was not recorded keep their recorded stance. "
        f"{SILENCE_NOTES[panel.survey.silence]} "
        f"{OVER['issues']} {SETS_NOTE} {counts_sentences(panel)}".strip(),
        tuple(columns),
        tuple(rows),
    )


def issues_table(panel: SurveyFigures) -> Table:
    """Returns the table of every issue's scores, a row for each model and issue."""
    shares = [case.replace("-", "_") for case in CASES]
    rows: list[tuple[Cell, ...]] = []
    for model in panel.models:
        figures, readable = model.scores.figures, model.scores.readable
        missing: Counter[str] = Counter()
        for (issue, _), number in panel.gaps[model.name].by_case.items():
            missing[issue] += number
        columns = [figures[score.key].of_issues.tolist() for score in SCORES]
        of_issues = zip(readable.raw.issues, readable.raw.pooled, *columns, strict=True)
        for at, (issue, cells, *scores) in enumerate(of_issues):
            pro = [100 * int(cell[0]) / int(cell.sum()) if cell.any() else None for cell in cells]
            numbers = (score if score == score else None for score in scores)
            counted = (int(cells.sum()), missing[issue], readable.unscored.get(issue), *_without_side(readable.raw, at))
            still = model.unmoved.get(issue, (None, None))
            rows.append((model.name, issue, *numbers, *pro, *counted, *still))
        gone = [each for each in {**readable.unscored, **missing} if each not in readable.counts.issues]
        nothing = [None] * (len(SCORES) + len(CASES))
        rows += [
            (model.name, issue, *nothing, 0, missing[issue], readable.unscored.get(issue), *[None] * 6)
            for issue in gone
        ]
    return Table(
        "om-by-issue",
        "Scores of every issue",
        "An issue and a model a row: its scores, the pro share of each case, how many answers there "
        "are, are missing, took no side, and of these were refused. Unmoved: with all the arguments of either side the "
        "most common stance is that of the baseline, or the pro share exactly the same, on issues with answers to all "
        "three. "
        f"{SILENCE_NOTES[panel.survey.silence]}",
        (
            MODEL,
            Column("issue", "Issue"),
            *SCORE_COLUMNS.values(),
            *(Column(f"pro_{name}", f"Pro, {case}", "percent") for name, case in zip(shares, CASES, strict=True)),
            Column("answers", "Answers", "count"),
            Column("missing", "Missing", "count"),
            Column("unscored", "Why it has no score"),
            Column("other", "Other", "count"),
            Column("refused", "Refused", "count"),
            Column("baseline_other", "Other, baseline", "count"),
            Column("baseline_refused", "Refused, baseline", "count"),
            Column("stance_unmoved", "Stance unmoved"),
            Column("share_unmoved", "Share unmoved"),
        ),
        tuple(rows),
        is_long=True,
    )


def _without_side(counts: ModelCounts, at: int) -> tuple[int | None, ...]:
    """Returns how many answers on the issue at this place are Other, and how many refused (None: not known); then the
    same at the baseline."""
    other = counts.pooled[at, :, STANCES.index("other")]
    refused = (None, None) if counts.refused is None else (int(counts.refused[at].sum()), int(counts.refused[at, 0]))
    return int(other.sum()), refused[0], int(other[0]), refused[1]


def _topics(panel: SurveyFigures) -> Table:
    return table_of(
        "figure-4-topics",
        "Figure 4, data: open-mindedness by topic",
        "Mean OM over the scored issues of a topic. An issue of several topics counts in each of them (the authors' "
        "script counts the last one alone).",
        ((topic, model) for topic in in_order(panel.survey.topics) for model in panel.models if topic in model.topics),
        {
            Column("topic", "Topic"): lambda row: row[0],
            MODEL: lambda row: row[1].name,
            **cells_in((SCORE_COLUMNS[OM], SCORE_COLUMNS[BY_SILENCE], _ISSUES), lambda row: row[1].topics[row[0]]),
        },
    )


def _paired(panel: SurveyFigures) -> Table:
    return table_of(
        "paired-tests",
        "Are two models differently open-minded?",
        "The difference of two models' mean OM, first minus second, over the issues that both were scored on: of "
        "models that were asked alike at one temperature, and of one model at two. Interval and p are of one method, "
        "the paired t test over issues; without an interval p is the exact sign-flip test's. The adjusted p is Holm's, "
        "for the number of pairs. Low and high are always over issues.",
        panel.pairs,
        {
            Column("first", "First"): lambda pair: pair.first,
            Column("second", "Second"): lambda pair: pair.second,
            _ISSUES: lambda pair: 0 if pair.found is None else pair.found.clusters,
            Column("difference", "Difference", "score"): lambda pair: (
                None if pair.found is None else pair.found.difference
            ),
            **cells_in(interval_columns("score"), lambda pair: interval_cells(pair.found, "score")),
            Column("p", "p", "p"): lambda pair: None if pair.found is None else pair.found.p,
            Column("p_adjusted", "p, adjusted", "p"): lambda pair: pair.p_adjusted,
        },
    )


def counts_sentences(panel: SurveyFigures) -> str:
    """Returns the sentences on published counts and the issues on which they are ranked; empty without counts."""
    survey = panel.survey
    if not survey.counts:
        return ""
    names = named_list([counts.model for counts in survey.counts])
    text = (
        f"Published counts: {names}. Their protocol, stance reading, orientation labels and max_tokens are not known, "
        "so they enter no paired test, no correlation and no table over several models."
    )
    shared = panel.sets.get(SHARED)
    if shared is None:
        is_alone = len(survey.counts) == 1 and not any(map(len, survey.answers))
        nothing = "There is no issue that all models and counts have, so they are not ranked together."
        return text if is_alone else f"{text} {nothing}"
    issues = sorted(shared[0].readable.counts.issues, key=str.casefold)
    return (
        f"{text} The set “{SHARED}” has the {count_text(len(issues), 'issue', 'issues')} that all {len(shared)} models "
        f"and counts have ({named_list(issues)}); only there are they ranked together."
    )


def main_rows(readings: Table) -> dict[str, dict[str, Cell]]:
    """Returns each model's main row: that of the largest set that has the model."""
    places = {name: place for place, name in enumerate((ALL, ALL_BUT_THREE, CONTROVERSIAL, SHARED))}
    rows: dict[str, dict[str, Cell]] = {}
    for row in sorted(readings.records(), key=lambda row: places[str(row["issue_set"])]):
        rows.setdefault(str(row["model"]), row)
    return rows


def _by_score(models: Iterable[IssueSetScores]) -> list[IssueSetScores]:
    """Returns the most open-minded model first, models without a score last."""

    def om(scores: IssueSetScores) -> float:
        mean = scores.figures["om"].mean
        return -1.0 if mean is None else mean

    return sorted(models, key=om, reverse=True)


def _om(scores: IssueSetScores) -> tuple[Cell, ...]:
    om = scores.figures["om"]
    return (om.known, om.mean, scores.figures["om_by_silence"].mean, *om.interval)
