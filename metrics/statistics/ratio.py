"""Estimates of a remaining total from a sample: ratio estimates and their intervals.

Owns the bootstrap of totals, stratified by sample, and its studentized interval. The random source is passed in. Knows
no call, no price and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REPLICATES = 2_000
LEVEL = 0.95
# Units drawn at a time, so that memory stays bounded.
_DRAWN_AT_ONCE = 500_000
# The least error of a replicate, as a share of the sample's. A replicate that drew nearly equal units has almost no
# error of its own, and would otherwise count as infinitely far off.
_LEAST_ERROR = 1 / 3


@dataclass(frozen=True)
class RatioSample:
    """The seen part of a population, and the size of the rest.

    `amounts[unit, what]` belong to units of `sizes[unit, what]`; the `left` unseen units have `left_sizes[what]` in
    total. With all sizes 1 the ratio is a mean.
    """

    amounts: Floats
    sizes: Floats
    left: int
    left_sizes: Floats

    def __post_init__(self) -> None:
        if self.amounts.ndim != 2 or self.amounts.shape != self.sizes.shape:
            raise ValueError(f"sizes {self.sizes.shape} must be a table of units like amounts {self.amounts.shape}")
        if self.left_sizes.shape != self.amounts.shape[1:]:
            raise ValueError(f"left_sizes {self.left_sizes.shape} must have one size for each of {self.amounts.shape}")
        if not (self.sizes > 0).all():
            raise ValueError("sizes must be above 0")
        if self.left > 0 and not len(self.amounts):
            raise ValueError(f"a sample of no unit says nothing about the {self.left:,} that were not seen")


class Estimate(NamedTuple):
    """An estimated total. `interval` is its two ends; None for a single unit, which says nothing about uncertainty."""

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class _Spread:
    """The covariance of the totals and, for each replicate, its deviation and the covariance it would report."""

    covariance: Floats
    deviations: Floats
    covariances: Floats

    def __add__(self, other: _Spread) -> _Spread:
        return _Spread(
            self.covariance + other.covariance,
            self.deviations + other.deviations,
            self.covariances + other.covariances,
        )


@dataclass(frozen=True)
class Totals:
    """Estimated totals of several quantities measured together; `spread` is None for a sample of one unit. Totals of
    independent samples can be added."""

    values: Floats
    spread: _Spread | None

    def __add__(self, other: Totals) -> Totals:
        spread = None if self.spread is None or other.spread is None else self.spread + other.spread
        return Totals(self.values + other.values, spread)

    def of(self, weights: Sequence[float], level: float = LEVEL) -> Estimate:
        """Returns the weighted sum of the totals, as of tokens with prices as weights. Its interval is never below 0.

        Studentized: a replicate's deviation is divided by its own standard error. Plain percentiles of a few skewed
        answers cover too rarely, since a sample without the large ones also has too small an error.
        """
        weighed = np.array(weights, dtype=np.float64)
        value = float(self.values @ weighed)
        if self.spread is None:
            return Estimate(value, None)
        error = math.sqrt(max(0.0, float(weighed @ self.spread.covariance @ weighed)))
        if error <= 1e-9 * value:
            return Estimate(value, (value, value))
        variances = np.einsum("i,bij,j->b", weighed, self.spread.covariances, weighed)
        errors = np.sqrt(np.maximum(variances, (_LEAST_ERROR * error) ** 2))
        low, high = np.quantile(self.spread.deviations @ weighed / errors, ((1 - level) / 2, (1 + level) / 2))
        return Estimate(value, (max(0.0, value - float(high) * error), value - float(low) * error))


def totals(sample: RatioSample, rng: np.random.Generator, replicates: int = REPLICATES) -> Totals:
    """Returns the estimated total of each amount over the unseen units; 0 if there are none."""
    units, left, what = len(sample.amounts), sample.left, len(sample.left_sizes)
    if left <= 0:
        # Everything was seen, so the rest is 0 with certainty.
        none = _Spread(np.zeros((what, what)), np.zeros((replicates, what)), np.zeros((replicates, what, what)))
        return Totals(np.zeros(what), none)
    ratios, covariance = _ratios(sample.amounts, sample.sizes)
    values = ratios * sample.left_sizes
    if units == 1:
        return Totals(values, None)
    # The unseen units are a random draw too: if they are few, this is most of the uncertainty.
    reach = sample.left_sizes * math.sqrt(1 + units / left)
    draws = []
    batch = max(1, _DRAWN_AT_ONCE // units)
    for first in range(0, replicates, batch):
        drawn = rng.integers(units, size=(min(batch, replicates - first), units))
        draws.append(_ratios(sample.amounts[drawn], sample.sizes[drawn]))
    deviations = (np.concatenate([each for each, _ in draws]) - ratios) * reach
    squared = np.outer(reach, reach)
    covariances = np.concatenate([each for _, each in draws]) * squared
    return Totals(values, _Spread(covariance * squared, deviations, covariances))


def _ratios(amounts: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Returns the ratios of amounts to sizes, of one sample or each of many, and their linearised covariance."""
    units = amounts.shape[-2]
    means = sizes.mean(axis=-2)
    ratios: Floats = amounts.mean(axis=-2) / means
    off = (amounts - ratios[..., None, :] * sizes) / means[..., None, :]
    covariance: Floats = np.swapaxes(off, -1, -2) @ off / max(1, units * (units - 1))
    return ratios, covariance
