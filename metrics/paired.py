"""Paired tests: whether two models differ in open-mindedness, issue by issue, or by chance.

Owns the sign-flip test, its correction for many pairs and the interval of a difference. A difference is over the issues
on which both models are scored, so it can be another than that of their published scores. Knows no record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .bootstrap import Interval, Resampling, Statistic, intervals
from .counts import ModelCounts
from .millstone import CASES, STANCES, Counts, Flags, Openness, Shares, mean_over_issues, openness

# Up to so many issues every combination of signs is tried.
EXACT_ISSUES = 12
# Fewer replicates in memory than for one model, as a batch holds the counts of all of them.
_RESAMPLING = Resampling(batch=100)


@dataclass(frozen=True)
class Comparison:
    """Two models over the `issues` both are scored on: the mean `difference`, first minus second, its 95% interval, the
    p value that it is nothing, and that p value adjusted for all the pairs compared. All None without such an issue."""

    first: str
    second: str
    issues: int
    difference: float | None
    interval: Interval
    p: float | None
    p_adjusted: float | None


def compare(
    models: Sequence[ModelCounts],
    kind: str = "om",
    seed: int = 0,
    flips: int = 10_000,
    resampling: Resampling | None = None,
) -> list[Comparison]:
    """Every pair of models, in their order, by one kind of score (`om`, `om_pro_share`, `om_no_flip`).

    p: a permutation test that flips the signs of the per-issue differences, two-sided, all combinations up to 12
    issues and `flips` random ones beyond. Adjusted by Holm. The interval resamples issues and then trials, the same
    for both models, as these answer the same prompts (by answer where only totals are known).
    """
    pairs = list(combinations(range(len(models)), 2))
    scores = [_scores(counts, kind) for counts in models]
    common = {pair: tuple(sorted(scores[pair[0]].keys() & scores[pair[1]])) for pair in pairs}
    found = _intervals(models, common, kind, seed, resampling or _RESAMPLING)
    differences: dict[tuple[int, int], Shares] = {}
    p_values: list[float | None] = []
    for pair in pairs:
        first, second = (scores[at] for at in pair)
        differences[pair] = np.array([first[issue] - second[issue] for issue in common[pair]])
        # Each pair starts from the same seed, so that its p does not depend on who else is compared.
        p_values.append(sign_flip(differences[pair], np.random.default_rng(seed), flips))
    return [
        Comparison(
            first=models[pair[0]].model,
            second=models[pair[1]].model,
            issues=len(common[pair]),
            difference=float(differences[pair].mean()) if common[pair] else None,
            interval=found.get(pair),
            p=p,
            p_adjusted=adjusted,
        )
        for pair, p, adjusted in zip(pairs, p_values, holm(p_values), strict=True)
    ]


def sign_flip(differences: Shares, rng: np.random.Generator, flips: int = 10_000) -> float | None:
    """How often random signs give a sum at least as far from 0 as the one seen; never 0. None without a difference.

    Exact up to `EXACT_ISSUES` differences; beyond, (b + 1) / (flips + 1), where b of the random flips do.
    """
    if flips < 1:
        raise ValueError(f"flips ({flips}) must be >= 1")
    number = len(differences)
    if not number:
        return None
    # Sums that are equal but for the last digits count as equal, or a tie would be lost to rounding.
    bound = abs(differences.sum()) - 1e-9 * np.abs(differences).sum()

    def at_least_as_far(flipped: Flags) -> int:
        sums = differences.sum() - 2 * (flipped.astype(np.float64) @ differences)
        return int((np.abs(sums) >= bound).sum())

    if number <= EXACT_ISSUES:
        every = np.arange(1 << number)[:, None] >> np.arange(number) & 1
        return at_least_as_far(every.astype(np.bool_)) / (1 << number)
    batches = [min(1_000, flips - first) for first in range(0, flips, 1_000)]
    further = sum(at_least_as_far(rng.integers(2, size=(batch, number), dtype=np.bool_)) for batch in batches)
    return (further + 1) / (flips + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment: the smallest of m p values times m, the next times m - 1, never less than the one before and
    at most 1. A missing one stays missing and is not counted."""
    known = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, at) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[at] = highest
    return adjusted


def _scores(counts: ModelCounts, kind: str) -> dict[str, float]:
    found = openness(counts.pooled)
    rows = zip(counts.issues, getattr(found, kind).tolist(), found.is_scored, strict=True)
    return {issue: score for issue, score, is_scored in rows if is_scored}


_Pair = tuple[int, int]


def _intervals(
    models: Sequence[ModelCounts],
    common: dict[_Pair, tuple[str, ...]],
    kind: str,
    seed: int,
    resampling: Resampling,
) -> dict[_Pair, Interval]:
    """The interval of each pair's difference. Pairs with the same issues and trials share their replicates, which costs
    less and changes none of them."""
    alike: dict[tuple[tuple[str, ...], bytes], list[_Pair]] = {}
    for pair, issues in common.items():
        alike.setdefault((issues, _trials(models, pair, issues)), []).append(pair)
    found: dict[_Pair, Interval] = {}
    for (issues, _), pairs in alike.items():
        members = sorted({at for pair in pairs for at in pair})
        batch = _Batch(len(members), kind)
        statistics = {f"{pair}": batch.difference(*map(members.index, pair)) for pair in pairs}
        side_by_side = _side_by_side([models[at] for at in members], issues)
        values = intervals(side_by_side, statistics, np.random.default_rng(seed), resampling)
        found |= {pair: values[f"{pair}"] for pair in pairs}
    return found


class _Batch:
    """The scores of every model in one batch of replicates, worked out once for all the pairs that ask for them."""

    def __init__(self, models: int, kind: str) -> None:
        self._models = models
        self._kind = kind
        self._counts: Counts | None = None
        self._scores: list[Openness] = []

    def difference(self, first: int, second: int) -> Statistic:
        """The mean difference of two models over the issues that both are scored on in a replicate."""

        def mean(counts: Counts) -> Shares:
            one, other = (self._of(counts)[at] for at in (first, second))
            both = one.is_scored & other.is_scored
            means = mean_over_issues(getattr(one, self._kind) - getattr(other, self._kind), both)
            return np.where(both.any(axis=-1), means, np.nan)

        return mean

    def _of(self, counts: Counts) -> list[Openness]:
        if counts is not self._counts:
            self._counts = counts
            self._scores = [openness(part) for part in np.split(counts, self._models, axis=-2)]
        return self._scores


def _trials(models: Sequence[ModelCounts], pair: _Pair, issues: tuple[str, ...]) -> bytes:
    """Which trials of which templates either model has answers to; empty where they are not known of both."""
    units = _side_by_side([models[at] for at in pair], issues).units
    return b"" if units is None else units.any(axis=(3, 4)).tobytes()


def _side_by_side(models: Sequence[ModelCounts], issues: tuple[str, ...]) -> ModelCounts:
    """Models as one whose cases are those of the first, then those of the second, and so on: what resamples it draws
    the same issues and trials for all. Templates and trials are matched by their rank among those a model has."""
    rows = [[counts.issues.index(issue) for issue in issues] for counts in models]
    pooled = np.concatenate([counts.pooled[at] for counts, at in zip(models, rows, strict=True)], axis=1)
    units = [counts.units[at] for counts, at in zip(models, rows, strict=True) if counts.units is not None]
    if len(units) < len(models):
        return ModelCounts("", issues, pooled)
    templates, trials = (max(own.shape[axis] for own in units) for axis in (1, 2))
    together = np.zeros((len(issues), templates, trials, len(models) * len(CASES), len(STANCES)), dtype=np.int64)
    for at, own in enumerate(units):
        cases = slice(at * len(CASES), (at + 1) * len(CASES))
        together[:, : own.shape[1], : own.shape[2], cases] = own
    return ModelCounts("", issues, pooled, together)
