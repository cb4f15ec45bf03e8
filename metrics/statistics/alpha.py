"""Krippendorff's alpha: the agreement of any number of judges, where some may have judged only some of the things.

Owns the formula for labels and for numbers. Pure: knows neither what was judged nor by whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Alpha:
    """The agreement of judges beyond chance: 1 if they always agree, 0 if they agree as often as chance would have it,
    below 0 if less often.

    `units` are the things that two or more judges judged, and `values` their judgements; things with one judgement say
    nothing on agreement. `value` is None where it is undefined: `note` says why.
    """

    value: float | None
    units: int
    values: int
    note: str | None = None


def nominal_alpha(units: Iterable[Sequence[Hashable]]) -> Alpha:
    """Returns alpha of labels; two labels agree if they are equal. A unit has the labels given to one thing."""
    judged = [unit for unit in units if len(unit) > 1]
    every = Counter(label for unit in judged for label in unit)
    return _alpha([_different(Counter(unit)) for unit in judged], _different(every), every.total())


def interval_alpha(units: Iterable[Sequence[float]]) -> Alpha:
    """Returns alpha of numbers; two numbers disagree by the square of their difference. A unit has the numbers given to
    one thing."""
    judged = [unit for unit in units if len(unit) > 1]
    every = [value for unit in judged for value in unit]
    return _alpha([_squares(unit) for unit in judged], _squares(every), len(every))


def _alpha(within: Sequence[float], between: float, values: int) -> Alpha:
    """Returns alpha from the disagreement within each unit, and among all values as if they were of one unit."""
    if not within:
        return Alpha(None, 0, 0, "nothing was judged by two judges")
    if not between:
        return Alpha(None, len(within), values, "all judgements are the same, so chance gives complete agreement too")
    return Alpha(1 - sum(within) / between, len(within), values)


def _different(counts: Counter[Hashable]) -> float:
    """Returns the ordered pairs of different labels, for each judge beside the first."""
    count = counts.total()
    return (count**2 - sum(each**2 for each in counts.values())) / (count - 1) if count > 1 else 0.0


def _squares(values: Sequence[float]) -> float:
    """Returns the squared differences of all ordered pairs, for each judge beside the first."""
    count = len(values)
    if count < 2 or min(values) == max(values):
        return 0.0
    # Around the mean, since the difference of two large sums would lose digits.
    middle = fmean(values)
    return 2 * count * sum((value - middle) ** 2 for value in values) / (count - 1)
