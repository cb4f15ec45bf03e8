"""Paired comparisons: tests whether two columns of figures for the same things differ by more than chance.

Owns the paired test and its correction for many pairs. Knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from ...format import count_text
from .distributions import LEVEL, t_p_value
from .intervals import (
    LEAST_SHARES,
    Bounds,
    Interval,
    Values,
    are_binary,
    cluster_figures,
    mean_interval,
    standard_error,
)
from .shares import paired_difference, sign_test


class Comparison(Struct, frozen=True):
    """The mean difference of paired figures, first minus second, with an interval and a p-value.

    difference: the mean over clusters of each cluster's own difference.
    low: the lower end of the confidence interval; None without an interval; `note` says why.
    high: the upper end; None without an interval; `note` says why.
    p: two-sided, that there is no difference. With an interval it is Student's, or the exact sign test's (McNemar's)
    where all figures are 0 or 1, and below 1 - level exactly where the interval excludes 0; without one it is that of
    the exact sign-flip test.
    clusters: how many clusters there are.
    level: how often an interval like this one holds the true difference.
    note: None for an interval to be taken as it stands; else that it is approximate, or why there is none.
    of: what the clusters are, as in "issues".
    figures: the single differences of the clusters, where there are too few of them for an interval; else empty.
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    clusters: int
    level: float = LEVEL
    note: str | None = None
    of: str = "clusters"
    figures: tuple[float, ...] = ()


def compare(
    a: Iterable[float],
    b: Iterable[float],
    clusters: Iterable[Hashable] | None = None,
    *,
    within: Bounds | None = None,
    level: float = LEVEL,
) -> Comparison:
    """Returns the paired comparison of two columns: `a[i]` and `b[i]` are figures of the same thing, as two
    models' scores of one item.

    clusters: which cluster each pair belongs to, as the item of which it is a trial; None: each pair is its own.
    within: the smallest and the largest possible value of both columns, as (0, 1): the difference is clipped to what
    that allows.
    level: how often such intervals are to hold the true difference.

    Raises ValueError as `interval` does, and for columns of different lengths.
    """
    first, second = cluster_figures(a, within=within, name="a"), cluster_figures(b, within=within, name="b")
    if len(first) != len(second):
        raise ValueError(f"a ({len(first):,}) and b ({len(second):,}) must be as many: pair i is a[i] and b[i]")
    widest = None if within is None else (within[0] - within[1], within[1] - within[0])
    figures = cluster_figures(first - second, clusters, name="pairs")
    return difference_of(figures, within=widest, level=level, of_shares=are_binary(first) and are_binary(second))


def difference_of(
    figures: Values,
    *,
    within: Bounds | None = None,
    level: float = LEVEL,
    of: str = "clusters",
    of_shares: bool = False,
) -> Comparison:
    """Returns the comparison from the difference of each cluster, `figures`, of which there must be at least one.
    `within` are the least and the largest possible difference (None: not known), `level` is that of the interval,
    and `of` names the clusters, as in "issues". `of_shares` says that all compared values are 0 or 1; where each
    cluster differs by -1, 0 or 1, test and interval are then exact."""
    if not 0 < level < 1:
        raise ValueError(f"level ({level}) must lie between 0 and 1, as in 0.95")
    if of_shares and len(figures) >= LEAST_SHARES and np.isin(figures, (-1, 0, 1)).all():
        ahead, behind = int((figures > 0).sum()), int((figures < 0).sum())
        ends = paired_difference(ahead, behind, len(figures), level)
        return Comparison(float(figures.mean()), *ends, sign_test(ahead, behind), len(figures), level, None, of)
    span = mean_interval(figures, within=within, level=level, of=of)
    p = _p_value(figures, span)
    return Comparison(span.mean, span.low, span.high, p, span.clusters, level, span.note, of, span.figures)


def paired_entry(
    first: Mapping[str, float], second: Mapping[str, float], *, within: Bounds | None, of: str, of_shares: bool
) -> dict[str, Any] | None:
    """Returns the comparison of two columns of figures by cluster as an entry for `scores.json`; None if they have no
    cluster in common. `within`: the least and the largest figure possible; the others as in `difference_of`."""
    differences = np.array([first[name] - second[name] for name in first if name in second], dtype=np.float64)
    differences = differences[~np.isnan(differences)]
    if not differences.size:
        return None
    widest = None if within is None else (within[0] - within[1], within[1] - within[0])
    compared = difference_of(differences, within=widest, of=of, of_shares=of_shares)
    return {
        "difference": compared.difference,
        "ci95": [compared.low, compared.high],
        "ci95_note": compared.note,
        "p": compared.p,
        of: compared.clusters,
    }


def _p_value(figures: Values, interval: Interval) -> float:
    if interval.low is not None:
        return t_p_value(interval.mean / standard_error(figures), len(figures) - 1)
    if interval.figures:
        return sign_flip(figures)
    # All equal: only the observed signs and their opposites give a sum as far from 0.
    return 2.0 ** (1 - len(figures)) if interval.mean else 1.0


def sign_flip(differences: Values) -> float:
    """Returns the p-value of the exact sign-flip test: the share of all combinations of signs whose sum is at least as
    far from 0 as the observed one. Only for few differences, since each doubles the combinations."""
    number = len(differences)
    signs = 1 - 2 * (np.arange(1 << number)[:, None] >> np.arange(number) & 1)
    # Sums that differ only by rounding count as equal, so that ties are kept.
    bound = abs(differences.sum()) - 1e-9 * np.abs(differences).sum()
    return float((np.abs(signs @ differences) >= bound).mean())


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Returns the p-values with Holm's adjustment: the smallest of m times m, the next times m - 1, never less than the
    one before and at most 1. A missing one stays None and is not counted."""
    ranked = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, at) in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - rank) * p))
        adjusted[at] = highest
    return adjusted


def p_text(p: float, adjusted: float, tests: int, of: str = "test") -> str:
    """Returns a p-value in words: of several tests the one that Holm adjusted, over how many, and the one without."""
    if tests < 2:
        return f"p = {p:.3g}"
    return f"p = {adjusted:.3g} (Holm over {count_text(tests, of)}; {p:.3g} without)"


def entry_text(entry: Mapping[str, Any], of: str, tests: int, kind: str = "test") -> str:
    """Returns an entry of `scores.json` on a paired difference in words. `tests`: how many p-values are adjusted
    together; `kind` is the word for one of them."""
    low, high = entry["ci95"]
    note = f" ({entry['ci95_note']})" if entry["ci95_note"] else ""
    interval = f" (95% interval {low:+.3f} to {high:+.3f})" if low is not None else note
    p = "" if entry["p"] is None else f", {p_text(entry['p'], entry['p_adjusted'], tests, kind)}"
    return f"{entry['difference']:+.3f}{interval} over {count_text(entry[of], of.removesuffix('s'))}{p}"
