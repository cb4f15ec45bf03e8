"""A report's page made straight from a survey, without a run, to see in a browser how its figures are drawn."""

from __future__ import annotations

from pathlib import Path

from millstone_page import page
from msgspec import structs

from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.report.sections import PageContents
from millstream.report.standings import AnswerStatus


def drawn_page(survey: ReportSurvey, path: Path) -> PageContents:
    """What the page was made of."""
    found = tables_and_figures(survey)
    standings = tuple(AnswerStatus(answers.name, len(answers), len(answers)) for answers in survey.answers)
    path.write_bytes(page(structs.replace(found, title="A survey", standings=standings), survey))
    return found
