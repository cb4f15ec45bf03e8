"""Chooses the next calls of a probe: when, how many and how large, so that they give the most information on the limit.

Requests are calls of size 1, tokens calls of size n. Pure: the hypotheses and what may be sent are passed in. Knows no
clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .boxes import Numbers

Cells = NDArray[np.intp]
# Delays that are tried, each about half as long again, from none to a minute and a little more.
WAITS_S = (0.0, 0.2, 0.5, 1.0, 2.0, 3.5, 5.5, 8.0, 12.0, 20.0, 30.0, 45.0, 61.5)
# Amounts that are tried: these quantiles of what may be left, denser where the outcome is most open.
_QUANTILES = (0.02, 0.06, 0.15, 0.28, 0.4, 0.5, 0.6, 0.72, 0.85, 0.94, 0.98)
# Outcomes of many calls are counted in this number of groups, and boxes are sampled down to this number: higher numbers
# take longer and change no choice.
_OUTCOMES, _BOXES = 64, 1_500
# Where between its bounds a level may lie: thirds, each by its middle.
_PARTS = (1 / 6, 1 / 2, 5 / 6)
# Tokens are split into at most this number of calls; amounts within 0.4% of one that gave no information are not
# repeated.
_SPLIT_MOST, _SAME = 24, 0.004
# Calls of fewer tokens than this hardly tell limits that matter apart.
_SPLIT_TOKENS = 200.0
# Where fewer calls of tokens than this are left, amounts just below and above a likely one are tried too.
_FEW, _NEARLY = 40, (0.985, 0.996, 1.0, 1.004, 1.012)
# Fewer bits than this are numerical noise.
_ENOUGH = 0.01


class Means(NamedTuple):
    """What may be sent next. `ready(count)` is the first moment at which that many calls may go at once, `at_once` the
    most that ever may; `largest` and `smallest` are sizes of one call, `amount_most` the most of all calls together;
    the prices of a second and of a call are in bits; `in_vain` are the amounts that ruled out nothing since the
    hypotheses last changed; a round of requests has at least `fewest` calls."""

    ready: Callable[[int], float]
    at_once: float
    largest: float
    smallest: float
    calls_left: float
    second_price: float
    call_price: float
    amount_most: float = math.inf
    in_vain: Sequence[float] = ()
    fewest: int = 1

    @property
    def is_of_requests(self) -> bool:
        return self.largest <= 1


class RoundChoice(NamedTuple):
    """Calls to send together at `at_s`, each of size `a_call`: the information they give in `bits`, and their `worth`,
    the bits less the price of calls and waiting."""

    at_s: float
    calls: int
    a_call: float
    bits: float
    worth: float = 0.0


class Levels(NamedTuple):
    """The least (`lower`) and the most (`upper`) that each hypothesis has left at one moment, with its weight and its
    cell; hypotheses of one cell count as equal when calls are chosen."""

    lower: Numbers
    upper: Numbers
    weight: Numbers
    cell: Cells

    def sampled(self) -> Levels:
        """Returns the same levels, or a sample of `_BOXES` of them in proportion to their weight if there are more."""
        if len(self.weight) <= _BOXES:
            return self
        sums = np.cumsum(self.weight)
        places = np.searchsorted(sums, (np.arange(_BOXES) + 0.5) / _BOXES * sums[-1])
        cell = np.unique(self.cell[places], return_inverse=True)[1].astype(np.intp)
        return Levels(self.lower[places], self.upper[places], np.full(_BOXES, 1 / _BOXES), cell)


class LevelSource(Protocol):
    """The interface of hypotheses for the chooser: how much each has left at a moment."""

    def levels(self, at_s: float) -> Levels: ...


def best(source: LevelSource, means: Means, more_times: Iterable[float] = ()) -> RoundChoice | None:
    """Returns the calls that are worth most in bits less their price, or None if nothing that may be sent gives any
    information. Tries the delays of `WAITS_S` and the clock times `more_times`."""
    chosen: RoundChoice | None = None
    earliest = means.ready(1)
    for at_s in sorted({earliest + wait_s for wait_s in WAITS_S} | {each for each in more_times if each > earliest}):
        levels = source.levels(at_s)
        for amount in _amounts(levels, means):
            for count in _counts(amount, means):
                if means.ready(count) > at_s + 1e-6:
                    continue
                told = bits(levels, amount / count, count)
                worth = told - means.second_price * (at_s - earliest) - means.call_price * count
                if told > _ENOUGH and (chosen is None or worth > chosen.worth):
                    chosen = RoundChoice(at_s, count, amount / count, told, worth)
    return chosen


def _amounts(levels: Levels, means: Means) -> Iterable[float]:
    """Returns the amounts to try, ascending: quantiles of what may be left, and for requests one more than each."""
    middle = quantiles((levels.lower + np.minimum(levels.upper, 4 * levels.lower + 1)) / 2, levels.weight, _QUANTILES)
    if means.is_of_requests:
        upper = quantiles(levels.upper, levels.weight, _QUANTILES)
        found = {1.0, 2.0, 3.0} | {math.floor(each + 1e-6) + 1.0 for each in (*middle, *upper)}
        most = min(means.at_once, means.calls_left)
        return sorted(each for each in found if means.fewest <= each <= most and each not in means.in_vain)
    largest = min(means.amount_most, means.at_once * means.largest)
    nearly = _NEARLY if means.calls_left < _FEW else (1.0,)
    found = {min(largest, max(means.smallest, round(near * each, 1))) for each in middle for near in nearly}
    return sorted(each for each in found if all(abs(each / one - 1) >= _SAME for one in means.in_vain))


def _counts(amount: float, means: Means) -> Iterable[int]:
    """Returns the numbers of calls that the amount may be split into: the fewest that can hold it, and some larger
    ones, which give more information."""
    if means.is_of_requests:
        return (int(amount),)
    fewest = max(1, math.ceil(amount / means.largest - 1e-9))
    split = int(amount / max(_SPLIT_TOKENS, means.smallest))
    most = min(int(means.at_once), _SPLIT_MOST, int(means.calls_left / _SPLIT_MOST), split)
    return sorted({fewest, *(count for count in (4, 12, most) if fewest < count <= most)})


def quantiles(numbers: Numbers, weight: Numbers, parts: Sequence[float]) -> list[float]:
    """Returns the weighted quantiles of the numbers at these shares of the whole weight (0 to 1)."""
    order = np.argsort(numbers)
    sums = np.cumsum(weight[order])
    places = np.minimum(np.searchsorted(sums, np.asarray(parts) * sums[-1]), len(order) - 1)
    return [float(each) for each in numbers[order[places]]]


def bits(levels: Levels, a_call: float, count: int) -> float:
    """Returns the mutual information, in bits, of the cell and of how many of `count` calls of size `a_call` are
    admitted."""
    share = max(1, math.ceil((count + 1) / _OUTCOMES))
    kinds = count // share + 1
    joint = np.zeros(kinds * (int(levels.cell.max()) + 1))
    for part in _PARTS:
        level = levels.lower + part * (levels.upper - levels.lower)
        admitted = np.clip(level / a_call, 0, count).astype(np.intp) // share
        joint += np.bincount(levels.cell * kinds + admitted, levels.weight / len(_PARTS), len(joint))
    table = joint.reshape(-1, kinds)
    return entropy(table.sum(axis=0)) + entropy(table.sum(axis=1)) - entropy(joint)


def entropy(weights: Numbers) -> float:
    """Returns the entropy in bits of these probabilities, which sum to 1."""
    shares = weights[weights > 0]
    return float(-(shares * np.log2(shares)).sum())
