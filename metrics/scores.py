"""Scores: what `scores.json` says of MillStone, as plain numbers.

Owns the shape of that part of the file: keys in a stable order, None where there is nothing to score, never a NaN. How
a score is computed is in `millstone`, its interval in `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .answers import AnswerReading, Tally, without_issues
from .bootstrap import Resampling, intervals, mean_openness
from .counts import CountRow, ModelCounts, counts_of, counts_of_rows
from .gaps import Gaps, Shape, gaps, inferred
from .millstone import CASES, STANCES, Counts, is_complete, mean_over_issues, openness

KINDS = ("om", "om_pro_share", "om_no_flip")


def scores(
    tally: Tally,
    seed: int = 0,
    resampling: Resampling | None = None,
    reading: AnswerReading = "recorded",
    left_out: Iterable[str] = (),
    asked: Mapping[tuple[str, float | None], Shape] | None = None,
) -> dict[str, Any]:
    """The scores of every model in a tally. `asked`: what each model was to answer at each temperature, from a
    manifest; without it, what the answers themselves suggest. Of the issues left out nothing is told."""
    gone, asked = _folded(left_out), asked or {}
    kept = [
        without_issues(each, [issue for issue in each.issues if issue.casefold() in gone])
        for each in tally.models(asked)
    ]
    found, missing = [], {}
    for answers in kept:
        shape = asked.get((answers.model, answers.temperature)) or inferred(answers, kept)
        found.append(counts_of(answers, reading))
        missing[answers.name] = gaps(answers, _without(shape, gone))
    document = _document([counts for counts in found if counts.pooled.any()], seed, resampling or Resampling())
    models: dict[str, Any] = document["millstone"]["models"]
    for pair, name in tally.names(asked).items():
        if name not in models and pair in asked:
            models[name] = _unanswered(len(_without(asked[pair], gone)))
        elif name in models:
            _tell_gaps(models[name], missing[name])
    document["millstone"]["models"] = dict(sorted(models.items()))
    return document


def _without(shape: Shape, gone: set[str]) -> Shape:
    return replace(shape, issues=tuple(issue for issue in shape.issues if issue.casefold() not in gone))


def _tell_gaps(entry: dict[str, Any], found: Gaps) -> None:
    """A model is complete when every answer it was to give is there; an issue, when none of its own is missing."""
    entry["expected"], entry["missing"], entry["complete"] = found.expected, found.missing, found.is_complete
    short = dict.fromkeys(issue for issue, _ in found.by_case)
    for issue, of_issue in entry["issues"].items():
        of_issue["complete"] = issue not in short
    entry["unanswered_issues"] = [issue for issue in short if issue not in entry["issues"]]


def _unanswered(expected: int) -> dict[str, Any]:
    """A model that was asked and of which there is no answer."""
    nothing = dict.fromkeys(KINDS)
    counted = {"answers": 0, "refused": 0, "stance_disagreements": 0, "complete": False, "issues": {}}
    gap = {"expected": expected, "missing": expected, "unanswered_issues": []}
    return {**nothing, "ci95": [None, None], "ranks": dict.fromkeys(KINDS), **counted, **gap}


def scores_from_counts(
    rows: Iterable[CountRow], seed: int = 0, resampling: Resampling | None = None, left_out: Iterable[str] = ()
) -> dict[str, Any]:
    """The same from published counts, where refusals and disagreements are unknown."""
    gone = _folded(left_out)
    kept = (row for row in rows if row.issue.casefold() not in gone)
    return _document(counts_of_rows(kept), seed, resampling or Resampling())


def _folded(issues: Iterable[str]) -> set[str]:
    """Issues are known by their names whatever their case, since published counts have them in lower case."""
    return {issue.casefold() for issue in issues}


def ranks(values: Mapping[str, float | None]) -> dict[str, int | None]:
    """1 is the most open-minded; equal values share the better rank; no value, no rank."""
    # Two sums of the same numbers in another order are one score: they differ in the last digits only.
    known = [value for value in values.values() if value is not None]
    return {
        name: None if value is None else 1 + sum(other > value + 1e-9 for other in known)
        for name, value in values.items()
    }


def _document(found: list[ModelCounts], seed: int, resampling: Resampling) -> dict[str, Any]:
    # Each model starts from the same seed, so that its interval does not depend on who is scored beside it.
    models = {counts.model: _model_entry(counts, np.random.default_rng(seed), resampling) for counts in found}
    # Means over different issues are no comparison: models are ranked among those scored on the same ones.
    groups: dict[frozenset[str], dict[str, Any]] = {}
    for model, entry in models.items():
        scored = frozenset(issue for issue, of_issue in entry["issues"].items() if of_issue["om"] is not None)
        groups.setdefault(scored, {})[model] = entry
    for group in groups.values():
        for kind in KINDS:
            for model, rank in ranks({model: entry[kind] for model, entry in group.items()}).items():
                models[model]["ranks"][kind] = rank
    return {"millstone": {"models": models}}


def _model_entry(counts: ModelCounts, rng: np.random.Generator, resampling: Resampling) -> dict[str, Any]:
    of_issues = openness(counts.pooled)
    is_scored = of_issues.is_scored
    complete = is_complete(counts.pooled)
    interval = intervals(counts, {"om": mean_openness("om")}, rng, resampling)["om"]
    entry: dict[str, Any] = {}
    for kind in KINDS:
        mean = mean_over_issues(getattr(of_issues, kind), is_scored)
        entry[kind] = float(mean) if is_scored.any() else None
    entry["ci95"] = [None, None] if interval is None else list(interval)
    entry["ranks"] = {}
    entry["answers"] = int(counts.pooled.sum())
    if counts.refused is not None:
        entry["refused"] = int(counts.refused.sum())
    if counts.disagreements is not None:
        entry["stance_disagreements"] = counts.disagreements
    entry["complete"] = bool(complete.all())
    entry["issues"] = {}
    for at, issue in enumerate(counts.issues):
        of_issue: dict[str, Any] = {
            kind: float(getattr(of_issues, kind)[at]) if is_scored[at] else None for kind in KINDS
        }
        of_issue |= _issue_counts(counts.pooled[at])
        if counts.refused is not None:
            of_issue["refused"] = int(counts.refused[at].sum())
        of_issue["complete"] = bool(complete[at])
        entry["issues"][issue] = of_issue
    return entry


def _issue_counts(cells: Counts) -> dict[str, Any]:
    cases = {case: dict(zip(STANCES, map(int, row), strict=True)) for case, row in zip(CASES, cells, strict=True)}
    return {"baseline": cases.pop("baseline"), "cases": cases, "answers": int(cells.sum())}
