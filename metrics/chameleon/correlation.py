"""Pearson's correlation and its p-value for independent pairs.

Owns these formulas alone; knows nothing of conversations.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..statistics.distributions import t_p_value

# Below this share of a column's own size what it varies by is rounding.
_ROUNDING = 1e-12


class Correlation(Struct, frozen=True):
    """`r` over `n` pairs of values; None where one side does not vary, or there are fewer than two. `p` is two-sided,
    for independent pairs of normal values; None with fewer than three."""

    n: int
    r: float | None
    p: float | None


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> Correlation:
    """Of the pairs where both are known (no NaN)."""
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    n = len(x)
    if n < 2:
        return Correlation(n, None, None)
    dx, dy = x - x.mean(), y - y.mean()
    across, along = float(np.sqrt(dx @ dx)), float(np.sqrt(dy @ dy))
    if across <= _ROUNDING * float(np.sqrt(x @ x)) or along <= _ROUNDING * float(np.sqrt(y @ y)):
        return Correlation(n, None, None)
    r = min(1.0, max(-1.0, float((dx / across) @ (dy / along))))
    return Correlation(n, r, p_of(r, n))


def p_of(r: float, n: int) -> float | None:
    """How often two unrelated columns of `n` would correlate by `r` or more, either way: t = r·√(df/(1−r²)) with
    df = n−2."""
    if n < 3:
        return None
    rest = (1 - r) * (1 + r)
    return t_p_value(r * sqrt((n - 2) / rest), n - 2) if rest > 0 else 0.0
