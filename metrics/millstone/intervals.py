"""Intervals of a model's figures: over issues by Student's t, or over trials by resampling them within each issue.

Owns what is resampled, and the figure of each issue that an interval is over. Knows no records, and of the rules of a
score only `openness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from ..statistics.intervals import ENOUGH_CLUSTERS, LEAST_CLUSTERS, LEVEL, Bounds, Interval, mean_interval, why_none
from .counts import ModelCounts
from .openness import Counts, Flags, Shares, mean_of_known, openness

# "issues": would other issues give this? "trials": would the same issues, asked again, give this?
Over = Literal["issues", "trials"]
# From counts (..., issue, case, stance) to a figure of each issue (..., issue), NaN where an issue has none. The figure
# of the model is their mean.
ByIssue = Callable[[Counts], Shares]

REPLICATES = 2_000
# Number of replicates in memory at a time.
_BATCH = 500
_NORMAL = NormalDist().inv_cdf((1 + LEVEL) / 2)
_NOT_PROMISED = "over trials: coverage not promised"


@dataclass(frozen=True)
class IssueFigure:
    """A figure of each issue; `within` has its smallest and its largest possible value."""

    by_issue: ByIssue
    within: Bounds


def score_figure(kind: str, scored: Flags | None = None) -> IssueFigure:
    """Returns a score of one kind (`om`, `om_pro_share`, `om_no_flip`, `om_even`), from 0 to 100, as a figure. `scored`
    marks the issues that have one; None: all that have answers."""

    def by_issue(counts: Counts) -> Shares:
        found = openness(counts)
        is_scored = found.is_scored if scored is None else found.is_scored & scored
        return np.where(is_scored, getattr(found, kind), np.nan)

    return IssueFigure(by_issue, (0, 100))


def intervals(
    counts: ModelCounts, figures: Mapping[str, IssueFigure], over: Over = "issues", seed: int = 0
) -> dict[str, Interval | None]:
    """Returns the interval of each figure; None where no issue has one."""
    if not counts.pooled.any():
        return dict.fromkeys(figures)
    observed = {name: figure.by_issue(counts.pooled) for name, figure in figures.items()}
    known = {name: values[~np.isnan(values)] for name, values in observed.items()}
    found: dict[str, Interval | None] = dict.fromkeys(figures)
    there = {name: figures[name] for name, values in known.items() if values.size}
    if over == "issues" or not there:
        return found | {
            name: mean_interval(known[name], within=figure.within, of="issues") for name, figure in there.items()
        }
    means = {name: float(known[name].mean()) for name in there}
    trials = _fewest_trials(counts)
    if trials < LEAST_CLUSTERS:
        return found | {
            name: Interval(mean, None, None, trials, LEVEL, why_none(trials, "trials of an issue"), "trials")
            for name, mean in means.items()
        }
    replicates: dict[str, list[Shares]] = {name: [] for name in there}
    for drawn in _replicates(counts, np.random.default_rng(seed)):
        for name, figure in there.items():
            replicates[name].append(mean_of_known(figure.by_issue(drawn)))
    return found | {
        name: _over_trials(means[name], np.concatenate(replicates[name]), trials, figure.within)
        for name, figure in there.items()
    }


def _over_trials(mean: float, replicates: Shares, trials: int, within: Bounds) -> Interval:
    """Returns an interval by the replicates' standard deviation around the observed mean. Resampled trials add flips,
    so the replicates of OM, and with them their percentiles, are too high."""
    deviation = float(np.nanstd(replicates))
    if deviation <= 1e-12 * max(1.0, abs(mean)):
        return Interval(mean, None, None, trials, LEVEL, "no interval: trials drawn again all give the same", "trials")
    low, high = max(within[0], mean - _NORMAL * deviation), min(within[1], mean + _NORMAL * deviation)
    doubt = (
        f"approximate: fewer than {ENOUGH_CLUSTERS} trials of an issue ({trials}), " if trials < ENOUGH_CLUSTERS else ""
    )
    return Interval(mean, low, high, trials, LEVEL, doubt + _NOT_PROMISED, "trials")


def _fewest_trials(counts: ModelCounts) -> int:
    """Returns the number of trials of the issue with the fewest, over its templates; if only totals are known, the
    answers of its smallest case. Returns 0 if no prompt was asked twice: the effect of repetition is then unknown."""
    if counts.units is None:
        totals = counts.pooled.sum(axis=-1)
        return int(totals[totals > 0].min())
    trials_of_template = counts.units.any(axis=(3, 4)).sum(axis=2)
    if not (trials_of_template > 1).any():
        return 0
    of_issue = trials_of_template.sum(axis=1)
    return int(of_issue[of_issue > 0].min())


def _replicates(counts: ModelCounts, rng: np.random.Generator) -> Iterator[Counts]:
    """Yields resampled counts (replicate, issue, case, stance) of the same issues."""
    for first in range(0, REPLICATES, _BATCH):
        size = min(_BATCH, REPLICATES - first)
        if counts.units is None:
            yield _answers_again(counts.pooled, size, rng)
        else:
            yield _trials_again(counts.units, size, rng)


def _trials_again(units: Counts, size: int, rng: np.random.Generator) -> Counts:
    """Returns `size` replicates of the counts, with the answered trials of each template of each issue resampled. The
    unit is the trial: in the `released` protocol its answers share a draw of arguments and are dependent."""
    drawn = np.zeros((len(units), size, units[0, 0, 0].size))
    # Issue by issue, and as a product of "how often each trial was drawn" with its counts: gathering the drawn trials
    # of all replicates at once would take gigabytes. Floats, since only they multiply fast; these counts are exact.
    for issue, templates in enumerate(units.reshape(*units.shape[:3], -1).astype(np.float64)):
        for every_trial in templates:
            answered = every_trial[every_trial.any(axis=1)]
            if trials := len(answered):
                times = rng.multinomial(trials, np.full(trials, 1 / trials), size=size)
                drawn[issue] += times.astype(np.float64) @ answered
    return np.rint(drawn).astype(np.int64).swapaxes(0, 1).reshape(size, len(units), *units.shape[3:])


def _answers_again(pooled: Counts, size: int, rng: np.random.Generator) -> Counts:
    """Returns `size` replicates of the counts, each case of each issue drawn from a multinomial of its shares."""
    totals = pooled.sum(axis=-1)
    shares = pooled / np.maximum(totals, 1)[..., None]
    drawn: Counts = rng.multinomial(totals, shares, size=(size, *totals.shape))
    return drawn
