"""Confidence intervals of means and of correlations: Student's t over the figures of independent clusters, and exact
intervals where these are shares of 0/1 values.

Owns when an interval can be given, and the reason if it can't. A cluster was drawn independently: an issue, a
conversation, an item of a data set. Knows no benchmark and uses no random numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .distributions import LEVEL, t_p_value, t_quantile
from .shares import effective_number, share_interval

Values = NDArray[np.float64]
Bounds = tuple[float, float]

# Simulated (docs/intervals.md): below 10 clusters too many intervals miss, from 30 on few enough.
LEAST_CLUSTERS, ENOUGH_CLUSTERS = 10, 30
# The range of shares.
SHARE: Bounds = (0, 1)
# The exact interval of figures that are all 0 or 1 is right for any number; of fewer it says next to nothing.
LEAST_SHARES = 5
# Squares of larger values, and their sums, overflow a float.
_LARGEST = 1e150
# A relative difference below this is rounding error.
_ROUNDING = 1e-12


class Interval(Struct, frozen=True):
    """A mean over clusters, and its confidence interval.

    mean: the mean of the clusters' figures; each cluster counts once, however many values it has.
    low: the lower end of the interval; None without an interval; `note` says why.
    high: the upper end; None without an interval; `note` says why.
    clusters: how many clusters there are.
    level: how often an interval like this one holds the true mean.
    note: None for an interval to be taken as it stands; else that it is approximate, or why there is none.
    of: what the clusters are, as in "issues".
    figures: the single figures of the clusters, where there are too few of them for an interval; else empty.
    """

    mean: float
    low: float | None
    high: float | None
    clusters: int
    level: float = LEVEL
    note: str | None = None
    of: str = "clusters"
    figures: tuple[float, ...] = ()


class Correlation(Struct, frozen=True):
    """Pearson's correlation over rows that belong to clusters, with an interval and a p-value by the same method.

    r: the correlation over all rows; None where one side does not vary.
    low: the lower end of the interval; None without an interval; `note` says why.
    high: the upper end; None without an interval; `note` says why.
    p: two-sided, that the two sides are unrelated; below 1 - level exactly where the interval excludes 0; None
    without an interval.
    rows: how many pairs of values there are.
    clusters: how many clusters these belong to.
    level: how often an interval like this one holds the true correlation.
    note: None for an interval to be taken as it stands; else that it is approximate, or why there is none.
    of: what the clusters are.
    """

    r: float | None
    low: float | None
    high: float | None
    p: float | None
    rows: int
    clusters: int
    level: float = LEVEL
    note: str | None = None
    of: str = "clusters"


def interval(
    values: Iterable[float],
    clusters: Iterable[Hashable] | None = None,
    *,
    within: Bounds | None = None,
    level: float = LEVEL,
    of: str = "clusters",
) -> Interval:
    """Returns the mean of `values` and its confidence interval: by Student's t, or exact for shares.

    clusters: which cluster each value belongs to, where several values are not independent, as the trials of one item
    are not; the figure of a cluster is the mean of its values. None: each value is a cluster of its own.
    within: the smallest and the largest possible value, as (0, 1) for shares: the interval is clipped to it. None:
    (0, 1) if all values are 0 or 1, else not known.
    level: how often such intervals are to hold the true mean.
    of: what the clusters are called in `note`.

    Fewer than 10 clusters, or clusters that all have the same figure, have no interval, and `note` says so; 10 to 29
    have an approximate one. Values that are all 0 or 1 have an exact interval: from 5 clusters on, also if all are
    equal, where the values of each cluster are; else from 10 on. Raises ValueError for no value, a value that is no
    finite number or lies outside `within`, and for another number of clusters than of values.
    """
    every = _checked(values, "values")
    if within is None and are_binary(every):
        within = SHARE
    names = None if clusters is None else list(clusters)
    figures = cluster_figures(every, names, within)
    sizes, shares = {*Counter(names).values()}, figures if are_binary(every) else None
    most = len(figures) * min(sizes) if len(sizes) > 1 else math.inf
    return mean_interval(figures, within=within, level=level, of=of, shares=shares, most=most)


def cluster_figures(
    values: Iterable[float],
    clusters: Iterable[Hashable] | None = None,
    within: Bounds | None = None,
    name: str = "values",
) -> Values:
    """Returns the mean value of each cluster, in order of first appearance. Raises ValueError as `interval` does."""
    every = _checked(values, name)
    if within is not None:
        low, high = within
        if not low < high:
            raise ValueError(f"within ({low}, {high}) must be a smaller and a larger number, as (0, 1)")
        outside = every[(every < low) | (every > high)]
        if outside.size:
            raise ValueError(f"{name} must lie within ({low}, {high}), got {outside[0]:g}")
    if clusters is None:
        return every
    place, number = places_of(clusters)
    if len(place) != len(every):
        raise ValueError(f"clusters ({len(place):,}) must be as many as {name} ({len(every):,})")
    return np.bincount(place, every, minlength=number) / np.bincount(place, minlength=number)


def places_of(clusters: Iterable[Hashable]) -> tuple[NDArray[np.int64], int]:
    """Returns each row's cluster as a number, from 0 in order of first appearance, and the number of clusters."""
    numbers: dict[Hashable, int] = {}
    place = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    return np.array(place, dtype=np.int64), len(numbers)


def are_binary(values: Values) -> bool:
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


def mean_interval(
    figures: Values,
    *,
    within: Bounds | None = None,
    level: float = LEVEL,
    of: str = "clusters",
    shares: Values | None = None,
    most: float = math.inf,
) -> Interval:
    """Returns the mean and its interval from the figure of each cluster; there must be at least one. `within` are the
    least and the largest possible mean, to which the interval is cut (None: not known); `level` is the interval's,
    such as 0.95; `of` names the clusters, as in "issues". `shares` has the share of 1 in each cluster where all values
    are 0 or 1, and counts with `within` (0, 1); None for other values. `most`: how many independent things these are at
    most; a cluster asked once says no more than one value, however often the others were asked."""
    if not 0 < level < 1:
        raise ValueError(f"level ({level}) must lie between 0 and 1, as in 0.95")
    mean, number = float(figures.mean()), len(figures)
    slack = _ROUNDING * abs(mean)
    if within is not None and not within[0] - slack <= mean <= within[1] + slack:
        return Interval(mean, None, None, number, level, f"no interval: {of} lie outside {range_text(within)}", of)
    if within == SHARE and are_binary(figures):
        if number < LEAST_SHARES:
            none = why_none(number, of, LEAST_SHARES)
            return Interval(mean, None, None, number, level, none, of, tuple(figures.tolist()))
        return Interval(mean, *share_interval(float(figures.sum()), number, level), number, level, None, of)
    if number < LEAST_CLUSTERS:
        return Interval(mean, None, None, number, level, why_none(number, of), of, tuple(figures.tolist()))
    error = standard_error(figures)
    if within == SHARE and shares is not None:
        rarer = min(int((shares > 0).sum()), int((shares < 1).sum()))
        alike = number if are_equal(figures) else effective_number(mean, error, rarer, number, level)
        alike = min(alike, most)
        return Interval(mean, *share_interval(mean * alike, alike, level), number, level, None, of)
    if are_equal(figures):
        return Interval(mean, None, None, number, level, f"no interval: all {number:,} {of} have the same figure", of)
    half = t_quantile(level, number - 1) * error
    low, high = (-math.inf, math.inf) if within is None else within
    return Interval(mean, max(low, mean - half), min(high, mean + half), number, level, _doubt(number, of), of)


def interval_entry(figure: Interval | Correlation | None, of: str) -> dict[str, Any]:
    """Returns an interval as `scores.json` has it; None: there is no figure."""
    if figure is None:
        return {"ci95": [None, None], "ci95_of": of, "ci95_note": "no interval: there is no figure"}
    return {"ci95": [figure.low, figure.high], "ci95_of": figure.of, "ci95_note": figure.note}


def ratio_figures(amounts: Values, sizes: Values) -> Values:
    """Returns each cluster's (the last axis) contribution to the ratio of two sums; their mean is the ratio. If all
    sizes are equal, these are the clusters' own ratios. For means over rows, where clusters have different numbers
    of rows."""
    ratio = amounts.sum(axis=-1, keepdims=True) / sizes.sum(axis=-1, keepdims=True)
    contributions: Values = ratio + (amounts - ratio * sizes) / sizes.mean(axis=-1, keepdims=True)
    return contributions


def standard_error(figures: Values) -> float:
    return float(figures.std(ddof=1)) / math.sqrt(len(figures))


def are_equal(figures: Values) -> bool:
    return bool(np.ptp(figures) <= _ROUNDING * np.abs(figures).max())


def why_none(number: int, of: str, least: int = LEAST_CLUSTERS) -> str:
    return f"no interval: fewer than {least} {of} ({number})"


def range_text(within: Bounds) -> str:
    return f"the range of {within[0]:g} to {within[1]:g}"


def _doubt(number: int, of: str) -> str | None:
    return f"approximate: fewer than {ENOUGH_CLUSTERS} {of} ({number})" if number < ENOUGH_CLUSTERS else None


def correlation(
    x: Values,
    y: Values,
    clusters: Sequence[Hashable] | None = None,
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    of: str = "clusters",
) -> Correlation:
    """Returns the correlation over the rows where both values are known (no NaN). `groups` has the group of each row:
    the correlation is then within groups, of each row's values minus their means in its group. None: one group.

    Interval and p are those of Fisher's z = atanh(r): Student's t with a jackknife's standard error, which leaves out
    one cluster at a time. The error is at least that of independent normal rows, 1 / sqrt(rows - 3), since the
    jackknife's is too small where a few rows decide (simulated). Each group after the first takes a degree of freedom,
    of rows and of clusters.
    """
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    rows = len(x)
    names = (
        range(rows) if clusters is None else [name for name, is_known in zip(clusters, both, strict=True) if is_known]
    )
    place, number = places_of(names)
    kind, kinds = places_of(np.array(groups, dtype=object)[both] if groups is not None else [0] * rows)
    freedom = number - 1 - kinds

    def without(r: float | None, why: str) -> Correlation:
        return Correlation(r, None, None, None, rows, number, level, f"no interval: {why}", of)

    if rows < 2:
        return without(None, "one side does not vary")
    dx, dy = (side - (np.bincount(kind, side) / np.bincount(kind))[kind] for side in (x, y))
    if _is_rounding(dx, x) or _is_rounding(dy, y):
        return without(None, "one side does not vary")
    terms = (np.ones(rows), dx, dy, dx * dx, dy * dy, dx * dy)
    # Of each cluster in each group.
    place = place * kinds + kind
    sums = np.stack([np.bincount(place, term, minlength=number * kinds) for term in terms], axis=-1)
    sums = sums.reshape(number, kinds, len(terms))
    total = sums.sum(axis=0)
    r = float(_r_of(total))
    if number < LEAST_CLUSTERS:
        return Correlation(r, None, None, None, rows, number, level, why_none(number, of), of)
    if freedom < 1:
        return without(r, f"{kinds:,} groups leave {number:,} {of} no degree of freedom")
    left = _r_of(total - sums)
    if abs(r) > 1 - _ROUNDING or np.isnan(left).any() or np.abs(left).max() > 1 - _ROUNDING:
        return without(r, f"all {of}, or all but one, lie on one line")
    z = math.atanh(r)
    jackknife = (number - 1) * standard_error(np.arctanh(left))
    error = max(jackknife, 1 / math.sqrt(max(1, rows - 2 - kinds)))
    half = t_quantile(level, freedom) * error
    p = t_p_value(z / error, freedom)
    return Correlation(r, math.tanh(z - half), math.tanh(z + half), p, rows, number, level, _doubt(number, of), of)


def _is_rounding(deviations: Values, values: Values) -> bool:
    return bool(np.ptp(deviations) <= _ROUNDING * np.abs(values).max())


def _r_of(sums: Values) -> Values:
    """Returns Pearson's r within groups (the last axis but one) from the sums of 1, x, y, xx, yy and xy (the last
    axis); NaN where one side does not vary."""
    number, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    number = np.maximum(number, 1)
    across, along, both = ((xx - x * x / number).sum(-1), (yy - y * y / number).sum(-1), (xy - x * y / number).sum(-1))
    varies = (across > _ROUNDING * xx.sum(-1)) & (along > _ROUNDING * yy.sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        r: Values = np.where(varies, np.clip(both / np.sqrt(across * along), -1, 1), np.nan)
    return r


def _checked(values: Iterable[float], name: str) -> Values:
    try:
        every = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers ({error})") from error
    if every.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {every.ndim}")
    if not every.size:
        raise ValueError(f"{name} must hold at least one number, got none")
    if (large := np.abs(every) > _LARGEST).any() and np.isfinite(every).all():
        raise ValueError(f"{name} must lie within {_LARGEST:g} of 0, got {every[large][0]:g}")
    if not np.isfinite(every).all():
        at = int(np.flatnonzero(~np.isfinite(every))[0])
        raise ValueError(f"{name} must be finite numbers, got {every[at]} at place {at}: leave out what has no value")
    return every
