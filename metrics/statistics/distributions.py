"""Student's t and the beta distribution, by the regularised incomplete beta function; numpy has none of these.

Owns these formulas and the level of all intervals.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p

LEVEL = 0.95
_TINY = 1e-300
_MOST_STEPS = 10_000


def t_p_value(t: float, freedom: float) -> float:
    """Returns the two-sided p-value P(|T| >= |t|) with `freedom` degrees of freedom.

    P(|T| >= |t|) = I(freedom / (freedom + t²); freedom / 2, 1/2).
    """
    if freedom <= 0:
        raise ValueError(f"freedom ({freedom}) must be above 0")
    ratio = t * t / freedom
    return _regularised(1 / (1 + ratio), ratio / (1 + ratio), freedom / 2, 0.5) if ratio < float("inf") else 0.0


@lru_cache(maxsize=256)
def t_quantile(level: float, freedom: float) -> float:
    """Returns the t for which P(|T| <= t) = `level`, which is the half width of an interval in standard errors."""
    if not 0 < level < 1:
        raise ValueError(f"level ({level}) must lie between 0 and 1, as in 0.95")
    beyond = 1 - level
    low, high = 0.0, 1.0
    while t_p_value(high, freedom) > beyond:
        low, high = high, 2 * high
    # The p-value falls as t grows: halving ends where two neighbouring numbers are left.
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_p_value(middle, freedom) > beyond else (low, middle)
    return high


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Returns the regularised incomplete beta function I(x; a, b), for a, b > 0 and 0 <= x <= 1."""
    if not (0 <= x <= 1 and a > 0 and b > 0):
        raise ValueError(f"x ({x}) must lie between 0 and 1, a ({a}) and b ({b}) above 0")
    return _regularised(x, 1 - x, a, b)


@lru_cache(maxsize=10_000)
def beta_quantile(share: float, a: float, b: float) -> float:
    """Returns the x for which I(x; a, b) = `share`, by Newton's method; a step that would leave the bracket halves it
    instead."""
    if not 0 < share < 1:
        raise ValueError(f"share ({share}) must lie between 0 and 1")
    front = lgamma(a + b) - lgamma(a) - lgamma(b)
    low, high, x = 0.0, 1.0, a / (a + b)
    while low < x < high:
        over = incomplete_beta(x, a, b) - share
        low, high = (low, x) if over > 0 else (x, high)
        slope = exp(min(700.0, front + (a - 1) * log(x) + (b - 1) * log1p(-x)))
        step = x - over / slope if slope > _TINY else high
        if abs(step - x) <= 1e-14 * x:
            return step
        x = step if low < step < high else (low + high) / 2
    return x


def _regularised(x: float, rest: float, a: float, b: float) -> float:
    """Returns I(x; a, b). `rest` is 1 - x, passed separately since near 1 it is more precise."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    # The fraction converges fast on one side of the mean only; the other is its mirror image.
    if x > (a + 1) / (a + b + 2):
        return 1 - _fraction(rest, x, b, a)
    return _fraction(x, rest, a, b)


def _fraction(x: float, rest: float, a: float, b: float) -> float:
    """Returns I(x; a, b) by its continued fraction, evaluated from the front (modified Lentz)."""
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
