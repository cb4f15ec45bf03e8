"""How far people, judges and readings agree, as lines for a terminal and as plain values for `--json`.

Owns these words alone. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ....format import count_text, decimal_text
from ....report.text import table
from .labelling.comparison import note_on

if TYPE_CHECKING:
    from ....metrics.statistics.agreement import Agreement, Interval
    from ....metrics.statistics.stratified_agreement import StratifiedAgreement, WeightedShare
    from ..door.judging import JudgeScore
    from .judging.panel import JudgePair, Panel
    from .labelling.comparison import AgreementFigures, LabelComparison, RaterComparison
    from .labelling.label_lines import RaterLabels

_INTERVAL = "95% interval"
_KAPPA = ("kappa", _INTERVAL)


def labels_text(place: Path, labels: RaterLabels, compared: LabelComparison) -> str:
    """Returns every rater's agreement with the readings, then that of each two raters."""
    parts = [f"{place}: {labels.labelled:,} of {len(labels):,} answers are labelled by {labels.rater}"]
    for name, rater in compared.raters.items():
        if len(compared.raters) > 1 or name != labels.rater:
            parts.append(f"{name}: {rater.labelled:,} labelled")
        parts += _rater_parts(rater)
    if compared.pairs:
        parts += _agreements("raters", ((f"{pair.first}, {pair.second}", pair.figures) for pair in compared.pairs))
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
    return "\n\n".join(_panel_parts(panel))


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


# The agreement of two, whoever they are


def _agreed(agreement: Agreement | StratifiedAgreement) -> tuple[str, ...]:
    """Returns the cells of a share and of kappa, each with its interval; `-` where there is none."""
    share = _share(agreement.share, agreement.share_interval)
    if agreement.kappa is None or agreement.kappa_interval is None:
        return *share, "-" if agreement.share is None else "undefined", "-"
    return *share, f"{agreement.kappa:.3f}", "{:.3f} to {:.3f}".format(*agreement.kappa_interval)


def _share(share: float | None, interval: Interval | None) -> tuple[str, str]:
    if share is None or interval is None:
        return "-", "-"
    low, high = (f"{100 * limit:.1f}" for limit in interval)
    return f"{100 * share:.1f}%", f"{low} to {high}%"


def _agreed_json(agreement: Agreement | StratifiedAgreement) -> dict[str, Any]:
    return {
        **_figure("share", agreement.share, agreement.share_interval),
        **_figure("kappa", agreement.kappa, agreement.kappa_interval),
    }


def _figure(name: str, value: float | None, interval: Interval | None) -> dict[str, Any]:
    return {name: value, f"{name}_ci95": list(interval or (None, None))}


# People


def _agreements(title: str, rows: Iterable[tuple[str, AgreementFigures]]) -> Iterator[str]:
    """Yields two tables: of the labelled answers as they are, and weighted back to the run."""
    plain: list[Sequence[str]] = [(title, "labelled", "agree", "share", _INTERVAL, *_KAPPA, "note")]
    in_run: list[Sequence[str]] = [(f"{title}, in the run", "answers", "share", _INTERVAL, *_KAPPA, "note")]
    for name, figures in rows:
        labelled, run, note = figures.labelled, figures.in_run, note_on(figures.labelled.count) or ""
        answers = f"{run.covered:,}" + (f" of {run.population:,}" if run.covered < run.population else "")
        plain.append((name, f"{labelled.count:,}", f"{labelled.agreed:,}", *_agreed(labelled), note))
        in_run.append((name, answers, *_agreed(run), note))
    yield table(plain, (0, 7))
    yield table(in_run, (0, 6))


def _rater_parts(rater: RaterComparison) -> Iterator[str]:
    readings = rater.readings
    yield from _agreements("reading", ((name, of.whole) for name, of in readings.items()))
    for name, of in readings.items():
        if of.uncovered:
            yield f"{name} does not cover {of.uncovered:,} of {rater.labelled:,} labelled answers: they are left out"
        if len(of.models) > 1:
            yield from _agreements(f"{name}, by model", of.models.items())
        yield _by_label(name, of.whole)
        labelled = of.whole.labelled
        confusion = ((label, *map(str, row)) for label, row in zip(labelled.labels, labelled.table, strict=True))
        yield table([(f"label \\ {name}", *labelled.labels), *confusion])
    if rater.certainties:
        rows = [(f"{row.certainty:g}", f"{row.labelled:,}", f"{row.confidence:.3f}") for row in rater.certainties]
        yield table([("certainty", "labelled", "judge's mean confidence"), *rows])


def _by_label(reading: str, figures: AgreementFigures) -> str:
    sides = ("rater's", "reading too", _INTERVAL, "reading's", "rater too", _INTERVAL)
    rows: list[Sequence[str]] = [(f"label, {reading}, in the run", *sides, "kappa", "note")]
    for label, each in figures.labels.items():
        cells = [
            cell
            for side in (each.first, each.second)
            for cell in (f"{side.count:,}", *_share(side.share, side.interval))
        ]
        note = note_on(min(each.first.count, each.second.count)) or ""
        rows.append((label, *cells, _agreed(each.whole)[2], note))
    return table(rows, (0, 8))


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


# Judges


def _panel_parts(panel: Panel) -> Iterator[str]:
    if panel.asked_again:
        yield panel.again_text
    if len(panel.judges) < 2:
        yield "no other judge has judged yet: there is nothing to compare"
        return
    answers = count_text(len(panel.answers), "answer")
    yield f"{answers}, judged by {panel.own} (the run's own judge) and {', '.join(panel.judges[1:])}"
    if unread := [each.unread_text for each in panel.replies if each.unread]:
        yield "\n".join(unread)
    yield _alphas(panel)
    yield _pairs(panel)
    yield _biases(panel)
    yield _scores(panel)


def _alphas(panel: Panel) -> str:
    votes = ("majority", "ties") if panel.labels else ()
    rows = [("agreement on", "answers", "by all judges", "alpha", *votes)]
    for each in panel.agreement:
        counts = (f"{each.majority:,}", f"{each.ties:,}") if panel.labels else ()
        rows.append((each.model, f"{each.answers:,}", f"{each.by_all:,}", decimal_text(each.alpha.value, 3), *counts))
    notes = dict.fromkeys(f"alpha of {each.model}: {each.alpha.note}" for each in panel.agreement if each.alpha.note)
    return "\n".join((table(rows), *notes))


def _pairs(panel: Panel) -> str:
    of_pair = ("agree", _INTERVAL, *_KAPPA) if panel.labels else ("mean difference",)
    rows: list[Sequence[str]] = [("judges", "answers", *of_pair)]
    for each in panel.pairs:
        cells = (decimal_text(each.difference, 3),) if each.labels is None else _agreed(each.labels)
        rows.append((f"{each.first}, {each.second}", f"{each.answers:,}", *cells))
    return table(rows)


def _biases(panel: Panel) -> str:
    if not panel.biases:
        return "no answer has a verdict of every judge, so no bias can be told"
    rows: list[tuple[str, ...]]
    over = f"over the {count_text(panel.biases[0].answers, 'answer')} with a verdict of every judge"
    if not panel.labels:
        rows = [("judge", "mean grade", "others' mean", "bias")]
        rows += [(b.judge, f"{b.own:.3f}", f"{b.others:.3f}", f"{b.bias:+z.3f}") for b in panel.biases]
        return f"{table(rows)}\nbias: mean grade minus the mean of the other judges', {over}"
    shares = {(each.judge, each.label): f"{each.own:.1%} ({100 * each.bias:+z.1f})" for each in panel.biases}
    rows = [("share (bias)", *panel.labels)]
    rows += [(judge, *(shares[judge, label] for label in panel.labels)) for judge in panel.judges]
    return f"{table(rows)}\nbias: a judge's share minus the mean of the other judges' shares, in points, {over}"


def _scores(panel: Panel) -> str:
    if not panel.scores_of:
        return "no answer was judged by all judges, so scores under them can't be compared"
    rows = [("model", "score", *panel.scores)]
    rows += [(str(pair), name, *_score_cells(scores.values())) for pair, name, scores in panel.score_rows()]
    over = f"all {panel.scores_of:,} answers"
    if panel.scores_of < len(panel.answers):
        over = f"the {panel.scores_of:,} of {len(panel.answers):,} answers that all judges judged"
    of_majority = "a tie of the majority is no verdict" if panel.labels else "majority: the mean of the judges' grades"
    return f"{table(rows, (0, 1))}\nscores under each judge, over {over}; {of_majority}"


def _score_cells(scores: Iterable[JudgeScore | None]) -> Iterator[str]:
    """Yields the texts of one score under each judge. Where they are not over equally many conversations or items, each
    says over how many."""
    every = list(scores)
    differ = len({score.n for score in every if score is not None}) > 1
    for score in every:
        if score is None or score.value is None:
            yield "-"
            continue
        interval = "" if score.low is None or score.high is None else f" ({score.low:.3f} to {score.high:.3f})"
        yield f"{score.value:.3f}{interval}" + (f" of {score.n:,}" if differ else "")


def _pair_json(pair: JudgePair) -> dict[str, Any]:
    agreed = dict.fromkeys(("share", "share_ci95", "kappa", "kappa_ci95", "table"))
    if (labels := pair.labels) is not None:
        agreed = {**_agreed_json(labels), "table": {"labels": labels.labels, "counts": labels.table}}
    answers = {"first": pair.first, "second": pair.second, "answers": pair.answers}
    return {**answers, **agreed, "difference": pair.difference}
