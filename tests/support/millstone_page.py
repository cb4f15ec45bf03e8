"""A report's page of MillStone's part alone, as the report writes it."""

from __future__ import annotations

from millstream.bench.millstone.report.part import with_sections
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.report.page import page as page_of
from millstream.report.sections import PageContents


def page(contents: PageContents, survey: ReportSurvey | None = None) -> bytes:
    return page_of(contents.title, [with_sections(contents, survey or ReportSurvey(()))])
