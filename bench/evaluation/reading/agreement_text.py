"""How far people, judges and readings agree, as lines for a terminal and as plain values for `--json`.

Owns these words alone. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import msgspec

from ....report.table import Cell, Column, Table
from ....report.text import table
from .agreement_tables import judge_tables, judges_text, label_tables, remarks_on
from .labelling.comparison import note_on

if TYPE_CHECKING:
    from ....metrics.statistics.agreement import Agreement, Interval
    from ....metrics.statistics.stratified_agreement import StratifiedAgreement, WeightedShare
    from .judging.panel import JudgePair, Panel
    from .labelling.comparison import AgreementFigures, LabelComparison, RaterComparison
    from .labelling.label_lines import RaterLabels

_WIDTH = 100
_DIGITS = {"share": ".1%", "points": "+z.1f", "count": ",", "rate": "g"}


def labels_text(place: Path, labels: RaterLabels, compared: LabelComparison) -> str:
    """Returns every rater's agreement with the readings, then that of each two raters."""
    parts = [f"{place}: {labels.labelled:,} of {len(labels):,} answers are labelled by {labels.rater}"]
    parts += [f"{name}: {rater.labelled:,} labelled" for name, rater in compared.raters.items() if name != labels.rater]
    for each in label_tables("", {"": compared}):
        names = [column.name for column in each.columns]
        # Apart from the figures that are weighted back to the run, if there are any.
        weighted = {name for name in names if name.startswith("run_")} | {"answers", "answers_left_out"}
        plain = {"labelled", "share", "share_low", "share_high", "kappa", "kappa_low", "kappa_high", "uncovered"}
        apart = (weighted, plain) if "answers" in names else (set[str](),)
        parts += [_lines(each, without) for without in apart if each.rows]
    parts += _confusions(compared)
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


def labels_json(folder: Path, place: Path, labels: RaterLabels, compared: LabelComparison) -> dict[str, Any]:
    """Returns the agreement of the rater who asked, then that of every rater and of each two."""
    return {
        "folder": str(folder),
        "file": str(place),
        "rater": labels.rater,
        "sample": len(labels),
        "labelled": labels.labelled,
        "readings": _readings(compared.raters.get(labels.rater) or compared.nobody),
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


def panel_text(panel: Panel) -> str:
    """Returns how far the judges agree, what each leans to, and the scores under each."""
    parts = [fill(sentence, _WIDTH) for sentence in (judges_text(panel), *remarks_on(panel))]
    if len(panel.judges) > 1:
        tables = (each for each in judge_tables("", {"": panel}) if each.rows)
        parts += [f"{each.title}\n{_lines(each)}\n{fill(each.note, _WIDTH)}" for each in tables]
    return "\n\n".join(parts)


def panel_json(panel: Panel) -> dict[str, Any]:
    """Returns a panel's figures and scores as plain values."""
    return {
        "judges": list(panel.judges),
        "own": panel.own,
        "answers": len(panel.answers),
        "judged_by_all": panel.scores_of,
        "asked_again": panel.asked_again,
        "same_again": panel.same_again,
        "replies": [msgspec.structs.asdict(each) for each in panel.replies],
        "agreement": [
            {
                **{name: getattr(each, name) for name in ("model", "answers", "by_all", "majority", "ties")},
                "alpha": each.alpha.value,
                "alpha_units": each.alpha.units,
                "alpha_note": each.alpha.note,
            }
            for each in panel.agreement
        ],
        "pairs": [_pair_json(each) for each in panel.pairs],
        "biases": [{**msgspec.structs.asdict(each), "bias": each.bias} for each in panel.biases],
        "scores": {
            judge: {str(pair): msgspec.to_builtins(scores) for pair, scores in pairs.items()}
            for judge, pairs in panel.scores.items()
        },
    }


def _lines(every: Table, without: Container[str] = ()) -> str:
    """Returns a table as lines, without these columns and those that are empty throughout, each interval in one
    cell."""
    used = [
        (column, [row[at] for row in every.rows])
        for at, column in enumerate(every.columns)
        if column.name not in without and any(row[at] is not None for row in every.rows)
    ]
    heads = [("95% interval" if column.title == "From" else column.title, column, cells) for column, cells in used]
    made = []
    for at, (title, column, cells) in enumerate(heads):
        if title == "To":
            continue
        texts = [_text(column, cell) for cell in cells]
        if title == "95% interval":
            texts = [
                low if low == "-" else f"{low} to {_text(column, high)}"
                for low, high in zip(texts, heads[at + 1][2], strict=True)
            ]
        made.append((column, [title, *texts]))
    lean = [at for at, (column, _) in enumerate(made) if column.kind == "text"]
    return table(list(zip(*(texts for _, texts in made), strict=True)), lean)


def _text(column: Column, cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return ("" if column.name == "note" else "-") if cell is None else cell
    return f"{cell:{_DIGITS.get(column.kind, '.3f')}}"


def _confusions(compared: LabelComparison) -> Iterator[str]:
    """Yields a table of labels against each reading, for each rater."""
    for rater in compared.raters.values():
        for name, of in rater.readings.items():
            labelled = of.whole.labelled
            rows = ((label, *map(str, row)) for label, row in zip(labelled.labels, labelled.table, strict=True))
            yield table([(f"label \\ {name}", *labelled.labels), *rows])


def _agreed_json(agreement: Agreement | StratifiedAgreement) -> dict[str, Any]:
    return {
        **_figure("share", agreement.share, agreement.share_interval),
        **_figure("kappa", agreement.kappa, agreement.kappa_interval),
    }


def _figure(name: str, value: float | None, interval: Interval | None) -> dict[str, Any]:
    return {name: value, f"{name}_ci95": list(interval or (None, None))}


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
    labelled, run = figures.labelled, figures.in_run
    return {
        "labelled": labelled.count,
        "agree": labelled.agreed,
        **_agreed_json(labelled),
        "few_labels": note_on(labelled.count) is not None,
        "in_run": {
            "answers": run.population,
            "covered": run.covered,
            **_agreed_json(run),
            "labels": {
                label: {
                    "of_first": _side(each.first),
                    "of_second": _side(each.second),
                    **_figure("kappa", each.whole.kappa, each.whole.kappa_interval),
                }
                for label, each in figures.labels.items()
            },
        },
        "confusion": {
            label: dict(zip(labelled.labels, row, strict=True))
            for label, row in zip(labelled.labels, labelled.table, strict=True)
        },
    }


def _side(side: WeightedShare) -> dict[str, Any]:
    return {"labelled": side.count, **_figure("share", side.share, side.interval)}


def _pair_json(pair: JudgePair) -> dict[str, Any]:
    agreed = dict.fromkeys(("share", "share_ci95", "kappa", "kappa_ci95", "table"))
    if (labels := pair.labels) is not None:
        agreed = {**_agreed_json(labels), "table": {"labels": labels.labels, "counts": labels.table}}
    answers = {"first": pair.first, "second": pair.second, "answers": pair.answers}
    return {**answers, **agreed, "difference": pair.difference}
