"""A panel as lines for a terminal and as plain values for `--json`. Owns the words alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ....format import count_text, decimal_text, part_of, percent_text
from ....report.text import table
from .panel import JudgeScore, Panel
from .panel_figures import JudgePair, JudgeReplies, PanelFigures, figures_of


def as_text(panel: Panel) -> str:
    """Returns how far the judges agree, what each leans to, and the scores under each."""
    return "\n\n".join(_parts(panel, figures_of(panel)))


def as_json(panel: Panel) -> dict[str, Any]:
    """Returns a panel's figures and scores as plain values."""
    found = figures_of(panel)
    return {
        "judges": list(panel.judges),
        "own": panel.own,
        "answers": len(panel.answers),
        "judged_by_all": panel.scores_of,
        "asked_again": panel.asked_again,
        "same_again": panel.same_again,
        "replies": [msgspec.structs.asdict(each) for each in found.replies],
        "agreement": [
            {
                **{name: getattr(each, name) for name in ("model", "answers", "by_all", "majority", "ties")},
                "alpha": each.alpha.value,
                "alpha_units": each.alpha.units,
                "alpha_note": each.alpha.note,
            }
            for each in found.agreement
        ],
        "pairs": [_pair_json(each) for each in found.pairs],
        "biases": [{**msgspec.structs.asdict(each), "bias": each.bias} for each in found.biases],
        "scores": {
            judge: {
                str(pair): {name: msgspec.to_builtins(score) for name, score in own.items()}
                for pair, own in pairs.items()
            }
            for judge, pairs in panel.scores.items()
        },
    }


def again_text(panel: Panel) -> str:
    """Returns the sentence on the run's own judge asked again; empty if it was not."""
    if not panel.asked_again:
        return ""
    asked = count_text(panel.asked_again, "answer")
    return (
        f"{panel.own}, the run's own judge, was asked again about {asked}: {panel.same_again:,} verdicts are the same"
    )


def unread_texts(found: PanelFigures) -> list[str]:
    """Returns a sentence for each judge of whom some replies could not be read."""
    return [unread_text(each) for each in found.replies if each.unread]


def unread_text(replies: JudgeReplies) -> str:
    return (
        f"{replies.judge}: {part_of(replies.unread, replies.answers, 'replies')} could not be read and are no verdicts"
    )


def _parts(panel: Panel, found: PanelFigures) -> Iterator[str]:
    if again := again_text(panel):
        yield again
    if len(panel.judges) < 2:
        yield "no other judge has judged yet: there is nothing to compare"
        return
    answers = count_text(len(panel.answers), "answer")
    yield f"{answers}, judged by {panel.own} (the run's own judge) and {', '.join(panel.judges[1:])}"
    if unread := unread_texts(found):
        yield "\n".join(unread)
    yield _agreement(panel, found)
    yield _pairs(panel, found)
    yield _biases(panel, found)
    yield _scores(panel)


def _agreement(panel: Panel, found: PanelFigures) -> str:
    votes = ("majority", "ties") if panel.labels else ()
    rows = [("agreement on", "answers", "by all judges", "alpha", *votes)]
    for each in found.agreement:
        counts = (f"{each.majority:,}", f"{each.ties:,}") if panel.labels else ()
        rows.append((each.model, f"{each.answers:,}", f"{each.by_all:,}", decimal_text(each.alpha.value, 3), *counts))
    notes = dict.fromkeys(f"alpha of {each.model}: {each.alpha.note}" for each in found.agreement if each.alpha.note)
    return "\n".join((table(rows), *notes))


def _pairs(panel: Panel, found: PanelFigures) -> str:
    rows: list[tuple[str, ...]]
    if not panel.labels:
        rows = [("judges", "answers", "mean difference")]
        rows += [
            (f"{each.first}, {each.second}", f"{each.answers:,}", decimal_text(each.difference, 3))
            for each in found.pairs
        ]
        return table(rows)
    rows = [("judges", "answers", "agree", "95% interval", "kappa", "95% interval")]
    rows += [(f"{each.first}, {each.second}", f"{each.answers:,}", *_label_cells(each)) for each in found.pairs]
    return table(rows)


def _label_cells(pair: JudgePair) -> tuple[str, ...]:
    found = pair.labels
    assert found is not None
    share = "-" if found.share is None else percent_text(found.share)
    shares = "-" if found.share_interval is None else "{:.1%} to {:.1%}".format(*found.share_interval)
    kappas = "-" if found.kappa_interval is None else "{:.3f} to {:.3f}".format(*found.kappa_interval)
    return share, shares, decimal_text(found.kappa, 3), kappas


def _biases(panel: Panel, found: PanelFigures) -> str:
    if not found.biases:
        return "no answer has a verdict of every judge, so no bias can be told"
    rows: list[tuple[str, ...]]
    over = f"over the {count_text(found.biases[0].answers, 'answer')} with a verdict of every judge"
    if not panel.labels:
        rows = [("judge", "mean grade", "others' mean", "bias")]
        rows += [(b.judge, f"{b.own:.3f}", f"{b.others:.3f}", f"{b.bias:+z.3f}") for b in found.biases]
        return f"{table(rows)}\nbias: mean grade minus the mean of the other judges', {over}"
    shares = {(each.judge, each.label): f"{each.own:.1%} ({100 * each.bias:+z.1f})" for each in found.biases}
    rows = [("share (bias)", *panel.labels)]
    rows += [(judge, *(shares[judge, label] for label in panel.labels)) for judge in panel.judges]
    return f"{table(rows)}\nbias: a judge's share minus the mean of the other judges' shares, in points, {over}"


def _scores(panel: Panel) -> str:
    if not panel.scores_of:
        return "no answer was judged by all judges, so scores under them can't be compared"
    rows = [("model", "score", *panel.scores)]
    for pair in dict.fromkeys(pair for pairs in panel.scores.values() for pair in pairs):
        for name in panel.score_names:
            found = [pairs.get(pair, {}).get(name) for pairs in panel.scores.values()]
            if any(found):
                rows.append((str(pair), name, *_score_cells(found)))
    over = f"all {panel.scores_of:,} answers"
    if panel.scores_of < len(panel.answers):
        over = f"the {panel.scores_of:,} of {len(panel.answers):,} answers that all judges judged"
    of_majority = "a tie of the majority is no verdict" if panel.labels else "majority: the mean of the judges' grades"
    return f"{table(rows, (0, 1))}\nscores under each judge, over {over}; {of_majority}"


def _score_cells(found: Sequence[JudgeScore | None]) -> Iterator[str]:
    """Yields the texts of one score under each judge. Where they are not over equally many conversations or items, each
    says over how many."""
    differ = len({score.n for score in found if score is not None}) > 1
    for score in found:
        if score is None or score.value is None:
            yield "-"
            continue
        interval = "" if score.low is None or score.high is None else f" ({score.low:.3f} to {score.high:.3f})"
        yield f"{score.value:.3f}{interval}" + (f" of {score.n:,}" if differ else "")


def _pair_json(pair: JudgePair) -> dict[str, Any]:
    labels = pair.labels
    return {
        "first": pair.first,
        "second": pair.second,
        "answers": pair.answers,
        "share": None if labels is None else labels.share,
        "share_ci95": None if labels is None else labels.share_interval,
        "kappa": None if labels is None else labels.kappa,
        "kappa_ci95": None if labels is None else labels.kappa_interval,
        "table": None if labels is None else {"labels": labels.labels, "counts": labels.table},
        "difference": pair.difference,
    }
