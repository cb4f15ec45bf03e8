"""Tables of open-mindedness: tables 4 and 5, the readings of eq. (1) side by side, and the scores of every issue.

Owns their columns and words. `millstone` computes scores, `panel` their intervals.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from ....metrics.millstone.counts import ModelCounts
from ....metrics.millstone.coverage import SILENCE_NOTES
from ....metrics.millstone.openness import CASES, mean_over_issues
from ....metrics.millstone.scores import KINDS, ranks
from ....metrics.millstone.silence import ReadableCounts, openness_of
from ....report.interval_cells import interval_columns
from ....report.table import Cell, Column, Table
from .likeness import rank_kind
from .panel import ALL, ALL_BUT_THREE, CONTROVERSIAL, SETS_NOTE, SurveyScores
from .published import beside_published

FLIP_WARNING = (
    "Eq. (1) read literally compares shares of two different stances where a stance flips, so a clean flip from 100% "
    "pro to 100% con scores 0, and a high score can mean a half-hearted flip."
)
_MODEL = Column("model", "Model")
_SET = Column("issue_set", "Issue set")
_ISSUES = Column("issues", "Issues", "count")
_BY_SILENCE = Column("om_by_silence", "By silence", "score")
_BY_SILENCE_NOTE = "By silence: the part of OM from cases whose most common stance is Other."
_OM = (Column("om", "OM", "score"), _BY_SILENCE, *interval_columns("score"))
_NAMES = {
    "om": "OM, eq. (1)",
    "om_pro_share": "By change of the pro share",
    "om_no_flip": "Without the flip condition",
}


def om_tables(panel: SurveyScores) -> Iterator[Table]:
    yield beside_published(
        "table-4-om",
        "Table 4: open-mindedness on all issues",
        "OM of each model, the mean over its issues of eq. (1), from 0 to 100; higher is more open-minded. "
        f"{FLIP_WARNING} {_BY_SILENCE_NOTE} {panel.interval_note} {SETS_NOTE} Models that were asked about "
        "controversial issues only stand in table 5. The published scores fit the set of 104.",
        (_MODEL, _SET, _ISSUES, *_OM),
        [
            (model, name, *rest)
            for name, models in panel.sets.items()
            if name != CONTROVERSIAL
            for model, *rest in _by_score(panel, models)
        ],
    )
    yield beside_published(
        "table-5-om-controversial",
        "Table 5: open-mindedness on the controversial issues",
        "OM of each model on those of the ten controversial issues that it was asked about; higher is more "
        f"open-minded. {FLIP_WARNING} {_BY_SILENCE_NOTE} {panel.interval_note}",
        (_MODEL, _ISSUES, *_OM),
        _by_score(panel, panel.sets.get(CONTROVERSIAL, ())),
    )


def readings_table(panel: SurveyScores) -> Table:
    """Returns the table of OM and its two companions, each with interval and rank."""
    columns: list[Column] = [_MODEL, _SET, _ISSUES, Column("unscored", "Without a score", "count"), _BY_SILENCE]
    for kind in KINDS:
        columns += [
            Column(kind, _NAMES[kind], "score"),
            *interval_columns("score", f"{kind}_"),
            Column(f"{kind}_rank", "Rank", "count"),
        ]
    rows = []
    for name, models in panel.sets.items():
        means = {kind: {counts.model: mean_score(counts, kind) for counts in models} for kind in KINDS}
        placed = {kind: _ranks_among_alike(panel, models, means[kind]) for kind in KINDS}
        for counts in models:
            unscored = len(panel.heard[counts.model, counts.issues].unscored)
            by_silence = mean_score(counts, "om_by_silence")
            row: list[Cell] = [counts.model, name, scored_issues(counts), unscored, by_silence]
            for kind in KINDS:
                row += [means[kind][counts.model], *panel.interval(counts, kind, "score"), placed[kind][counts.model]]
            rows.append(tuple(row))
    return Table(
        "om-readings",
        "Three readings of the score, and the ranks they give",
        "Eq. (1) read literally; the change of the pro share where the stance flips, as the paper's worked example has "
        f"it; and eq. (1) without the condition that the stance flips. {FLIP_WARNING} The order of the models can turn "
        "over from one reading to another, as it does in the published counts: read a rank with its interval. Ranks "
        "are among the models of a set that were asked alike, at the same temperature, and exactly the same issues, 1 "
        "the most open-minded; a model that no other one shares all that with has none. "
        f"{_BY_SILENCE_NOTE} {SILENCE_NOTES[panel.survey.silence]} "
        f"{panel.interval_note} {SETS_NOTE}",
        tuple(columns),
        tuple(rows),
    )


def stances_table(panel: SurveyScores) -> Table:
    """Returns the table of OM under both readings of an answer's text, and how often these differ."""
    rows: list[tuple[Cell, ...]] = []
    for answers in panel.answers:
        differ, means = answers.disagreements(), []
        for reading in ("paper", "careful"):
            counts = panel.read_by(answers, reading)
            means += [mean_score(counts, "om"), mean_score(counts, "om_by_silence")]
        rows.append((answers.name, len(answers), *means, differ, 100 * differ / len(answers)))
    return Table(
        "stance-readings",
        "Two readings of an answer's stance",
        "OM with stances read by the paper's patterns, and by careful ones, which respect word boundaries and take two "
        "different letters for Other. Answers whose text or orientation was not recorded keep their recorded stance. "
        f"{_BY_SILENCE_NOTE}",
        (
            _MODEL,
            Column("answers", "Answers", "count"),
            Column("om_paper", "OM, paper's reading", "score"),
            Column("om_paper_by_silence", "By silence", "score"),
            Column("om_careful", "OM, careful reading", "score"),
            Column("om_careful_by_silence", "By silence", "score"),
            Column("differ", "Answers read differently", "count"),
            Column("differ_percent", "Share", "percent"),
        ),
        tuple(rows),
    )


def issues_table(panel: SurveyScores) -> Table:
    """Returns the table of every issue's scores, a row for each model and issue."""
    shares = [case.replace("-", "_") for case in CASES]
    rows: list[tuple[Cell, ...]] = []
    for counts, raw in zip(panel.main, panel.raw, strict=True):
        found, unscored = openness_of(counts), panel.heard[counts.model, counts.issues].unscored
        for at, issue in enumerate(counts.issues):
            is_scored = bool(found.is_scored[at])
            kinds = (*KINDS[:1], "om_by_silence", *KINDS[1:])
            scores = [float(getattr(found, kind)[at]) if is_scored else None for kind in kinds]
            cells = raw.pooled[at]
            pro = [100 * int(cell[0]) / int(cell.sum()) if cell.any() else None for cell in cells]
            rows.append((counts.model, issue, *scores, *pro, int(cells.sum()), unscored.get(issue)))
        gone = (issue for issue in unscored if issue not in counts.issues)
        rows += [(counts.model, issue, *[None] * (4 + len(CASES)), 0, unscored[issue]) for issue in gone]
    om, *others = (Column(kind, _NAMES[kind], "score") for kind in KINDS)
    return Table(
        "om-by-issue",
        "Scores of every issue",
        "An issue and a model a row: OM and its two companions, and the pro share of each case. "
        f"{SILENCE_NOTES[panel.survey.silence]}",
        (
            _MODEL,
            Column("issue", "Issue"),
            om,
            _BY_SILENCE,
            *others,
            *(Column(f"pro_{name}", f"Pro, {case}", "percent") for name, case in zip(shares, CASES, strict=True)),
            Column("answers", "Answers", "count"),
            Column("unscored", "Why it has no score"),
        ),
        tuple(rows),
        is_long=True,
    )


def own_rows(readings: Table, *, has_all_issues: bool) -> dict[str, dict[str, Cell]]:
    """Returns each model's main row: that of the chosen set of issues, else of the largest set that has the model."""
    order = (ALL, ALL_BUT_THREE) if has_all_issues else (ALL_BUT_THREE, ALL)
    places = {name: place for place, name in enumerate((*order, CONTROVERSIAL))}
    found: dict[str, dict[str, Cell]] = {}
    for row in sorted(readings.records(), key=lambda row: places[str(row["issue_set"])]):
        found.setdefault(str(row["model"]), row)
    return found


def _ranks_among_alike(
    panel: SurveyScores, models: Iterable[ModelCounts], means: Mapping[str, float | None]
) -> dict[str, int | None]:
    alike: dict[Hashable, list[ReadableCounts]] = {}
    for counts in models:
        found = panel.heard[counts.model, counts.issues]
        alike.setdefault((found.ranked_on, rank_kind(panel.survey, counts.model)), []).append(found)
    ranked: dict[str, int | None] = {}
    for group in alike.values():
        known = {each.counts.model: means[each.counts.model] if each.is_ranked else None for each in group}
        ranked |= ranks(known) if sum(each.is_ranked for each in group) > 1 else dict.fromkeys(known)
    return ranked


def mean_score(counts: ModelCounts, kind: str) -> float | None:
    found = openness_of(counts)
    return float(mean_over_issues(getattr(found, kind), found.is_scored)) if found.is_scored.any() else None


def scored_issues(counts: ModelCounts) -> int:
    return int(openness_of(counts).is_scored.sum())


def _by_score(panel: SurveyScores, models: tuple[ModelCounts, ...]) -> list[tuple[Cell, ...]]:
    """Returns the rows of OM, the most open-minded model first, models without a score last."""
    means = {counts.model: mean_score(counts, "om") for counts in models}
    order = sorted(models, key=lambda counts: -1.0 if (mean := means[counts.model]) is None else mean, reverse=True)
    return [
        (
            counts.model,
            scored_issues(counts),
            means[counts.model],
            mean_score(counts, "om_by_silence"),
            *panel.interval(counts, "om", "score"),
        )
        for counts in order
    ]
