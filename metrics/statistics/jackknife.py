"""Intervals of figures from 0 to 1 that are no means of independent rows: Student's t over the figure without each
cluster in turn.

Owns when such an interval can be given. Knows no figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distributions import LEVEL, t_quantile
from .intervals import ENOUGH_CLUSTERS, Interval, why_none

Mask = NDArray[np.bool_]
# Simulated (docs/intervals.md): with fewer, too many intervals miss.
LEAST_OF_A_KIND = 5
# Of more clusters, so many parts are left out in turn: the figure is not computed a million times.
PARTS_MOST = 200


def jackknife_interval(
    figure: Callable[[Mask], float],
    cluster: NDArray[np.int64],
    kind: NDArray[Any],
    *,
    freedom: float = math.inf,
    level: float = LEVEL,
    of: str,
) -> Interval | None:
    """Returns a figure from 0 to 1 and its interval: that of its logit, whose standard error is the jackknife's. None
    if the figure is not defined.

    figure: gives the figure of the rows where a mask is true; NaN if it is not defined.
    cluster: the cluster of each row, such as its item.
    kind: the kind of each row as a number, such as its label. Fewer than 5 clusters of the rarest kind have no
    interval, and neither have fewer than 30 clusters.
    freedom: the most degrees of freedom of Student's t, where few rows decide the error.
    of: what the clusters are, as in "items".

    Percentiles of a bootstrap miss more often at every size, above all near 1 (simulated, docs/intervals.md).
    """
    names, place = np.unique(cluster, return_inverse=True)
    number = len(names)
    value = figure(np.ones(len(cluster), dtype=np.bool_)) if number else math.nan
    if math.isnan(value):
        return None

    def none(why: str) -> Interval:
        return Interval(value, None, None, number, level, why, of)

    if number < ENOUGH_CLUSTERS:
        return none(why_none(number, of, ENOUGH_CLUSTERS))
    clusters_of = np.unique(np.unique(kind.astype(np.int64) * number + place) // number, return_counts=True)[1]
    rarest = int(clusters_of.min()) if len(clusters_of) > 1 else 0
    if rarest < LEAST_OF_A_KIND:
        return none(f"no interval: fewer than {LEAST_OF_A_KIND} {of} of one kind ({rarest})")
    # The same order each time, and none of the data's own, such as every fourth row of one label.
    part = np.random.default_rng(0).permutation(number)[place] % PARTS_MOST
    without = np.array([figure(part != left) for left in range(min(number, PARTS_MOST))])
    if not (0 < value < 1 and np.all((without > 0) & (without < 1))):
        return none(f"no interval: the figure, or that without one of the {of}, is 0 or 1")
    logits, parts = np.log(without / (1 - without)), len(without)
    error = math.sqrt((parts - 1) / parts * float(((logits - logits.mean()) ** 2).sum()))
    middle, half = math.log(value / (1 - value)), t_quantile(level, min(parts - 1, freedom)) * error
    if half == 0:
        return none(f"no interval: the figure is the same without any one of the {of}")
    low, high = (1 / (1 + math.exp(-end)) for end in (middle - half, middle + half))
    return Interval(value, low, high, number, level, None, of)
