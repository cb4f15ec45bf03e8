"""What may be left of a quota, for every limit that is still possible: boxes of (limit a minute, second unknown).

Sound by construction: a box goes only when no limit within it agrees with what was admitted and refused. One class a
kind of window; the second unknown is a bucket's size as a share of the limit, or the second at which a window begins.
Knows no clock, no provider and no guess.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .steps import Window

MINUTE_S = 60.0
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Event(NamedTuple):
    """Calls that were sent together: how many tokens in how many calls were admitted, and the size of the smallest that
    was refused, None for none."""

    at_s: float
    admitted: float
    calls: int
    refused: float | None


class Boxes:
    """`low` to `high` is the limit, `least` to `most` the second unknown. A call is decided up to `late_s` after it was
    sent; the first finds the whole quota free."""

    kind: Window

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        self.low, self.high, self.least, self.most = low, high, least, most
        self.late_s = late_s
        self.at_s = -np.inf

    def __len__(self) -> int:
        return len(self.low)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        """The least and the most that can be left for a call sent then."""
        raise NotImplementedError

    def take(self, event: Event) -> Mask:
        """Learn what was seen; which boxes agree with it."""
        raise NotImplementedError

    def keep(self, alive: Mask) -> None:
        self.low, self.high = self.low[alive], self.high[alive]
        self.least, self.most = self.least[alive], self.most[alive]


class Buckets(Boxes):
    kind: Window = "bucket"

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        super().__init__(low, high, least, most, late_s)
        self._lower, self._upper = np.zeros_like(low), np.zeros_like(low)

    def _filled(self, at_s: float) -> tuple[Numbers, Numbers]:
        """As if each call was decided when it was sent. Only the time since a bucket was last full is uncertain,
        however many calls came since: the lower bound takes it as late then and prompt now, the upper one the other
        way."""
        elapsed = min(at_s - self.at_s, 1e6)
        late_low, late_high = self.low * self.late_s / MINUTE_S, self.high * self.late_s / MINUTE_S
        lower = np.minimum(self.low * self.least - late_low, self._lower + self.low * elapsed / MINUTE_S)
        upper = np.minimum(self.high * self.most + late_high, self._upper + self.high * elapsed / MINUTE_S)
        return lower, upper

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        lower, upper = self._filled(at_s)
        return np.maximum(lower, 0.0), np.minimum(self.high * self.most, upper)

    def take(self, event: Event) -> Mask:
        lower, upper = self._filled(event.at_s)
        late_low, late_high = self.low * self.late_s / MINUTE_S, self.high * self.late_s / MINUTE_S
        alive = np.minimum(self.high * self.most, upper) + (event.calls > 1) * late_high >= event.admitted
        lower, upper = lower - event.admitted, upper - event.admitted
        if event.calls:
            lower = np.maximum(lower, -late_low)
        if event.refused is not None:
            alive &= lower < event.refused
            upper = np.minimum(upper, event.refused + late_high)
        self._lower, self._upper, self.at_s = lower, upper, event.at_s
        return alive

    def keep(self, alive: Mask) -> None:
        super().keep(alive)
        self._lower, self._upper = self._lower[alive], self._upper[alive]


class FixedWindows(Boxes):
    kind: Window = "fixed"

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        super().__init__(low, high, least, most, late_s)
        self._used_least, self._used_most = np.zeros_like(low), np.zeros_like(low)

    def _edges(self, from_s: float, to_s: float) -> tuple[Mask, Mask]:
        """Where a window surely ended between a call sent then and one sent now, and where it may have."""
        surely = np.floor((to_s - self.most) / MINUTE_S) > np.floor((from_s + self.late_s - self.least) / MINUTE_S)
        maybe = np.floor((to_s + self.late_s - self.least) / MINUTE_S) > np.floor((from_s - self.most) / MINUTE_S)
        return surely, maybe

    def _used(self, at_s: float) -> tuple[Numbers, Numbers]:
        if np.isinf(self.at_s):
            return self._used_least, self._used_most
        surely, maybe = self._edges(self.at_s, at_s)
        return np.where(maybe, 0.0, self._used_least), np.where(surely, 0.0, self._used_most)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        least, most = self._used(at_s)
        return np.maximum(self.low - most, 0.0), self.high - least

    def take(self, event: Event) -> Mask:
        least, most = self._used(event.at_s)
        # A window may end while these calls are decided: then they count in two.
        within = self._edges(event.at_s, event.at_s)[1] if event.calls > 1 else np.zeros(len(self), dtype=bool)
        alive = within | (self.high - least >= event.admitted)
        most = most + event.admitted
        if event.refused is not None:
            alive &= self.low - most < event.refused
        self._used_least, self._used_most = np.where(within, 0.0, least + event.admitted), most
        self.at_s = event.at_s
        return alive

    def keep(self, alive: Mask) -> None:
        super().keep(alive)
        self._used_least, self._used_most = self._used_least[alive], self._used_most[alive]


class SlidingWindows(Boxes):
    kind: Window = "sliding"

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        super().__init__(low, high, least, most, late_s)
        self._taken: list[tuple[float, float]] = []

    def _used(self, at_s: float) -> tuple[float, float]:
        least = sum(amount for at, amount in self._taken if at + MINUTE_S > at_s + self.late_s)
        return least, sum(amount for at, amount in self._taken if at + self.late_s + MINUTE_S > at_s)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        least, most = self._used(at_s)
        return np.maximum(self.low - most, 0.0), self.high - least

    def take(self, event: Event) -> Mask:
        least, most = self._used(event.at_s)
        alive: Mask = self.high - least >= event.admitted
        if event.refused is not None:
            alive &= self.low - most - event.admitted < event.refused
        self._taken = [*self._taken, (event.at_s, event.admitted)]
        self.at_s = event.at_s
        return alive


KINDS: dict[Window, type[Boxes]] = {"bucket": Buckets, "fixed": FixedWindows, "sliding": SlidingWindows}
