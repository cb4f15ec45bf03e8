"""The result of an evaluation, for programs and notebooks: scores, comparisons, records, and all of it as HTML.

Reads a finished run folder of a task. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from ...engine.runs.journal import read_lines
from ...engine.runs.run_folder import FAILURES, RECORDS
from ...metrics.statistics.comparisons import Comparison
from ...report.escaping import in_html
from ...report.html_tables import table_html
from ...report.labels import one_line
from ...report.table import MODEL, Cells, Column, table_of
from ..evaluation.door.record import Record as BaseRecord
from ..evaluation.running.journals import decoded
from .records import Record


class ScoreFigure(Struct, frozen=True):
    """A mean score over items, or a figure over all answers, and its 95% interval."""

    mean: float | None
    """The mean of the items' scores, or a figure over all answers; None: there is none."""
    low: float | None = None
    """The lower end of the interval; None: there is none, and `note` says why."""
    high: float | None = None
    """The upper end of the interval; None: there is none."""
    items: int = 0
    """The number of items with a score."""
    note: str | None = None
    """Why the interval is approximate or missing; None: it is neither."""

    def __str__(self) -> str:
        if self.mean is None:
            return "no score"
        interval = "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.mean:.3f}{interval}"


class ModelResult(Struct, frozen=True):
    """The scores of one model, at one temperature if it was asked at several."""

    score: ScoreFigure
    """The main score."""
    scores: Mapping[str, ScoreFigure]
    """Every score by its name, if there are several."""
    groups: Mapping[str, ScoreFigure]
    """The main score by group."""
    figures: Mapping[str, ScoreFigure]
    """The figures over all answers by name, if the task has any."""
    variants: Mapping[str, ScoreFigure]
    """The main score in each variant of the prompt, if it has several."""
    variant_pairs: tuple[PairResult, ...]
    """The comparisons of every two variants over the items that have a score in both."""
    answers: int
    """The number of answers."""
    without_score: int
    """The number of answers that are empty or can't be read."""
    remarks: tuple[str, ...] = ()
    """Sentences to read before its scores."""


class PairResult(Struct, frozen=True):
    """The comparison of two models over the items that both have a score for."""

    a: str
    """The first model."""
    b: str
    """The second model."""
    found: Comparison
    """The difference, first minus second, with its interval and p value."""
    p_adjusted: float
    """The p value adjusted by Holm for all the pairs compared."""

    def __str__(self) -> str:
        found = self.found
        interval = "" if found.low is None or found.high is None else f" [{found.low:+.3f}, {found.high:+.3f}]"
        holm = "" if self.p_adjusted == found.p else f" (Holm; {found.p:.3g} without)"
        return f"{self.a} - {self.b}: {found.difference:+.3f}{interval}, p = {self.p_adjusted:.3g}{holm}"


class Evaluation(Struct, frozen=True, kw_only=True):
    """The result of a task's run. Its records stay in the folder and are read anew each time."""

    name: str
    """The task's name."""
    folder: Path
    """The run's folder."""
    models: Mapping[str, ModelResult]
    """The result of each model."""
    pairs: tuple[PairResult, ...]
    """The comparisons of every two models that have common items."""
    cost: float | None
    """The dollars that the run cost; None: no price is known."""
    failures: int
    """The number of questions that failed for good."""
    pending: int
    """The number of questions that are not asked yet; the same call continues with them."""
    unmeasured: tuple[str, ...] = ()
    """A sentence for each model that lacks a score, and for each score function that raised an error."""
    stops: tuple[str, ...] = ()
    """Why questions are pending; empty: none is, or the run was interrupted."""
    report: Path | None = None
    """The report's page; None: none was written."""

    @property
    def is_whole(self) -> bool:
        """Whether every question has its answer and every model a score."""
        return not (self.failures or self.pending or self.unmeasured)

    def records(self) -> Iterator[Record]:
        """Yields every answer with its question and score, read from the folder."""
        path = self.folder / RECORDS
        yield from decoded(read_lines(path), Record, str(path))

    def failed(self) -> Iterator[BaseRecord]:
        """Yields the failure of every question that failed for good, read from the folder."""
        path = self.folder / FAILURES
        yield from decoded(read_lines(path), BaseRecord, str(path))

    def troubles(self) -> Iterator[str]:
        """Yields a sentence on each thing that is missing: scores, questions that failed, questions that are
        pending."""
        yield from self.unmeasured
        if self.failures:
            yield f"{self.failures:,} questions failed for good: {self.folder / FAILURES}"
        if self.pending:
            yield f"{self.pending:,} questions are pending ({'; '.join(self.stops) or 'interrupted'}): run it again"

    def to_pandas(self) -> Any:
        """Returns the records as a pandas.DataFrame with a row for each answer and a column for each field of a record;
        columns of the task's rows are named `row.NAME`. Raises ImportError if pandas is not installed."""
        try:
            import pandas  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame.from_records([_flat(record) for record in self.records()])

    def _repr_html_(self) -> str:
        # All texts are escaped; it has no script, no link and no address.
        models, report = self.models, self.report
        scores = [(name, None, each.score, each) for name, each in models.items()]
        parts = [row for name, each in models.items() for row in _parts(name, each)]
        pairs = [*self.pairs, *(pair for each in models.values() for pair in each.variant_pairs)]
        tables = (
            table_of("scores", "Scores", "", [*scores, *parts], _SCORES),
            table_of("pairs", "Compared", "", pairs, _PAIRS),
        )
        cost = "no price is known" if self.cost is None else f"cost ${self.cost:,.4f}"
        made = f"{cost}; report: {report}" if report is not None else cost
        remarks = [remark for each in models.values() for remark in each.remarks]
        return "".join(
            (
                f"<p><b>{_text(self.name)}</b>: {_text(str(self.folder))}</p>",
                *(f'<p style="color: #c22">{_text(line)}</p>' for line in self.troubles()),
                *(table_html(each, each.name) for each in tables if each.rows),
                *(f"<p>{_text(line)}</p>" for line in (*remarks, made)),
            )
        )

    def __repr__(self) -> str:
        return (
            f"<Evaluation {self.name} [{', '.join(f'{model} {found.score}' for model, found in self.models.items())}]>"
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        width = max(map(len, self.models), default=0)
        yield f"{self.name}: {self.folder}"
        for model, result in self.models.items():
            left = f", {result.without_score:,} without a score" if result.without_score else ""
            yield f"  {model:{width}}  {result.score}  ({result.score.items:,} items, {result.answers:,} answers{left})"
            for name, figure in result.scores.items():
                yield f"    {name}: {figure}" + f" ({figure.items:,} items)" * (figure.items != result.score.items)
            for group, figure in result.groups.items():
                yield f"    {group}: {figure} ({figure.items:,} items)"
            yield from (f"    {variant}: {figure}" for variant, figure in result.variants.items())
            yield from (f"    {pair}" for pair in result.variant_pairs)
            for name, figure in result.figures.items():
                yield f"  {model:{width}}  {name} {figure}"
        yield from (f"  {pair}" for pair in self.pairs)
        yield from (f"  {remark}" for result in self.models.values() for remark in result.remarks)
        yield from (f"  {sentence}" for sentence in self.troubles())
        if self.report is not None:
            yield f"  report: {self.report}"


def _flat(record: Record) -> dict[str, Any]:
    """Returns a record as plain values by column, of which those of the row are on one level with the others."""
    fields: dict[str, Any] = to_builtins(record)
    row = fields.pop("row")
    return fields | {f"row.{name}": value for name, value in row.items()}


def model_result(entry: Mapping[str, Any]) -> ModelResult:
    """Returns the result of a model from its entry in a task's part of `scores.json`."""
    return ModelResult(
        score=_figure({**entry, "items": entry["items_scored"]}),
        scores={name: _figure(each) for name, each in entry.get("scores", {}).items()},
        groups={name: _figure(each) for name, each in entry["groups"].items()},
        figures={name: _figure(each) for name, each in entry.get("figures", {}).items()},
        variants={name: _figure(each) for name, each in entry.get("variants", {}).items()},
        variant_pairs=tuple(map(pair_result, entry.get("variant_pairs", ()))),
        answers=entry["answers"],
        without_score=entry["answers_without_score"],
        remarks=tuple(entry["remarks"]),
    )


def _figure(entry: Mapping[str, Any]) -> ScoreFigure:
    low, high = entry["ci95"]
    return ScoreFigure(entry.get("mean", entry.get("value")), low, high, entry["items"], entry["ci95_note"])


def pair_result(row: Mapping[str, Any]) -> PairResult:
    """Returns the comparison of two models from its entry in a task's part of `scores.json`."""
    low, high = row["ci95"]
    found = Comparison(row["difference"], low, high, row["p"], row["items"], note=row["ci95_note"], of="items")
    return PairResult(row["a"], row["b"], found, row["p_adjusted"])


_SCORES: Cells[tuple[str, str | None, ScoreFigure, ModelResult | None]] = {
    MODEL: lambda row: row[0],
    Column("name", "Name"): lambda row: row[1],
    Column("score", "Score", "rate"): lambda row: row[2].mean,
    Column("interval", "95% interval"): lambda row: _ends(row[2].low, row[2].high, ".3f", row[2].note),
    Column("items", "Items", "count"): lambda row: row[2].items,
    Column("answers", "Answers", "count"): lambda row: None if row[3] is None else row[3].answers,
    Column("without", "Without a score", "count"): lambda row: None if row[3] is None else row[3].without_score,
}
_PAIRS: Cells[PairResult] = {
    Column("compared", "Compared"): lambda pair: f"{pair.a} − {pair.b}",
    Column("difference", "Difference"): lambda pair: f"{pair.found.difference:+.3f}",
    Column("interval", "95% interval"): lambda pair: _ends(pair.found.low, pair.found.high, "+.3f", pair.found.note),
    Column("p", "p", "p"): lambda pair: pair.found.p,
    Column("p_holm", "p, adjusted by Holm", "p"): lambda pair: pair.p_adjusted,
}


def _parts(name: str, model: ModelResult) -> Iterator[tuple[str, str, ScoreFigure, None]]:
    """Yields the rows of a model's other figures, groups and variants."""
    kinds = ("", model.scores), ("", model.figures), ("group ", model.groups), ("variant ", model.variants)
    return ((name, f"{kind}{part}", figure, None) for kind, figures in kinds for part, figure in figures.items())


def _ends(low: float | None, high: float | None, form: str, note: str | None) -> str | None:
    if low is None or high is None:
        return note
    ends = f"{low:{form}} to {high:{form}}"
    return f"{ends}, {note}" if note else ends


def _text(text: str) -> str:
    return in_html(one_line(text, 1_000)) if text else ""
