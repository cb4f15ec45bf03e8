"""Bootstrap: how far a model's figures would move with other issues and other trials.

Owns the resampling, issues first and then what was repeated within them, and the percentile interval. The random
source is passed in. Knows no records, and of the rules of a score only `openness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .counts import ModelCounts
from .millstone import Counts, Shares, mean_over_issues, openness


@dataclass(frozen=True)
class Resampling:
    """How often and how sure; `batch` replicates are held in memory at a time."""

    replicates: int = 2_000
    level: float = 0.95
    batch: int = 500

    def __post_init__(self) -> None:
        if self.replicates < 1 or self.batch < 1:
            raise ValueError(f"replicates ({self.replicates}) and batch ({self.batch}) must be >= 1")
        if not 0 < self.level < 1:
            raise ValueError(f"level ({self.level}) must lie between 0 and 1, as in 0.95")


Interval = tuple[float, float] | None
# From counts (replicate, issue, case, stance) to one number a replicate; NaN where it says nothing.
Statistic = Callable[[Counts], Shares]


def mean_openness(kind: str) -> Statistic:
    """A model's score of one kind (`om`, `om_pro_share`, `om_no_flip`) as a statistic."""

    def mean(counts: Counts) -> Shares:
        found = openness(counts)
        # A replicate can miss every baseline that has few answers: it then says nothing about the score.
        means = mean_over_issues(getattr(found, kind), found.is_scored)
        return np.where(found.is_scored.any(axis=-1), means, np.nan)

    return mean


def intervals(
    counts: ModelCounts,
    statistics: Mapping[str, Statistic],
    rng: np.random.Generator,
    resampling: Resampling | None = None,
) -> dict[str, Interval]:
    """The percentile interval of each statistic, all from the same replicates; None where no replicate has a value.

    The unit within an issue is the trial of a template, since in the `released` protocol its answers share a draw of
    arguments and are not independent. Where trials are unknown or there is but one, the unit is the single answer.

    An interval always holds the figure it belongs to. Trials drawn again vary more than the trials did, and make flips
    that were none, so that replicates of OM lie too high; intervals bent back for that cover too seldom (simulated).
    """
    resampling = resampling or Resampling()
    if not counts.pooled.any():
        return dict.fromkeys(statistics)
    found: dict[str, list[Shares]] = {name: [] for name in statistics}
    for replicates in _replicates(counts, rng, resampling):
        for name, statistic in statistics.items():
            found[name].append(statistic(replicates))
    observed = {name: statistic(counts.pooled[None])[0] for name, statistic in statistics.items()}
    return {name: _percentiles(values, observed[name], resampling.level) for name, values in found.items()}


def _percentiles(batches: Sequence[Shares], observed: float, level: float) -> Interval:
    every = np.concatenate(batches)
    every = every[~np.isnan(every)]
    if not every.size:
        return None
    tail = (1 - level) / 2
    low, high = np.quantile(every, (tail, 1 - tail))
    return float(np.fmin(low, observed)), float(np.fmax(high, observed))


def _replicates(counts: ModelCounts, rng: np.random.Generator, resampling: Resampling) -> Iterator[Counts]:
    units = counts.units if counts.units is not None and _has_repeats(counts.units) else None
    for first in range(0, resampling.replicates, resampling.batch):
        size = min(resampling.batch, resampling.replicates - first)
        picks = rng.integers(len(counts.issues), size=(size, len(counts.issues)))
        if units is None:
            yield _resample_answers(counts.pooled, picks, rng)
        else:
            yield _resample_trials(units, picks, rng)


def _has_repeats(units: Counts) -> bool:
    trials_of_template = units.any(axis=(3, 4)).sum(axis=2)
    return bool((trials_of_template > 1).any())


def _resample_trials(units: Counts, picks: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """For each template of each picked issue, as many trials as have answers, drawn again from these."""
    flat = picks.ravel()
    drawn = np.zeros((flat.size, units[0, 0, 0].size))
    # Issue by issue, and as a product of "how often each trial was drawn" with its counts: gathering the drawn trials
    # of all replicates at once would take gigabytes. Floats, since only they multiply fast; these counts are exact.
    for issue, templates in enumerate(units.reshape(*units.shape[:3], -1).astype(np.float64)):
        chosen = np.flatnonzero(flat == issue)
        for every_trial in templates:
            answered = every_trial[every_trial.any(axis=1)]
            trials = len(answered)
            if trials:
                draws = rng.integers(trials, size=(chosen.size, trials)) + np.arange(chosen.size)[:, None] * trials
                times = np.bincount(draws.ravel(), minlength=chosen.size * trials).reshape(chosen.size, trials)
                drawn[chosen] += times.astype(np.float64) @ answered
    return drawn.astype(np.int64).reshape(*picks.shape, *units.shape[3:])


def _resample_answers(pooled: Counts, picks: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """For each case of each picked issue, as many answers as it has, drawn again: a multinomial of its shares."""
    totals = pooled.sum(axis=-1)
    shares = pooled / np.maximum(totals, 1)[..., None]
    drawn: Counts = rng.multinomial(totals[picks], shares[picks])
    return drawn
