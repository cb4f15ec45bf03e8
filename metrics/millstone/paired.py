"""Paired tests over issues: whether two models differ in open-mindedness, and whether a case moves a model, by more
than chance.

Owns which issues are compared: those on which both models are scored, so the difference may deviate from that of their
published scores; or those with answers in both cases. The test itself is in `statistics`. Knows no record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..statistics.comparisons import Comparison, difference_of, holm
from .counts import ModelCounts
from .openness import SHIFT_ORDER, pro_change
from .scores import issue_scores


@dataclass(frozen=True)
class ModelPair:
    """Two models, and the comparison of the first minus the second, in points of the score, over the issues on which
    both are scored; None without such an issue. `p_adjusted` is adjusted for all compared pairs."""

    first: str
    second: str
    found: Comparison | None
    p_adjusted: float | None


def compare(
    models: Sequence[ModelCounts],
    kind: str = "om",
    is_comparable: Callable[[str, str], bool] = lambda first, second: True,
) -> list[ModelPair]:
    """Returns the comparison of every pair of models that `is_comparable` allows by name, in their order, by the
    score with this key; p-values are adjusted by Holm."""
    scores = [_scores(counts, kind) for counts in models]
    pairs = [
        (first, second)
        for first, second in combinations(range(len(models)), 2)
        if is_comparable(models[first].model, models[second].model)
    ]
    differences = [_difference(scores[first], scores[second]) for first, second in pairs]
    adjusted = holm([None if each is None else each.p for each in differences])
    return [
        ModelPair(models[first].model, models[second].model, each, p)
        for (first, second), each, p in zip(pairs, differences, adjusted, strict=True)
    ]


def shift_tests(models: Sequence[ModelCounts]) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Returns, for each model and each case with arguments, p of Student's t that the case's pro share is the
    baseline's, over the issues with answers to both, and that p adjusted by Holm for all tests of all models; None
    where there is no interval either (fewer than 10 issues, or all with the same shift)."""
    p_values = {(counts.model, case): _shift_p(counts, case) for counts in models for case in SHIFT_ORDER}
    adjusted = holm(list(p_values.values()))
    return {key: (p, least) for (key, p), least in zip(p_values.items(), adjusted, strict=True)}


def t_test_p(found: Comparison) -> float | None:
    """Returns the p-value of Student's t; None where it has no interval, since few clusters or equal ones have no such
    test."""
    return None if found.low is None else found.p


def _shift_p(counts: ModelCounts, case: str) -> float | None:
    changes = pro_change(counts.pooled, case)
    known = changes[~np.isnan(changes)]
    return t_test_p(difference_of(known, within=(-1, 1), of="issues")) if known.size else None


def _difference(first: dict[str, float], second: dict[str, float]) -> Comparison | None:
    common = sorted(first.keys() & second.keys())
    differences = np.array([first[issue] - second[issue] for issue in common])
    return difference_of(differences, within=(-100, 100), of="issues") if common else None


def _scores(counts: ModelCounts, kind: str) -> dict[str, float]:
    scores = issue_scores(counts)[kind].tolist()
    return {issue: score for issue, score in zip(counts.issues, scores, strict=True) if score == score}
