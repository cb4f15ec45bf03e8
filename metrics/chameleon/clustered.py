"""Intervals by a bootstrap that draws whole conversations, and p-values by shuffling them: a conversation stays one
thing, however many models and temperatures it was held with.

Owns the drawing, the percentile interval and the shuffling. The seed is passed in; knows no figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Resampling:
    """How often, and how sure."""

    replicates: int = 2_000
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.replicates < 1:
            raise ValueError(f"replicates ({self.replicates}) must be >= 1")
        if not 0 < self.level < 1:
            raise ValueError(f"level ({self.level}) must lie between 0 and 1, as in 0.95")


class Draws:
    """How often each conversation is drawn in each replicate: as many in all as there are. The draws hang on the seed
    and on the number of conversations alone, so an interval does not depend on who is scored beside it, and two models
    that held the same conversations are moved by the same draws.

    Every method takes columns, one value a row, and which conversation each row belongs to; NaN is no value. A single
    conversation has no interval.
    """

    def __init__(self, seed: int = 0, resampling: Resampling | None = None) -> None:
        self._seed = seed
        self._resampling = resampling or Resampling()
        self._times: dict[int, Values] = {}

    def mean(self, conversations: Sequence[str], values: Values) -> Interval:
        known = ~np.isnan(values)
        own = values[known]
        place, size = _places(conversations, known)
        if size < 2:
            return None
        sums = self._of(size) @ _by_cluster(place, size, own, np.ones(len(own)))
        return self._ends(sums[:, 0] / sums[:, 1], float(own.mean()))

    def correlation(self, conversations: Sequence[str], x: Values, y: Values, observed: float | None) -> Interval:
        """Of Pearson's r; replicates in which a side does not vary say nothing."""
        known = ~(np.isnan(x) | np.isnan(y))
        place, size = _places(conversations, known)
        if size < 2 or observed is None:
            return None
        dx, dy = x[known] - x[known].mean(), y[known] - y[known].mean()
        columns = (np.ones(len(dx)), dx, dy, dx * dx, dy * dy, dx * dy)
        r = _r_of(*(self._of(size) @ _by_cluster(place, size, *columns)).T)
        return self._ends(r, observed) if len(r) else None

    def shuffled_p(
        self, conversations: Sequence[str], columns: Sequence[int], x: Values, y: Values, observed: float | None
    ) -> float | None:
        """How often Pearson's r would be as far from 0 as observed, either way, if each conversation's `y` were
        another's, all of its rows moving together: a row's `y` goes to the row of the other conversation that stands
        in the same column (the same model and temperature). None with a single conversation. Never below one in as
        many as there are replicates, and one."""
        known = ~(np.isnan(x) | np.isnan(y))
        if observed is None:
            return None
        place, size = _places(conversations, known)
        if size < 2:
            return None
        column = np.asarray(columns, dtype=np.int64)[known]
        shape = (size, int(column.max()) + 1, 3)
        ours, theirs = np.zeros(shape), np.zeros(shape)
        # Around the means, which rows that find no partner move a little: sums of squares lose no digits so.
        for side, own in ((ours, x[known] - x[known].mean()), (theirs, y[known] - y[known].mean())):
            side[place, column] = np.stack((np.ones(len(own)), own, own * own), axis=1)
        flat = ours.reshape(-1, 3)
        rng = np.random.default_rng(self._seed)
        replicates = self._resampling.replicates
        sums = np.stack([flat.T @ theirs[rng.permutation(size)].reshape(-1, 3) for _ in range(replicates)])
        r = _r_of(sums[:, 0, 0], sums[:, 1, 0], sums[:, 0, 1], sums[:, 2, 0], sums[:, 0, 2], sums[:, 1, 1])
        return float(((np.abs(r) >= abs(observed) - 1e-12).sum() + 1) / (len(r) + 1))

    def _of(self, size: int) -> Values:
        times = self._times.get(size)
        if times is None:
            rng = np.random.default_rng(self._seed)
            shares = np.full(size, 1 / size)
            times = rng.multinomial(size, shares, size=self._resampling.replicates).astype(np.float64)
            self._times[size] = times
        return times

    def _ends(self, replicates: Values, observed: float) -> Interval:
        tail = (1 - self._resampling.level) / 2
        low, high = np.quantile(replicates, (tail, 1 - tail))
        return float(min(low, observed)), float(max(high, observed))


def _places(conversations: Sequence[str], known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], int]:
    """Each known row's conversation as a number, and how many conversations these are."""
    own = [name for name, is_known in zip(conversations, known.tolist(), strict=True) if is_known]
    numbers = {name: at for at, name in enumerate(sorted(set(own)))}
    return np.array([numbers[name] for name in own], dtype=np.int64), len(numbers)


def _by_cluster(place: NDArray[np.int64], size: int, *columns: Values) -> Values:
    return np.stack([np.bincount(place, column, minlength=size) for column in columns], axis=1)


def _r_of(n: Values, sx: Values, sy: Values, sxx: Values, syy: Values, sxy: Values) -> Values:
    """Pearson's r from sums, a replicate each, of those replicates in which both sides vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        along, across = sxx - sx * sx / n, syy - sy * sy / n
    varies = (along > 1e-12 * sxx) & (across > 1e-12 * syy)
    r = (sxy[varies] - sx[varies] * sy[varies] / n[varies]) / np.sqrt(along[varies] * across[varies])
    return np.clip(r, -1, 1)
