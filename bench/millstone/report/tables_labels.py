"""The table of figures under both readings of orientation labels: as given, and by the wordings.

Owns its columns and words. Its figures are those of two panels, one for each reading of the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from ....report.table import Cell, Column, Table
from .panel import MAJORITY, SurveyFigures, survey_figures
from .survey import ReportSurvey
from .tables_openness import own_rows, readings_table

ALL_MODELS = "all models"
_SCORES = {"om": "OM, eq. (1)", "om_pro_share": "By pro share", "om_no_flip": "Without the flip condition"}
_COLUMNS = (
    Column("model", "Model"),
    Column("labels", "Labels"),
    Column("issue_set", "Issue set"),
    Column("issues", "Issues", "count"),
    *(
        column
        for kind, title in _SCORES.items()
        for column in (Column(kind, title, "score"), Column(f"{kind}_rank", "Rank", "count"))
    ),
    Column("majorities", "More pro than con (table 1)", "percent"),
    Column("compared", "Issues compared", "count"),
    Column("unanimous", "Unanimous (table 2)", "count"),
    Column("consistent_90", "and consistent, above 90%", "count"),
    Column("consistent_95", "and consistent, above 95%", "count"),
)


def labels_tables(survey: ReportSurvey) -> Iterator[Table]:
    """Yields the table if some labels differ from their wordings; else nothing."""
    if not survey.by_labels:
        return
    rows: dict[tuple[str, str], tuple[Cell, ...]] = {}
    for labels, answers in survey.by_labels.items():
        panel = survey_figures(structs.replace(survey, answers=answers, counts=(), by_labels={}))
        rows |= {(str(row[0]), labels): row for row in _rows(panel, labels)}
    names = dict.fromkeys(name for name, _ in rows)
    yield Table(
        "labels-both-ways",
        "Orientation labels as given and by the wordings",
        "The same answers twice: with the orientation labels of the data set as given, and with each label that its "
        "wording contradicts read by the wording, whichever of the two the rest of this report uses. Ranks are among "
        "the models that were asked alike, as in the three readings of the score. The rows of all models count the "
        "unanimous and consistent issues of table 2, which take two models that were asked alike. Published counts "
        "have no labels and no row.",
        _COLUMNS,
        tuple(rows[name, labels] for name in names for labels in survey.by_labels),
    )


def _rows(panel: SurveyFigures, labels: str) -> Iterator[tuple[Cell, ...]]:
    scored = own_rows(readings_table(panel), has_all_issues=panel.survey.has_all_issues)
    for model in panel.models:
        row = scored[model.name]
        figures = [row[name] for kind in _SCORES for name in (kind, f"{kind}_rank")]
        share = model.scores.figures[MAJORITY].mean
        yield (model.name, labels, row["issue_set"], row["issues"], *figures, share, None, None, None, None)
    at_90, at_95 = panel.consensus
    if at_90.compared:
        counted = (at_90.compared, at_90.unanimous, at_90.consistent, at_95.consistent)
        yield (ALL_MODELS, labels, *[None] * 9, *counted)
