"""Which kinds of window, and of what size, agree with all calls that were sent; and what to send to tell them apart.

Begins with a burst that ended in a refusal. Guesses (headers, common sizes) only say where to look first. Knows no
clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .boxes import KINDS, MINUTE_S, Boxes, Event, Numbers
from .choice import Levels, bits, entropy
from .possible import Possible, normal
from .steps import Window

# How fine the first boxes are, in logarithms of the limit and of a bucket's share, and in seconds.
_FIRST, _FIRST_SHARE, _FIRST_S = 0.03, 0.08, 3.0
# No bucket holds less, in minutes' worth.
_SHARE_LEAST = 0.06
# Up to so many, each number by itself.
_EACH = 160
_COMMON, _COMMON_WEIGHT = (1.0, 0.5, 0.25, 0.1), 0.2
_TOLD, _WITH_THE_FIRST = 4.0, 40.0
# Fewer a minute are hardly ever allowed.
_SLOWEST, _HARDLY = 4.5, 0.1
_NARROW, _SURE, _BELOW = 1.03, 0.992, 0.01
# Limits of windows are told apart by so much, in logarithms; buckets are only told from windows.
_APART, _APART_FEW, _FEW_IN_ALL = 0.01, 0.3, 60
_WAITS_S = (0.0, 0.2, 0.5, 1.0, 2.0, 3.5, 5.5, 8.0, 12.0, 20.0, 30.0)
_QUANTILES = (0.02, 0.06, 0.15, 0.28, 0.4, 0.5, 0.6, 0.72, 0.85, 0.94, 0.98)
_AFTER_S, _GAP_S = 0.4, 1.0
_ENDED = (0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
_ENOUGH, _A_SECOND, _ALL_CALLS, _FEW, _CHANGED = 0.02, 0.004, 0.35, 4.0, 0.002
# What at least every third that is likely has.
_OFTEN, _HARDLY_FEWER, _RISKED = 0.65, 0.3, 16
# Of few, hardly any are risked at once, nor where the last was refused.
_FEWEST, _FEW_OF, _FEW_ADMITTED, _SEVERAL = 2, 3, 12, 3
_EPS = 1e-6


class Next(NamedTuple):
    at_s: float
    calls: int


class Kinds(Possible):
    """`burst`: all rounds from the first call on, the last refused. `told`: what headers say of a minute."""

    def __init__(self, burst: Sequence[Event], told: float | None, late_s: float) -> None:
        self.late_s = late_s
        self._told = told
        self._shares: dict[Window, float] | None = None
        admitted = int(sum(each.admitted for each in burst))
        self._admitted = admitted
        most = admitted + sum(each.maybe for each in burst)
        passed_s = burst[-1].by_s - burst[0].at_s
        # In a minute it may have met two windows.
        least = max(1, admitted // (1 + math.ceil(passed_s / MINUTE_S)))
        # Where calls are few, those that tell a bucket from a window are to tell how fast it fills as well.
        self._apart = _APART_FEW if most <= _FEW_IN_ALL else math.inf
        slowest = max(1.0, admitted / (1 + passed_s / MINUTE_S) - 1)
        self._first_s = (burst[0].at_s % MINUTE_S, burst[0].at_s % MINUTE_S + burst[0].by_s - burst[0].at_s)
        self._in_vain = 0
        self._is_empty = self._is_refused_again = False
        self._released = 0
        super().__init__(
            (
                self._buckets(slowest, (most + 1) / _SHARE_LEAST),
                self._windows("fixed", least, most),
                self._windows("sliding", least, most),
            )
        )
        for event in burst:
            self.learn(event._replace(told_s=None))
        # Before anything else is seen, each kind is as likely as any other.
        totals = {each.kind: float(self._weight_of(each).sum()) for each in self.boxes}
        self._shares = {kind: 1 / total for kind, total in totals.items() if total > 0}
        self._events[-1] = burst[-1]
        for each in self.boxes:
            each.hear(burst[-1])
        self._weigh()

    def _buckets(self, least: float, most: float) -> Boxes:
        limits = np.geomspace(least, most, math.ceil(math.log(most / least) / _FIRST) + 1)
        shares = np.geomspace(_SHARE_LEAST, 1.0, math.ceil(-math.log(_SHARE_LEAST) / _FIRST_SHARE) + 1)
        return _crossed("bucket", limits[:-1], limits[1:], shares[:-1], shares[1:], self.late_s)

    def _windows(self, kind: Window, least: int, most: int) -> Boxes:
        if most <= _EACH:
            low = high = np.arange(float(least), most + 1)
        else:
            edges = np.geomspace(least, most + 0.5, math.ceil(math.log((most + 0.5) / least) / _FIRST) + 1)
            low, high = edges[:-1], edges[1:]
        if kind == "sliding":
            return _crossed("sliding", low, high, np.zeros(1), np.zeros(1), self.late_s)
        begins = np.arange(0.0, MINUTE_S, _FIRST_S)
        return _crossed("fixed", low, high, begins, begins + _FIRST_S, self.late_s)

    def _weigh(self) -> None:
        weights = [self._weight_of(each) for each in self.boxes]
        if self._shares is not None:
            weights = [
                self._shares[each.kind] * np.where(each.high < _SLOWEST, _HARDLY, 1.0) * one
                for each, one in zip(self.boxes, weights, strict=True)
            ]
        self.weights = normal(weights)

    def _weight_of(self, boxes: Boxes) -> Numbers:
        if boxes.kind == "bucket":
            weight = np.log(boxes.high / boxes.low)
        else:
            weight = np.where(boxes.high > boxes.low, boxes.high - boxes.low, 1.0)
        if self._told:
            for times, much in ((1.0, _TOLD), (0.5, 1.0), (2.0, 1.0)):
                told = times * self._told
                weight = weight * np.where((boxes.low <= told + _EPS) & (boxes.high >= told - _EPS), 1 + much, 1.0)
        if boxes.kind == "bucket":
            share = np.log(boxes.most / boxes.least)
            for common in _COMMON:
                share = share + np.where((boxes.least <= common) & (boxes.most >= common), _COMMON_WEIGHT, 0.0)
            weight = weight * share
        elif boxes.kind == "fixed":
            # Of some providers a window begins with the first call.
            first_s, by_s = self._first_s
            is_first = (boxes.least < by_s) & (boxes.most > first_s) | (boxes.least + MINUTE_S < by_s)
            weight = weight * (boxes.most - boxes.least) * np.where(is_first, _WITH_THE_FIRST, 1.0)
        return np.asarray(weight * boxes.chance, dtype=np.float64)

    def learn(self, event: Event) -> None:
        before = {each.kind: float(one.sum()) for each, one in zip(self.boxes, self.weights, strict=True)}
        super().learn(event)
        after = {each.kind: float(one.sum()) for each, one in zip(self.boxes, self.weights, strict=True)}
        is_vain = before.keys() == after.keys() and all(abs(before[kind] - after[kind]) < _CHANGED for kind in after)
        self._in_vain = event.calls if is_vain and event.refused is None else 0
        self._is_empty = event.refused is not None
        if self._shares is not None:
            self._released += event.calls
            self._is_refused_again = self._is_refused_again or (self._released > 0 and self._is_empty)

    # What is known

    @property
    def kind(self) -> tuple[Window, float]:
        """The likeliest, and how likely it is."""
        found = [(each.kind, float(weight.sum())) for each, weight in zip(self.boxes, self.weights, strict=True)]
        return max(found, key=lambda one: one[1])

    def holds(self, sure: float) -> int | None:
        """How many a window of the likeliest kind holds: so likely no fewer, nor so many more that it makes a
        difference. None: nobody knows."""
        place = int(np.argmax([float(weight.sum()) for weight in self.weights]))
        low, weight = self.boxes[place].low, self.weights[place] / self.weights[place].sum()
        order = np.argsort(low)
        low, sums = low[order], np.concatenate([[0.0], np.cumsum(weight[order])])
        first = np.searchsorted(low, low)
        whole = np.maximum(1.0, np.ceil(low - _EPS))
        last = np.searchsorted(low, np.maximum(whole, _NARROW * whole) + _EPS, side="right")
        found = np.flatnonzero((sums[last] - sums[first] >= sure) & (sums[first] <= _BELOW))
        return int(whole[found[0]]) if len(found) else None

    def rates(self) -> tuple[float, float]:
        """Between which a bucket fills, a second."""
        boxes = next(each for each in self.boxes if each.kind == "bucket")
        return float(boxes.low.min()) / MINUTE_S, float(boxes.high.max()) / MINUTE_S

    @property
    def is_known(self) -> bool:
        if self.is_void:
            return True
        kind, likely = self.kind
        return likely >= _SURE and (kind == "bucket" or self.holds(_SURE) is not None)

    @property
    def unproven(self) -> int:
        """How many to ask for before it is believed: by elimination alone nothing is. A window that begins has several,
        a sliding one refuses again."""
        if self.kind[0] == "sliding" and self._is_refused_again:
            return 0
        return max(0, min(_SEVERAL, 1 + self._admitted // 2) - self._released) if self._released else 1

    def likely_least(self) -> float:
        """What hardly any that is likely is below, a minute."""
        return _quantile(np.concatenate([each.low for each in self.boxes]), np.concatenate(self.weights), _HARDLY_FEWER)

    # What to send

    def next(self, earliest_s: float, at_once: int, calls_left: float) -> Next | None:
        """The time and the number that tell most beside what they cost, at any price if nothing is worth it; None:
        nothing tells anything."""
        all_calls = _ALL_CALLS + _FEW / (calls_left + _FEW)
        return self._best(earliest_s, at_once, calls_left, all_calls) or self._best(
            earliest_s, at_once, calls_left, 0.0
        )

    def _best(self, earliest_s: float, at_once: int, calls_left: float, all_calls: float) -> Next | None:
        best, worth = None, 0.0
        a_call = all_calls / max(1.0, calls_left)
        for at_s in self._times(earliest_s):
            levels = self._levels(at_s)
            for count in self._counts(levels, min(at_once, max(1, int(calls_left)))):
                found = bits(levels, 1.0, count)
                gain = found - _A_SECOND * (at_s - earliest_s) - a_call * count
                if found > _ENOUGH and gain > worth:
                    best, worth = Next(at_s, count), gain
        levels = self._levels(earliest_s)
        # All that is there, and one more: a bucket has one again soon after, a window has none.
        there = _quantile(levels.lower, levels.weight, _OFTEN)
        drain = math.floor(min(_quantile(levels.upper, levels.weight, _OFTEN), 1.05 * there + 2))
        if _quantile(levels.lower, levels.weight, 1 - _OFTEN) < 1:
            # It is as likely that there is hardly one.
            drain = min(drain, max(_RISKED, 3 * self._in_vain))
        if self._is_empty:
            drain = min(drain, _FEWEST)
        price = min(all_calls, a_call * (drain + 1))
        if there >= 1 and entropy(np.bincount(levels.place, levels.weight).astype(np.float64)) - price > worth:
            return Next(earliest_s, max(1, min(drain + 1, at_once, int(calls_left))))
        return best

    def _times(self, earliest_s: float) -> list[float]:
        """Soon, later, and when some have surely left a sliding minute, and the next ones surely not."""
        times = {earliest_s + wait_s for wait_s in _WAITS_S}
        taken = [each for each in self._events if each.calls]
        over = [taken[0].at_s + MINUTE_S - self.late_s]
        for each, after in pairwise(taken):
            if after.at_s > each.by_s + _GAP_S:
                over.append(each.by_s + MINUTE_S + _AFTER_S)
        return sorted(times | {each for each in (*over, *self._between_ends(earliest_s)) if each > earliest_s})

    def _between_ends(self, earliest_s: float) -> list[float]:
        """When fixed windows are as likely to have ended as not, and between such times."""
        fixed = [(each, one) for each, one in zip(self.boxes, self.weights, strict=True) if each.kind == "fixed"]
        if not fixed:
            return []
        boxes, weight = fixed[0]
        ends = earliest_s + ((boxes.least + boxes.most) / 2 - earliest_s) % MINUTE_S
        found = [_quantile(ends, weight, part) for part in _ENDED]
        return [*found, *((one + other) / 2 for one, other in pairwise(found))]

    def _levels(self, at_s: float) -> Levels:
        levels = [each.levels(at_s) for each in self.boxes]
        places, first = [], 0
        for each in self.boxes:
            apart = self._apart if each.kind == "bucket" else _APART
            place = np.floor(np.log(each.low) / apart).astype(np.intp)
            places.append(place - place.min() + first)
            first += int(place.max() - place.min()) + 1
        return Levels(
            np.concatenate([lower for lower, _ in levels]),
            np.concatenate([upper for _, upper in levels]),
            np.concatenate(self.weights),
            np.concatenate(places),
        )

    def _counts(self, levels: Levels, most: int) -> list[int]:
        """One more than is there, for what is likely to be there."""
        found = {1, 2, 3}
        for level in ((levels.lower + levels.upper) / 2, levels.upper):
            found |= {math.floor(_quantile(level, levels.weight, part) + _EPS) + 1 for part in _QUANTILES}
        # Where some told nothing, a few more won't.
        most = min(
            most,
            _FEWEST + (self._admitted > _FEW_ADMITTED) if self._is_empty else max(_FEWEST, self._admitted // _FEW_OF),
        )
        least = 2 * self._in_vain if self._in_vain > _SEVERAL else 0
        return sorted(count for count in found if least < count <= most)


def _quantile(numbers: Numbers, weight: Numbers, part: float) -> float:
    order = np.argsort(numbers)
    sums = np.cumsum(weight[order])
    return float(numbers[order[min(int(np.searchsorted(sums, part * sums[-1])), len(order) - 1)]])


def _crossed(kind: Window, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> Boxes:
    """Every limit with every other unknown."""
    count = len(least)
    return KINDS[kind](
        np.repeat(low, count), np.repeat(high, count), np.tile(least, len(low)), np.tile(most, len(low)), late_s
    )
