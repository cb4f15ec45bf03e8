"""A report's page made straight from a survey, without a run, to see in a browser how its figures are drawn."""

from __future__ import annotations

from pathlib import Path

from millstream.metrics.report.contents import Contents, Standing
from millstream.metrics.report.explorer import Explorer
from millstream.metrics.report.findings import Findings, findings
from millstream.metrics.report.page import page
from millstream.metrics.report.survey import Survey


def drawn_page(survey: Survey, path: Path) -> Findings:
    """What the page was made of."""
    found = findings(survey)
    standings = tuple(Standing(answers.name, len(answers), len(answers)) for answers in survey.answers)
    path.write_bytes(page(Contents("A survey", standings, found, Explorer((), (), (), ()), ())))
    return found
