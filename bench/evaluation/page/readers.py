"""What every benchmark's part of a page has beside its own: when its runs took place, who answered, and who else read
the answers, people and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ....engine.runs.run_folder import RECORDS
from ....report.escaping import in_html
from ....report.labels import folder_labels
from ....report.sections import PageContents, Section, remarks_html, table_section
from ....report.table import Table
from ..door.benchmark import ItemBenchmark
from ..door.judgement import JUDGEMENTS
from ..door.served_rows import ServedRows
from ..reading.agreement_tables import judge_tables, judges_text, label_tables, remarks_on
from ..reading.answers import answers_in
from ..reading.judging.folder_panel import read_panel
from ..reading.judging.panel import Panel
from ..reading.labelling.comparison import LabelComparison, compared_in
from ..reading.labelling.label_lines import LABELS
from ..running.served import names_text, rows_in
from .provenance import run_facts

Manifests = Mapping[Path, Mapping[str, Any] | None]


def with_readers(contents: PageContents, benchmark: ItemBenchmark[Any], runs: Manifests) -> PageContents:
    """Returns a part of the page with what the framework adds for these runs, by their folders."""
    if contents.headline is not None:
        contents = replace(contents, headline=replace(contents.headline, facts=run_facts(runs.values())))
    labels = folder_labels(list(runs)) if len(runs) > 1 else dict.fromkeys(runs, "")
    served = {labels[path]: rows_in(path, manifest) for path, manifest in runs.items()}
    contents = _with_served(contents, f"{benchmark.name}-served", served)
    read = {path: name for path, name in labels.items() if (path / RECORDS).exists()}
    compared = {
        name: compared_in(path / LABELS, answers_in(path, benchmark, runs[path], has_judges=True))
        for path, name in read.items()
        if (path / LABELS).exists()
    }
    panels: dict[str, Panel] = {}
    for path, name in read.items():
        # Without its manifest nobody knows which judge was the run's own.
        manifest = runs[path] if (path / JUDGEMENTS).exists() else None
        if manifest is not None and (panel := read_panel(path, benchmark.judging(manifest))) is not None:
            panels[name] = panel
    return with_panels(with_labels(contents, benchmark.name, compared), benchmark.name, panels)


def _with_served(contents: PageContents, name: str, runs: Mapping[str, ServedRows]) -> PageContents:
    """Returns a part of the page with who answered, after its first section."""
    remarks = tuple(_named(run, line) for run, rows in runs.items() for line in rows.remarks)
    unmeasured = tuple(_named(run, line) for run, rows in runs.items() for line in rows.unmeasured)
    answers = [
        _named(run, f"{pair}: {names_text(names)}") for run, rows in runs.items() for pair, names in rows.served.items()
    ]
    answers = answers or ["No server states a model's name: which model answered is not known."]
    first, *rest = contents.sections
    return replace(
        contents,
        sections=(first, Section(name, "Who answered", remarks_html([*remarks, *unmeasured, *answers])), *rest),
        remarks=(*contents.remarks, *remarks),
        unmeasured=(*contents.unmeasured, *unmeasured),
    )


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
