"""A density on a grid: Gaussian kernels, their width by Scott's rule.

Owns the estimate of figure 3; knows no conversation.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

# From 0 to 1 in steps of 0.005.
GRID = np.linspace(0.0, 1.0, 201)


class Density(Struct, frozen=True):
    """A density estimate of `n` values; `heights` are on the grid. `bandwidth` is the standard deviation of each
    kernel. Both are None for fewer than two values, or if all are equal."""

    n: int
    bandwidth: float | None
    heights: NDArray[np.float64] | None


def density(values: NDArray[np.float64], grid: NDArray[np.float64] = GRID) -> Density:
    """Returns the density by Scott's rule: the bandwidth is the sample's standard deviation times n^(-1/5). NaN is
    ignored."""
    numbers = values[~np.isnan(values)]
    n = len(numbers)
    if n < 2:
        return Density(n, None, None)
    width = float(numbers.std(ddof=1)) * n ** (-1 / 5)
    if width <= 1e-12:
        return Density(n, None, None)
    # Equal values share a kernel: confidence has few values but conversations are many.
    places, times = np.unique(numbers, return_counts=True)
    kernels = np.exp(-0.5 * ((grid[:, None] - places[None, :]) / width) ** 2)
    return Density(n, width, kernels @ times / (n * width * np.sqrt(2 * np.pi)))
