"""Every small bucket that does what was seen, from the first call on: by its size and by how fast it fills.

Pure arithmetic over rounds of calls. A bucket goes only when none like it can have answered so, whenever within its
latency each call was decided; what is likely (round numbers, a provider's words) says where to look, never what is
true. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_RATES, _SIZES = 120, 72
_DENSER = 4
_REFINED_MAX, _STILL = 7, 0.8
_MOST_KEPT = 700
# Rounded, the lower end of so much is within three in a hundred of all of it.
_NARROW = 1.0293
_HARDLY_WIDE, _LIKELY = 1.05, 0.9
_EPS = 1e-6
# A minute's worth, in bucketfuls: at the least and at the most.
_LEAST, _MOST = 0.4, 40.0
_FINE, _AREA_SHARE, _ROUND_COST = 0.015, 0.6, 0.05
_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40)
_PARTS = (0.05, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 0.95)
_DOUBT = 0.06
_SHARES = ((1.0, 4.0), (0.5, 1.5), (0.25, 1.5), (0.1, 1.5), (0.2, 0.4), (0.75, 0.3))
_TOLD, _UNTRUE = 4.0, 0.07
MINUTE_S = 60.0


class Event(NamedTuple):
    """One round: between these two times all of it was decided. `maybe`: calls of which nobody knows."""

    from_s: float
    to_s: float
    admitted: int
    is_refused: bool
    maybe: int = 0
    told_s: float | None = None


class Levels(NamedTuple):
    """What each bucket may hold: at the least at `from_s`, at the most at `to_s`, as if it had no brim since."""

    alive: Flags
    low: Floats
    high: Floats
    belief: Floats


class Tanks:
    """`rates`: between which they fill, a second."""

    def __init__(
        self, events: list[Event], told_rpm: float | None, rates: tuple[float, float] = (0.0, math.inf)
    ) -> None:
        self.events = events
        self.told_rpm = told_rpm
        burst = sum(each.admitted + each.maybe for each in events)
        self._sizes = (1.0, burst + 1.0)
        low = max(1, burst)
        self._rates = (max(rates[0], _LEAST * low / MINUTE_S), min(rates[1], _MOST * low / MINUTE_S))
        self._refine()

    def learn(self, event: Event) -> None:
        self.events.append(event)
        self._refine()

    @property
    def is_contradicted(self) -> bool:
        return not len(self.rate)

    @property
    def least(self) -> float:
        return float(self.rate.min()) / self._near if len(self.rate) else 0.0

    @property
    def most(self) -> float:
        return float(self.rate.max()) * self._near if len(self.rate) else math.inf

    @property
    def is_narrow(self) -> bool:
        return bool(len(self.rate)) and self.most <= _NARROW * self.least

    @property
    def is_likely_narrow(self) -> bool:
        """When no more can be asked: hardly wider, and what is likely is within it."""
        if self.is_contradicted or self.most > _HARDLY_WIDE * self.least:
            return False
        return float(self.weights()[self.rate <= _NARROW * self.least].sum()) >= _LIKELY

    @property
    def holds(self) -> tuple[float, float]:
        return float(self.size.min()) - self._beside, float(self.size.max()) + self._beside

    def _refine(self) -> None:
        """Look closer where any is left."""
        rates, sizes, denser = _RATES, _SIZES, False
        for _ in range(_REFINED_MAX):
            rate, size = np.geomspace(*self._rates, rates), np.linspace(*self._sizes, sizes)
            # Each stands for all as near to it as to the next.
            self._near, self._beside = math.sqrt(rate[1] / rate[0]), float(size[1] - size[0]) / 2
            self.rate, self.size = (each.ravel() for each in np.meshgrid(rate, size))
            self._keep(self._levels(self._near, self._beside).alive)
            if self.is_contradicted:
                if denser:
                    return
                rates, sizes, denser = _DENSER * rates, _DENSER * sizes, True
                continue
            before = (math.log(self._rates[1] / self._rates[0]), self._sizes[1] - self._sizes[0])
            self._rates = (max(self._rates[0], self.least), min(self._rates[1], self.most))
            holds = self.holds
            self._sizes = (max(self._sizes[0], holds[0]), min(self._sizes[1], holds[1]))
            after = (math.log(self._rates[1] / self._rates[0]), self._sizes[1] - self._sizes[0])
            if after[0] * after[1] > _STILL * before[0] * before[1]:
                return

    def _keep(self, alive: Flags) -> None:
        self.rate, self.size = self.rate[alive], self.size[alive]
        levels = self._levels()
        self.low, self.high = np.minimum(levels.low, levels.high), np.maximum(levels.low, levels.high)
        self.belief = levels.belief

    def _levels(self, near: float = 1.0, beside: float = 0.0) -> Levels:
        """What each would hold by now, and whether it would have answered so."""
        rate, slow, fast = self.rate, self.rate / near, self.rate * near
        small, large = np.maximum(self.size - beside, 1.0), self.size + beside
        first = self.events[0]
        from_s = to_s = first.from_s
        low, high = small, large
        alive, belief = np.ones(len(rate), bool), np.ones(len(rate))
        for each in self.events:
            spread = fast * (each.to_s - each.from_s)
            high = np.minimum(high + fast * (each.to_s - to_s), large + (spread if each.admitted else 0.0))
            low = np.minimum(low + slow * (each.from_s - from_s), small)
            alive &= high >= each.admitted - _EPS
            high, low = high - each.admitted, np.maximum(low - each.admitted - each.maybe, -spread)
            if each.is_refused:
                alive &= low < 1 - _EPS
                high = np.minimum(high, 1 + spread)
                if each.told_s is not None:
                    wait, slack = (1 - (low + high) / 2) / rate, (high - low) / 2 / rate + 0.03
                    is_whole = each.told_s == int(each.told_s)
                    is_so = (wait <= each.told_s + slack) & (wait >= each.told_s - slack - (1.0 if is_whole else 0.0))
                    belief = belief * np.where(is_so, 1.0, _UNTRUE)
            from_s, to_s = each.from_s, each.to_s
        return Levels(alive, low, high, belief)

    @property
    def middle(self) -> float:
        """The rate that half of all that is likely lies below."""
        order = np.argsort(self.rate)
        place = int(np.searchsorted(np.cumsum(self.weights()[order]), 0.5))
        return float(self.rate[order[min(place, len(order) - 1)]])

    def weights(self) -> Floats:
        """How likely each is, before anything else is known but what points at it."""
        minute = self.rate * MINUTE_S
        share = np.log(self.size / minute)
        near = max(0.015, 2 * math.log(self._near))
        weight = np.where((share < 0.05) & (share > -2.45), 0.3, 0.01)
        for each, much in _SHARES:
            weight = weight + much * np.exp(-(((share - math.log(each)) / near) ** 2))
        if self.told_rpm:
            for times, much in ((1.0, _TOLD), (0.5, 1.0), (2.0, 1.0)):
                weight = weight * (1 + much * np.exp(-((np.log(minute / self.told_rpm / times) / near) ** 2)))
        weight = weight * (1 + np.exp(-(((minute - np.round(minute)) / max(0.1, 0.01 * minute.max())) ** 2)))
        weight = weight * self.belief
        return np.asarray(weight / weight.sum())

    def next(self, earliest_s: float, latest_s: float, counts: tuple[int, int]) -> tuple[float, int] | None:
        """The time and the number that promise most for each call; None: nothing does."""
        weight = self.weights()
        picked = slice(None, None, max(1, len(weight) // _MOST_KEPT))
        weight = weight[picked] / weight[picked].sum()
        some = _Some(self.rate[picked], self.size[picked], self.low[picked], self.high[picked], weight)
        last = self.events[-1]
        chosen, score = None, 0.0
        for count in _COUNTS:
            if not counts[0] <= count <= max(counts):
                continue
            for at_s in some.times(count, last, earliest_s, latest_s):
                gain = some.gain(at_s, count, last) / (count + _ROUND_COST)
                if gain > score + 1e-12:
                    chosen, score = (at_s, count), gain
        return chosen


class _Some(NamedTuple):
    """Enough of them to choose by."""

    rate: Floats
    size: Floats
    low: Floats
    high: Floats
    weight: Floats

    def times(self, count: int, last: Event, earliest_s: float, latest_s: float) -> list[float]:
        """When so much may be there."""
        middle = (self.low + self.high) / 2
        at_s = np.where(self.size >= count, (last.from_s + last.to_s) / 2 + (count - middle) / self.rate, np.inf)
        order = np.argsort(at_s)
        passed = np.cumsum(self.weight[order])
        found = {earliest_s}
        for part in _PARTS:
            place = min(int(np.searchsorted(passed, part)), len(order) - 1)
            found.add(float(at_s[order[place]]))
        likeliest = float(at_s[int(np.argmax(self.weight))])
        spread_s = last.to_s - last.from_s
        for near in (0.1, 0.3):
            found |= {likeliest - spread_s - near, likeliest + near}
        return [each for each in found if earliest_s <= each <= latest_s]

    def gain(self, at_s: float, count: int, last: Event) -> float:
        spread_s = last.to_s - last.from_s
        low = np.minimum(self.low + self.rate * (at_s - last.from_s), self.size)
        high = np.minimum(self.high + self.rate * (at_s + spread_s - last.to_s), self.size + self.rate * spread_s)
        least = np.clip(np.floor(low + _EPS), 0, count)
        most = np.clip(np.floor(high + _EPS), 0, count)
        middle = np.clip(np.floor((low + high) / 2), 0, count)
        known = _left(self.rate)
        gain = 0.0
        for admitted in range(count + 1):
            is_one = (least <= admitted) & (most >= admitted)
            if not is_one.any():
                continue
            weight = float(self.weight[middle == admitted].sum()) * (1 - _DOUBT)
            weight += _DOUBT * float(is_one.mean())
            gain += weight * (known - _left(self.rate[is_one]))
        return gain


def _left(rate: Floats) -> float:
    """How much is left to find: what is finer than needed counts no more."""
    ratio = math.log(float(rate.max() / rate.min()))
    return math.log(max(ratio, _FINE)) + _AREA_SHARE * math.log(len(rate))
