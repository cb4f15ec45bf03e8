"""From a survey to everything a report says: its tables, the figures drawn from them, and the remarks on top.

Owns their order. Imports Altair by way of the charts: whoever has scores to print first should import this later.
"""

from __future__ import annotations

from ..gaps import Gaps, Shape, gaps, inferred
from ..millstone import CASES
from .charts_maps import correlations_figure, topics_figure
from .charts_shares import disagreement_figure, refusals_figure
from .charts_shifts import contradiction_figure, shifts_figure
from .likeness import unlike
from .panel import panel
from .remarks import of_samples, remarks, silent_of, unmeasured_of
from .survey import Options, Survey
from .table import Findings, Table
from .tables_arguments import argument_tables
from .tables_baselines import baseline_tables
from .tables_cells import cell_tables, coverage_table
from .tables_models import paired_table, topics_table
from .tables_openness import issues_table, om_tables, readings_table, stances_table
from .tables_shifts import shift_tables

__all__ = ["Findings", "Options", "Survey", "findings"]


def findings(survey: Survey, seed: int = 0) -> Findings:
    """The same survey and seed give the same findings."""
    prepared = panel(survey, seed)
    missing = _missing(survey)
    made = [
        *baseline_tables(prepared),
        *shift_tables(prepared),
        *om_tables(prepared),
        readings_table(prepared),
        paired_table(prepared),
        stances_table(prepared),
        topics_table(prepared),
        *argument_tables(prepared, seed),
        *cell_tables(prepared, missing),
        coverage_table(prepared),
        issues_table(prepared),
    ]
    tables = {table.name: table for table in sorted(made, key=_place)}
    asked = [answers.name for answers in survey.answers]
    figures = (
        shifts_figure(tables["figure-2-shifts"], asked),
        disagreement_figure(tables["figure-3-disagreement"], asked),
        topics_figure(tables["figure-4-topics"], asked),
        contradiction_figure(tables["figure-5-contradiction"], asked),
        correlations_figure(tables["figure-6-correlations"], tables["figure-6-medians"], asked),
        refusals_figure(tables["figure-7-refusals"]),
    )
    said = remarks(survey, tables, missing, prepared.coverage)
    return Findings(
        tables=tuple(tables.values()),
        figures=figures,
        remarks=said,
        of_samples=of_samples(survey),
        unmeasured=unmeasured_of(prepared.coverage),
        silent=silent_of(prepared.coverage),
        unlike=unlike(survey),
    )


def _missing(survey: Survey) -> dict[str, Gaps]:
    found = {
        answers.name: gaps(answers, survey.shapes.get(answers.name) or inferred(answers)) for answers in survey.answers
    }
    return found | {name: _unanswered(shape) for name, shape in survey.shapes.items() if name not in found}


def _unanswered(shape: Shape) -> Gaps:
    """What is missing of a model without any answer."""
    cases = {case: int(number) for case, number in zip(CASES, shape.by_case(), strict=True) if number}
    by_case = {(issue, case): number for issue in shape.issues for case, number in cases.items()}
    return Gaps(len(shape), 0, len(shape), by_case, beyond=0, repeated=0)


def _place(table: Table) -> tuple[int, str]:
    """The paper's tables by their numbers, then the data of its figures, then the rest as they were made."""
    for place, kind in enumerate(("table-", "figure-")):
        if table.name.startswith(kind):
            return place, table.name
    return 2, ""
