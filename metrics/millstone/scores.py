"""The scores of each issue, and MillStone's part of `scores.json`, as plain numbers.

Owns the shape of that part: keys in a stable order, None where there is nothing to score, never a NaN. `figures` has
the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import to_builtins

from ...engine.pairs import Pair
from ..statistics.intervals import interval_entry
from .answers import AnswerReading, AnswerTally
from .counts import ModelCounts, counts_of
from .coverage import remarks, unmeasured
from .figures import RANKED, SCORED, SCORES
from .gaps import Gaps, Shape, gaps, inferred
from .open_minded import open_minded_issues
from .openness import CASES, STANCES, Counts, Shares, is_complete, issue_interval, mean_of_known
from .silence import ReadableCounts, Silence, heard, moves_of, plan_of

# OM without the issues that the published scores leave out, of models that were asked about some of them.
OM_ALL_BUT_THREE = "om_all_but_three"


def scores(
    tally: AnswerTally,
    reading: AnswerReading = "recorded",
    left_out: Iterable[str] = (),
    shapes: Mapping[Pair, Shape] | None = None,
    silence: Silence = "unscored",
    is_ranked: Callable[[Pair], bool] = lambda pair: True,
) -> dict[str, Any]:
    """Returns MillStone's part of `scores.json`, for every model in a tally. `shapes` has the one that each pair was
    to answer, from a manifest; without it, that is inferred from the answers. `left_out`: OM stands without these
    issues too."""
    shapes = shapes or {}
    kept = tally.models(shapes)
    every: list[ReadableCounts] = []
    missing = {}
    for answers in kept:
        planned_shape = shapes.get(answers.pair)
        shape = planned_shape or inferred(answers, kept)
        missing[answers.name] = gaps(answers, shape)
        counts = counts_of(answers, reading)
        if counts.pooled.any():
            plan = plan_of(counts, shape, missing[answers.name]) if planned_shape is not None else None
            every.append(heard(counts, silence, plan))
    # A model that has no rank is in no contest.
    treatments = {each.name: each.pair.treatment if is_ranked(each.pair) else None for each in kept}
    document = _document(every, silence, left_out, treatments)
    models: dict[str, Any] = document["millstone"]["models"]
    for pair, name in tally.names(shapes).items():
        if name not in models and pair in shapes:
            models[name] = _unanswered(shapes[pair])
        elif name in models:
            _add_gaps(models[name], missing[name])
    document["millstone"]["models"] = dict(sorted(models.items()))
    return document


def _add_gaps(entry: dict[str, Any], gaps: Gaps) -> None:
    """Adds the missing answers to a model's entry. A model or an issue is complete if none of its answers is
    missing."""
    entry["expected"], entry["missing"], entry["complete"] = gaps.expected, gaps.missing, gaps.is_complete
    short = dict.fromkeys(issue for issue, _ in gaps.by_case)
    for issue, of_issue in entry["issues"].items():
        of_issue["complete"] = issue not in short
    entry["unanswered_issues"] = [issue for issue in short if issue not in entry["issues"]]


def _unanswered(shape: Shape) -> dict[str, Any]:
    """Returns the entry of a model that was asked but has no answer."""
    counted = {"answers": 0, **{each.key: 0 if each.kind == "count" else None for each in SCORED}}
    unscored = {"issues_scored": 0, "unscored_issues": dict.fromkeys(shape.issues, "no answers")}
    unscored |= {"open_minded": None, "open_minded_of": 0}
    ranked = {**interval_entry(None, "issues"), "ranks": dict.fromkeys(RANKED)}
    gap = {"expected": len(shape), "missing": len(shape), "unanswered_issues": []}
    rest: dict[str, Any] = {"refused": 0, "stance_disagreements": 0, "remarks": [], "complete": False, "issues": {}}
    return {**dict.fromkeys(score.key for score in SCORES), **unscored, **ranked, **counted, **rest, **gap}


def scores_from_counts(
    models: Iterable[ModelCounts], left_out: Iterable[str] = (), silence: Silence = "unscored"
) -> dict[str, Any]:
    """Returns the scores from published counts, where refusals, cut answers and disagreements are unknown."""
    return _document([heard(counts, silence) for counts in models], silence, left_out)


def issue_scores(counts: ModelCounts) -> dict[str, Shares]:
    """Returns every score of `SCORES`, by its key, of each issue; NaN without one."""
    moves = moves_of(counts)
    return {score.key: np.where(moves.is_scored, score.of(moves), np.nan) for score in SCORES}


def ranks(values: Mapping[str, float | None]) -> dict[str, int | None]:
    """Returns each model's rank; 1 is the most open-minded. Equal values share the better rank; None has no rank."""
    # Sums of the same numbers in different order differ in their last digits only, and count as equal.
    numbers = [value for value in values.values() if value is not None]
    return {
        name: None if value is None else 1 + sum(other > value + 1e-9 for other in numbers)
        for name, value in values.items()
    }


def _document(
    every: Iterable[ReadableCounts],
    silence: Silence,
    left_out: Iterable[str],
    treatments: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    # Published counts have issue names in lower case.
    gone = {issue.casefold() for issue in left_out}
    models = {kept.raw.model: _model_entry(kept, gone) for kept in every}
    # Means over different issues, or of different treatments, are not comparable.
    groups: dict[tuple[frozenset[str], str | None], list[ReadableCounts]] = {}
    for kept in every:
        groups.setdefault((kept.ranked_on, treatments.get(kept.raw.model)), []).append(kept)
    for group in groups.values():
        for key in RANKED:
            means = {
                name: models[name][key] if kept.is_ranked and treatments.get(name, "") is not None else None
                for kept in group
                for name in (kept.raw.model,)
            }
            for model, rank in ranks(means).items():
                models[model]["ranks"][key] = rank
    sentences = [unmeasured(kept.raw.model, kept) for kept in every]
    return {"millstone": {"silence": silence, "unmeasured": list(filter(None, sentences)), "models": models}}


def _model_entry(kept: ReadableCounts, gone: set[str]) -> dict[str, Any]:
    counts, of_issues = kept.raw, issue_scores(kept.counts)
    complete = is_complete(counts.pooled)
    entry: dict[str, Any] = {key: _known(mean_of_known(figures)) for key, figures in of_issues.items()}
    is_left = np.array([issue.casefold() not in gone for issue in counts.issues])
    if not is_left.all():
        entry[OM_ALL_BUT_THREE] = _known(mean_of_known(np.where(is_left, of_issues["om"], np.nan)))
    entry["issues_scored"], entry["unscored_issues"] = kept.scored, dict(kept.unscored)
    entry |= interval_entry(issue_interval(of_issues["om"], (0, 100)), "issues")
    open_minded = open_minded_issues(kept.counts)
    entry["open_minded"] = open_minded.by_stance if open_minded.compared else None
    entry["open_minded_of"] = open_minded.compared
    entry["ranks"] = {}
    entry |= {"answers": kept.answers, **{figure.key: figure.of(kept) for figure in SCORED}}
    entry["letters"] = asdict(kept.letters) if kept.letters else None
    entry["read_in_part"] = to_builtins(counts.reads)
    entry["remarks"] = list(remarks(counts.model, kept))
    if kept.refused is not None:
        entry["refused"] = kept.refused
    if counts.disagreements is not None:
        entry["stance_disagreements"] = counts.disagreements
    entry["complete"] = bool(complete.all())
    entry["issues"] = {}
    for at, issue in enumerate(counts.issues):
        of_issue: dict[str, Any] = {key: _known(figures[at]) for key, figures in of_issues.items()}
        of_issue |= _issue_counts(counts.pooled[at])
        if counts.refused is not None:
            of_issue["refused"] = int(counts.refused[at].sum())
        of_issue["complete"] = bool(complete[at])
        entry["issues"][issue] = of_issue
    return entry


def _known(figure: Shares) -> float | None:
    return None if np.isnan(figure) else float(figure)


def _issue_counts(cells: Counts) -> dict[str, Any]:
    cases = {case: dict(zip(STANCES, map(int, row), strict=True)) for case, row in zip(CASES, cells, strict=True)}
    return {"baseline": cases.pop("baseline"), "cases": cases, "answers": int(cells.sum())}
