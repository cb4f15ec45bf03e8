"""Pearson's correlation and its p-value, exactly: the t distribution by the regularised incomplete beta function.

Owns these formulas alone; knows nothing of conversations.
"""

from __future__ import annotations

from math import exp, lgamma, log

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_TINY = 1e-300
_MOST_STEPS = 10_000
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
    """How often two unrelated columns of `n` would correlate by `r` or more, either way.

    t = r·√(df/(1−r²)) with df = n−2, and P(|T| ≥ t) = I(df/(df+t²); df/2, 1/2), where df/(df+t²) is 1−r².
    """
    if n < 3:
        return None
    return _regularised((1 - r) * (1 + r), r * r, (n - 2) / 2, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """I(x; a, b), regularised, for a, b > 0 and 0 <= x <= 1."""
    if not (0 <= x <= 1 and a > 0 and b > 0):
        raise ValueError(f"x ({x}) must lie between 0 and 1, a ({a}) and b ({b}) above 0")
    return _regularised(x, 1 - x, a, b)


def _regularised(x: float, rest: float, a: float, b: float) -> float:
    """`rest` is 1 - x, given beside it since near 1 it is known better than x tells."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    # The fraction converges fast on one side of the mean only; the other is its mirror image.
    if x > (a + 1) / (a + b + 2):
        return 1 - _fraction(rest, x, b, a)
    return _fraction(x, rest, a, b)


def _fraction(x: float, rest: float, a: float, b: float) -> float:
    """I(x; a, b) by its continued fraction, evaluated from the front (modified Lentz)."""
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)) / a
    upper, lower = 1.0, _away_from_zero(1 - (a + b) * x / (a + 1))
    lower = 1 / lower
    value = lower
    for step in range(1, _MOST_STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            lower = 1 / _away_from_zero(1 + term * lower)
            upper = _away_from_zero(1 + term / upper)
            factor = lower * upper
            value *= factor
        if abs(factor - 1) < 4e-16:
            break
    return min(1.0, front * value)


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
