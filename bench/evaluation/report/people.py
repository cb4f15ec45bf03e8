"""The section of a report on people's labels, and its tables: for every benchmark that has labels.

Owns their columns and words. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....metrics.statistics.stratified_agreement import SingleLabelAgreement
from ....report.sections import PageContents, Section, remarks_html, table_section
from ....report.table import Cell, Column, Table
from ..labelling.comparison import FEW_LABELS, AgreementFigures, LabelComparison

ALL_MODELS = "all"
FEW = "few labels"
_RATER, _READING, _MODEL = Column("rater", "Rater"), Column("reading", "Compared with"), Column("model", "Model")
_NOTE = Column("note", "Note")
_FIGURES = (
    Column("labelled", "Labelled", "count"),
    Column("share", "Agree", "share"),
    Column("share_low", "From", "share"),
    Column("share_high", "To", "share"),
    Column("kappa", "Kappa", "correlation"),
    Column("kappa_low", "From", "correlation"),
    Column("kappa_high", "To", "correlation"),
    Column("answers", "Answers of the run", "count"),
    Column("answers_left_out", "Of these left out", "count"),
    Column("run_share", "Agree, in the run", "share"),
    Column("run_share_low", "From", "share"),
    Column("run_share_high", "To", "share"),
    Column("run_kappa", "Kappa, in the run", "correlation"),
    Column("run_kappa_low", "From", "correlation"),
    Column("run_kappa_high", "To", "correlation"),
)
_WEIGHTS = (
    "The sample of labelled answers is even over labels, so it has more rare labels than the run. “Agree” and “Kappa” "
    "count the labelled answers as they are; the columns “in the run” weight each by the number of answers that it "
    "stands for: those of its model, temperature and label. Answers of a label and model without any labelled answer "
    "are left out."
)
_INTERVALS = (
    "“From” and “To” are the ends of a 95% interval: the exact one, put on kappa’s scale for kappa. It takes answers "
    f"as independent. With fewer than {FEW_LABELS} labelled answers the note says “{FEW}”."
)

_Rows = list[tuple[str, tuple[Cell, ...]]]


class CheckedRun(Struct, frozen=True):
    """The labels of one run folder, compared."""

    name: str
    """The folder's name; empty if the report has one run."""
    comparison: LabelComparison
    """The agreement of its raters."""


def with_labels(contents: PageContents, prefix: str, runs: Sequence[CheckedRun]) -> PageContents:
    """Returns a benchmark's part of the report with the section on people's labels, before its last section. `prefix`
    is the beginning of names; `runs` are those that have labels. Without any, the part stays as it is."""
    if not runs:
        return contents
    tables = [table for table in _tables(prefix, runs) if table.rows]
    remarks = [f"{run.name}: {each}" if run.name else each for run in runs for each in run.comparison.remarks]
    body = (remarks_html(remarks) if remarks else "") + "".join(map(table_section, tables))
    if not tables:
        body += "<p>No label holds for the answers of these runs.</p>"
    section = Section(f"{prefix}-labels", "Checked by people", body)
    *before, last = contents.sections
    return replace(contents, sections=(*before, section, last), tables=(*contents.tables, *tables))


def _tables(prefix: str, runs: Sequence[CheckedRun]) -> list[Table]:
    where = (Column("run", "Run"),) if any(run.name for run in runs) else ()

    def table(name: str, title: str, note: str, columns: Sequence[Column], rows: _Rows) -> Table:
        placed = tuple((*((run,) if where else ()), *row) for run, row in rows)
        return Table(f"{prefix}-labels-{name}", title, note, (*where, *columns), placed)

    return [
        table(
            "agreement",
            "People and readings",
            f"How often a person's label is that of the judge or of another reading. {_WEIGHTS} {_INTERVALS}",
            (_RATER, _READING, _MODEL, *_FIGURES, Column("uncovered", "Not covered", "count"), _NOTE),
            [(run.name, row) for run in runs for row in _agreement(run.comparison)],
        ),
        table(
            "by-label",
            "Agreement by label",
            "Of the answers that the person gives a label, the share that the reading gives it too, and the reverse; "
            "kappa is that of this label against all others. All shares and kappas are in the run: weighted by the "
            f"number of answers that each labelled one stands for. {_INTERVALS}",
            (_RATER, _READING, _MODEL, *_LABEL_COLUMNS, _NOTE),
            [(run.name, row) for run in runs for row in _by_label(run.comparison)],
        ),
        table(
            "raters",
            "People among themselves",
            f"How often two people give one answer the same label. {_WEIGHTS} {_INTERVALS}",
            (Column("first", "Rater"), Column("second", "And"), *_FIGURES, _NOTE),
            [
                (run.name, (pair.first, pair.second, *_figures(pair.figures), _note(pair.figures.labelled.count)))
                for run in runs
                for pair in run.comparison.pairs
            ],
        ),
        table(
            "certainty",
            "Certainty of people and confidence of the judge",
            "The judge's mean confidence in its stance, by how certain the person was. Of the labelled answers as they "
            "are; no interval is given.",
            (
                _RATER,
                Column("certainty", "Person's certainty", "rate"),
                Column("labelled", "Labelled", "count"),
                Column("confidence", "Judge's mean confidence", "rate"),
                _NOTE,
            ),
            [
                (run.name, (rater, row.certainty, row.labelled, row.confidence, _note(row.labelled)))
                for run in runs
                for rater, found in run.comparison.raters.items()
                for row in found.certainties
            ],
        ),
    ]


_LABEL_COLUMNS = (
    Column("label", "Label"),
    Column("rater_labels", "The person's", "count"),
    Column("reading_too", "Reading says so too", "share"),
    Column("reading_too_low", "From", "share"),
    Column("reading_too_high", "To", "share"),
    Column("reading_labels", "The reading's", "count"),
    Column("rater_too", "Person says so too", "share"),
    Column("rater_too_low", "From", "share"),
    Column("rater_too_high", "To", "share"),
    Column("kappa", "Kappa", "correlation"),
    Column("kappa_low", "From", "correlation"),
    Column("kappa_high", "To", "correlation"),
)


def _every(comparison: LabelComparison) -> Iterator[tuple[str, str, str, AgreementFigures, int | None]]:
    """Yields rater, reading, model and figures; for all models together also the answers that the reading lacks."""
    for rater, found in comparison.raters.items():
        for reading, of in found.readings.items():
            yield rater, reading, ALL_MODELS, of.whole, of.uncovered
            if len(of.models) > 1:
                for model, figures in of.models.items():
                    yield rater, reading, model, figures, None


def _agreement(comparison: LabelComparison) -> Iterator[tuple[Cell, ...]]:
    for rater, reading, model, figures, uncovered in _every(comparison):
        yield rater, reading, model, *_figures(figures), uncovered, _note(figures.labelled.count)


def _by_label(comparison: LabelComparison) -> Iterator[tuple[Cell, ...]]:
    for rater, reading, model, figures, _ in _every(comparison):
        for label, found in figures.labels.items():
            yield rater, reading, model, label, *_label_cells(found), _note(min(found.first.count, found.second.count))


def _label_cells(found: SingleLabelAgreement) -> tuple[Cell, ...]:
    first, second, whole = found.first, found.second, found.whole
    return (
        first.count,
        first.share,
        *_ends(first.interval),
        second.count,
        second.share,
        *_ends(second.interval),
        whole.kappa,
        *_ends(whole.kappa_interval),
    )


def _figures(figures: AgreementFigures) -> tuple[Cell, ...]:
    plain, run = figures.labelled, figures.in_run
    return (
        plain.count,
        plain.share,
        *_ends(plain.share_interval),
        plain.kappa,
        *_ends(plain.kappa_interval),
        run.population,
        run.population - run.covered,
        run.agreed.share,
        *_ends(run.agreed.interval),
        run.kappa,
        *_ends(run.kappa_interval),
    )


def _note(labelled: int) -> str | None:
    return FEW if labelled < FEW_LABELS else None


def _ends(interval: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Returns the ends of an interval; None for both where there is none."""
    return (None, None) if interval is None else interval
