"""The agreement of people's labels as lines for a terminal and as plain values for JSON.

Owns these words alone. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...report.text import table

if TYPE_CHECKING:
    from ...bench.evaluation.labelling.comparison import AgreementFigures, LabelComparison, RaterComparison
    from ...bench.evaluation.labelling.rater_labels import RaterLabels
    from ...bench.evaluation.labelling.sample import SampleEntry
    from ...metrics.statistics.agreement import Agreement
    from ...metrics.statistics.stratified_agreement import WeightedShare

_COLUMNS = ("reading", "labelled", "agree", "share", "95% interval", "kappa", "95% interval", "note")
_RUN_COLUMNS = ("reading, in the run", "answers", "share", "95% interval", "kappa", "95% interval", "note")
_LABEL_COLUMNS = (
    "label",
    "rater's",
    "reading too",
    "95% interval",
    "reading's",
    "rater too",
    "95% interval",
    "kappa",
    "note",
)
_FEW = "few labels"


def fill_in(sample: Sequence[SampleEntry]) -> str:
    """Returns what a person does with a sheet."""
    from ...bench.evaluation.labelling.label import choices_of, explained

    choices = explained(choices_of(label for _, label in sample))
    asked = f"fill in `label` with {choices}, leave blank what is not labelled"
    steps = {step.value: step.name for _, label in sample for step in label.certainties}
    if not steps:
        return asked
    return f"{asked}; `certainty` with {', '.join(f'{value:g} ({name})' for value, name in steps.items())}, or nothing"


def as_text(place: Path, labels: RaterLabels, compared: LabelComparison) -> str:
    """Returns every rater's agreement with the readings, then that of each two raters."""
    parts = [f"{place}: {labels.labelled:,} of {len(labels):,} answers are labelled by {labels.rater}"]
    for name, rater in compared.raters.items():
        if len(compared.raters) > 1 or name != labels.rater:
            parts.append(f"{name}: {rater.labelled:,} labelled")
        parts += _rater_parts(rater)
    if compared.pairs:
        pairs = [(f"{pair.first}, {pair.second}", pair.figures) for pair in compared.pairs]
        parts.append(table([("raters", *_COLUMNS[1:]), *((name, *_cells(each)) for name, each in pairs)], (0, 7)))
        in_run = [(name, *_run_cells(each)) for name, each in pairs]
        parts.append(table([("raters, in the run", *_RUN_COLUMNS[1:]), *in_run], (0, 6)))
    parts.append(
        "The sample is even over labels, so a rare label is more frequent in it than in the run. Figures `in the run` "
        "weight each labelled answer by the number of answers that it stands for."
    )
    every = [
        figures.labelled
        for rater in compared.raters.values()
        for reading in rater.readings.values()
        for figures in (reading.whole, *reading.models.values())
    ]
    if any(one.kappa is None for one in every):
        parts.append("kappa is undefined where labels and reading have one and the same letter throughout")
    return "\n\n".join(parts)


def _rater_parts(rater: RaterComparison) -> Iterator[str]:
    readings = rater.readings
    yield table([_COLUMNS, *((name, *_cells(of.whole)) for name, of in readings.items())], (0, 7))
    yield table([_RUN_COLUMNS, *((name, *_run_cells(of.whole)) for name, of in readings.items())], (0, 6))
    for name, of in readings.items():
        if of.uncovered:
            yield f"{name} does not cover {of.uncovered:,} of {rater.labelled:,} labelled answers: they are left out"
        if len(of.models) > 1:
            head = (f"{name}, by model", *_COLUMNS[1:])
            yield table([head, *((model, *_cells(each)) for model, each in of.models.items())], (0, 7))
            run_head = (f"{name}, by model, in the run", *_RUN_COLUMNS[1:])
            yield table([run_head, *((model, *_run_cells(each)) for model, each in of.models.items())], (0, 6))
        yield _by_label(name, of.whole)
        yield _confusion(name, of.whole.labelled)
    if rater.certainties:
        rows = [(f"{row.certainty:g}", f"{row.labelled:,}", f"{row.confidence:.3f}") for row in rater.certainties]
        yield table([("certainty", "labelled", "judge's mean confidence"), *rows])


def _cells(figures: AgreementFigures) -> tuple[str, ...]:
    """Returns the cells of the labelled answers themselves; `-` where a figure is undefined."""
    found = figures.labelled
    note = _FEW if figures.is_few else ""
    if found.share is None or found.share_interval is None:
        return ("0", "0", "-", "-", "-", "-", note)
    told = [f"{found.count:,}", f"{found.agreed:,}", *_percent(found.share, found.share_interval)]
    return (*told, *_kappa(found.kappa, found.kappa_interval), note)


def _run_cells(figures: AgreementFigures) -> tuple[str, ...]:
    """Returns the cells of the figures that are weighted back to the run."""
    found = figures.in_run
    note = _FEW if figures.is_few else ""
    answers = f"{found.covered:,}" + (f" of {found.population:,}" if found.covered < found.population else "")
    share = _percent(found.agreed.share, found.agreed.interval)
    return (answers, *share, *_kappa(found.kappa, found.kappa_interval, has_share=found.agreed.share is not None), note)


def _percent(share: float | None, interval: tuple[float, float] | None) -> tuple[str, str]:
    if share is None or interval is None:
        return "-", "-"
    low, high = (f"{100 * limit:.1f}" for limit in interval)
    return f"{100 * share:.1f}%", f"{low} to {high}%"


def _kappa(kappa: float | None, interval: tuple[float, float] | None, *, has_share: bool = True) -> tuple[str, str]:
    if kappa is None or interval is None:
        return ("undefined" if has_share else "-"), "-"
    low, high = (f"{limit:.3f}" for limit in interval)
    return f"{kappa:.3f}", f"{low} to {high}"


def _by_label(reading: str, figures: AgreementFigures) -> str:
    from ...bench.evaluation.labelling.comparison import FEW_LABELS

    rows = [(f"{_LABEL_COLUMNS[0]}, {reading}, in the run", *_LABEL_COLUMNS[1:])]
    for label, each in figures.labels.items():
        first, second = each.first, each.second
        rows.append(
            (
                label,
                f"{first.count:,}",
                *_percent(first.share, first.interval),
                f"{second.count:,}",
                *_percent(second.share, second.interval),
                _kappa(each.whole.kappa, each.whole.kappa_interval, has_share=each.whole.agreed.share is not None)[0],
                _FEW if min(first.count, second.count) < FEW_LABELS else "",
            )
        )
    return table(rows, (0, 8))


def _confusion(reading: str, found: Agreement) -> str:
    rows = [(f"label \\ {reading}", *found.labels)]
    rows += [(label, *map(str, row)) for label, row in zip(found.labels, found.table, strict=True)]
    return table(rows)


def as_json(folder: Path, place: Path, labels: RaterLabels, compared: LabelComparison) -> dict[str, Any]:
    """Returns the agreement of the rater who asked, then that of every rater and of each two."""
    own = compared.raters.get(labels.rater) or compared.nobody
    return {
        "folder": str(folder),
        "file": str(place),
        "rater": labels.rater,
        "sample": len(labels),
        "labelled": labels.labelled,
        "readings": _readings(own),
        "raters": {
            name: {
                "labelled": rater.labelled,
                "readings": _readings(rater),
                "certainties": [row._asdict() for row in rater.certainties],
            }
            for name, rater in compared.raters.items()
        },
        "between_raters": [
            {"first": pair.first, "second": pair.second, **_numbers(pair.figures)} for pair in compared.pairs
        ],
    }


def _readings(rater: RaterComparison) -> dict[str, Any]:
    return {
        reading: {
            **_numbers(of.whole),
            "uncovered": of.uncovered,
            "models": {name: _numbers(one) for name, one in of.models.items()},
        }
        for reading, of in rater.readings.items()
    }


def _numbers(figures: AgreementFigures) -> dict[str, Any]:
    found, run = figures.labelled, figures.in_run
    confusion = {
        label: dict(zip(found.labels, row, strict=True)) for label, row in zip(found.labels, found.table, strict=True)
    }
    return {
        "labelled": found.count,
        "agree": found.agreed,
        "share": found.share,
        "share_ci95": _ends(found.share_interval),
        "kappa": found.kappa,
        "kappa_ci95": _ends(found.kappa_interval),
        "few_labels": figures.is_few,
        "in_run": {
            "answers": run.population,
            "covered": run.covered,
            "share": run.agreed.share,
            "share_ci95": _ends(run.agreed.interval),
            "kappa": run.kappa,
            "kappa_ci95": _ends(run.kappa_interval),
            "labels": {
                label: {
                    "of_first": _share(each.first),
                    "of_second": _share(each.second),
                    "kappa": each.whole.kappa,
                    "kappa_ci95": _ends(each.whole.kappa_interval),
                }
                for label, each in figures.labels.items()
            },
        },
        "confusion": confusion,
    }


def _share(found: WeightedShare) -> dict[str, Any]:
    return {"labelled": found.count, "share": found.share, "share_ci95": _ends(found.interval)}


def _ends(interval: tuple[float, float] | None) -> list[float | None]:
    return [None, None] if interval is None else list(interval)
