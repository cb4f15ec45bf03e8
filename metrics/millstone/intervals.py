"""Intervals of a model's figures over issues, by Student's t.

Owns the figure of each issue that an interval is over. Knows no records, and of the rules of a score only `openness`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..statistics.intervals import Bounds, Interval, mean_interval
from .counts import ModelCounts
from .openness import Counts, Flags, Shares, openness

# From counts (..., issue, case, stance) to a figure of each issue (..., issue), NaN where an issue has none. The figure
# of the model is their mean.
ByIssue = Callable[[Counts], Shares]


@dataclass(frozen=True)
class IssueFigure:
    """A figure of each issue; `within` has its smallest and its largest possible value."""

    by_issue: ByIssue
    within: Bounds


def score_figure(kind: str, scored: Flags | None = None) -> IssueFigure:
    """Returns a score of one kind (`om`, `om_pro_share`, `om_no_flip`), from 0 to 100, as a figure. `scored`
    marks the issues that have one; None: all that have answers."""

    def by_issue(counts: Counts) -> Shares:
        scores = openness(counts)
        is_scored = scores.is_scored if scored is None else scores.is_scored & scored
        return np.where(is_scored, getattr(scores, kind), np.nan)

    return IssueFigure(by_issue, (0, 100))


def interval_of(counts: ModelCounts, figure: IssueFigure) -> Interval | None:
    """Returns the interval of a figure; None where no issue has one."""
    if not counts.pooled.any():
        return None
    values = figure.by_issue(counts.pooled)
    values = values[~np.isnan(values)]
    return mean_interval(values, within=figure.within, of="issues") if values.size else None
