"""The sections of a report on who else read a run's answers, people and judges: for every benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ....report.escaping import in_html
from ....report.sections import PageContents, Section, remarks_html, table_section
from ....report.table import Table
from ..reading.agreement_tables import judge_tables, judges_text, label_tables, remarks_on
from ..reading.judging.panel import Panel
from ..reading.labelling.comparison import LabelComparison


def _with_section(contents: PageContents, section: Section, tables: Sequence[Table]) -> PageContents:
    """Returns a part of a report with one more section, before its last."""
    *before, last = contents.sections
    return replace(contents, sections=(*before, section, last), tables=(*contents.tables, *tables))


def _named(run: str, sentence: str) -> str:
    return f"{run}: {sentence}" if run else sentence


def with_labels(contents: PageContents, prefix: str, runs: Mapping[str, LabelComparison]) -> PageContents:
    """Returns a benchmark's part of the report with the section on people's labels, before its last section. `prefix`
    is the beginning of names; `runs` are those that have labels. Without any, the part stays as it is."""
    if not runs:
        return contents
    tables = [table for table in label_tables(f"{prefix}-labels", runs) if table.rows]
    remarks = [_named(run, remark) for run, compared in runs.items() for remark in compared.remarks]
    body = (remarks_html(remarks) if remarks else "") + "".join(map(table_section, tables))
    if not tables:
        body += "<p>No label holds for the answers of these runs.</p>"
    return _with_section(contents, Section(f"{prefix}-labels", "Checked by people", body), tables)


def with_panels(contents: PageContents, prefix: str, runs: Mapping[str, Panel]) -> PageContents:
    """Returns a benchmark's part of the report with the section on the judges, before its last section. `prefix` is the
    beginning of names; `runs` are those that have judgements. Without any, the part stays as it is."""
    if not runs:
        return contents
    # An empty table is written too, in place of a file from a time when there were rows.
    tables = judge_tables(f"{prefix}-judges", runs) if any(len(panel.judges) > 1 for panel in runs.values()) else []
    judges = "".join(f"<p>{in_html(_named(run, _judges(panel)))}</p>" for run, panel in runs.items())
    remarks = [_named(run, remark) for run, panel in runs.items() for remark in remarks_on(panel)]
    body = judges + (remarks_html(remarks) if remarks else "") + "".join(map(table_section, tables))
    return _with_section(contents, Section(f"{prefix}-judges", "Judges", body), tables)


def _judges(panel: Panel) -> str:
    own = f" All scores outside this section are those of {panel.own} alone." if len(panel.judges) > 1 else ""
    return judges_text(panel) + own
