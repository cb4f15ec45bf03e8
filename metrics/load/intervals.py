"""Ratios of two measured times, each with an interval that is computed from the intervals of the two.

The limits are combined by Zou and Donner's MOVER, which accepts asymmetric intervals. The two must be measured
independently. Knows no rate and no page.
"""

from __future__ import annotations

import math

from msgspec import Struct

from .load_json import Percentile

# Histograms resolve no time below a microsecond.
_LEAST_S = 1e-6


class Ratio(Struct, frozen=True):
    """A ratio with its 95% interval; an end is None if there are too few calls to determine it."""

    value: float
    low: float | None
    high: float | None


def ratio(of: Percentile, to: Percentile) -> Ratio:
    """Returns the ratio of `of` to `to`, with its interval."""
    value = _log(of.value_s) - _log(to.value_s)
    down = _joined(_log_gap(of.value_s, of.low_s), _log_gap(to.value_s, to.high_s))
    up = _joined(_log_gap(of.value_s, of.high_s), _log_gap(to.value_s, to.low_s))
    return Ratio(
        math.exp(value),
        None if down is None else math.exp(value - down),
        None if up is None else math.exp(value + up),
    )


def _joined(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else math.hypot(one, other)


def _log_gap(value_s: float, end_s: float | None) -> float | None:
    return None if end_s is None else _log(value_s) - _log(end_s)


def _log(value_s: float) -> float:
    return math.log(max(value_s, _LEAST_S))
