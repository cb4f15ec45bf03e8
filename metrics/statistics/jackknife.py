"""Intervals of figures that are no means, from 0 to 1: Student's t over the figure without each cluster in turn.

Owns when such an interval can be given. Knows no figure and uses no random numbers.
"""

from __future__ import annotations

import math

import numpy as np

from .distributions import LEVEL, t_quantile
from .intervals import ENOUGH_CLUSTERS, Interval, Values, why_none

# Simulated (docs/intervals.md): with fewer, too many intervals miss.
LEAST_OF_A_KIND = 5


def jackknife_interval(figure: float, without: Values, *, rarest: int, level: float = LEVEL, of: str) -> Interval:
    """Returns a figure from 0 to 1 and its interval: that of its logit, whose standard error is the jackknife's.

    without: the figure without each cluster.
    rarest: how many clusters there are of the rarest kind, such as a label; fewer than 5 have no interval, and neither
    have fewer than 30 clusters.
    of: what the clusters are, as in "items".

    Percentiles of a bootstrap miss more often at every size, above all near 1 (simulated, docs/intervals.md).
    """
    number = len(without)

    def none(why: str) -> Interval:
        return Interval(figure, None, None, number, level, why, of)

    if number < ENOUGH_CLUSTERS:
        return none(why_none(number, of, ENOUGH_CLUSTERS))
    if rarest < LEAST_OF_A_KIND:
        return none(f"no interval: fewer than {LEAST_OF_A_KIND} {of} of one kind ({rarest})")
    if not (0 < figure < 1 and np.all((without > 0) & (without < 1))):
        return none(f"no interval: the figure, or that without one of the {of}, is 0 or 1")
    logits = np.log(without / (1 - without))
    error = math.sqrt((number - 1) / number * float(((logits - logits.mean()) ** 2).sum()))
    middle, half = math.log(figure / (1 - figure)), t_quantile(level, number - 1) * error
    if half == 0:
        return none(f"no interval: the figure is the same without any one of the {of}")
    low, high = (1 / (1 + math.exp(-end)) for end in (middle - half, middle + half))
    return Interval(figure, low, high, number, level, None, of)
