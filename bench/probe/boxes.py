"""The bounds of what can be left of a quota, for every limit that is still possible: boxes of (limit a minute, second
unknown).

A box is ruled out only if no limit within it agrees with what was admitted and refused. One class for each kind of
window; the second unknown is a bucket's capacity, or the second of the clock's minute at which a window begins. Knows
no clock, no provider and no prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .steps import Window

MINUTE_S = 60.0
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]
_EPS = 1e-6
# The probabilities that a provider asks for a part of the wait only, and for a wrong one.
_A_PART, _PART, _UNTRUE = 0.2, 0.2, 0.03
_ROUNDED_S, _ABOUT_S = 1.0, 0.1
# Parts of a box at which a window is assumed to begin, and the least likelihood that a box keeps.
_PARTS, _HARDLY = (0.1, 0.3, 0.5, 0.7, 0.9), 0.002


class Event(NamedTuple):
    """Calls that were decided between `at_s` and `by_s`. `admitted` is the amount (requests or tokens) that `calls`
    calls took; `refused` the size of the smallest refused call (None: none was refused), decided at `refused_s` or
    later; `maybe` the number of calls of size 1 whose outcome is unknown; `told_s` the Retry-After in seconds. All
    but `late_calls` of the calls were decided by `usual_s` (None: by `by_s`)."""

    at_s: float
    by_s: float
    admitted: float
    calls: int
    refused: float | None
    refused_s: float
    maybe: int = 0
    told_s: float | None = None
    usual_s: float | None = None
    late_calls: float = 0.0


class Boxes:
    """Ranges (boxes) of the quotas that are possible under one kind of window, as arrays: `low` to `high` is the limit
    a minute, `least` to `most` the second unknown. A call is decided up to `late_s` after it is sent, and the first
    call finds the whole quota free. `chance` is the likelihood of the events in each box, up to a common factor."""

    kind: Window

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        self.low, self.high, self.least, self.most = low, high, least, most
        self.late_s = late_s
        self.chance = np.ones_like(low)

    def __len__(self) -> int:
        return len(self.low)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        """Returns the least and the most that can be left in each box for a call sent at `at_s`."""
        raise NotImplementedError

    def take(self, event: Event) -> Mask:
        """Updates the bounds with an event and returns which boxes agree with it. Events are given in the order in
        which their calls were decided, though the time span of one may overlap the next."""
        raise NotImplementedError

    def hear(self, event: Event) -> None:
        """Multiplies `chance` by the likelihood of the Retry-After of the event just taken; without one nothing
        changes."""
        raise NotImplementedError

    def keep(self, alive: Mask) -> None:
        self.low, self.high = self.low[alive], self.high[alive]
        self.least, self.most = self.least[alive], self.most[alive]
        self.chance = self.chance[alive]

    def _judge_told(self, told_s: float, least_s: Numbers | float, most_s: Numbers | float) -> None:
        """Multiplies `chance` by the probability density, a second, of a Retry-After of `told_s` where the true wait
        lies between `least_s` and `most_s`."""
        rounded_s = _ROUNDED_S if told_s == int(told_s) else 0.0
        is_true = (told_s > least_s - _ABOUT_S) & (told_s < most_s + _ABOUT_S + rounded_s)
        is_part = (told_s > _PART * least_s - _ABOUT_S) & (told_s < most_s)
        true = 1 / (most_s - least_s + 2 * _ABOUT_S + rounded_s)
        part = _A_PART / (most_s - _PART * least_s + _ABOUT_S)
        self.chance = self.chance * (np.where(is_true, true, np.where(is_part, part, 0.0)) + _UNTRUE / MINUTE_S)


class Buckets(Boxes):
    kind: Window = "bucket"

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        super().__init__(low, high, least, most, late_s)
        self._size()
        # As if each call was decided when it was sent.
        self._lower, self._upper = self._small, self._large
        self._at_s = 0.0

    def _size(self) -> None:
        self._slow, self._fast = self.low / MINUTE_S, self.high / MINUTE_S
        self._small, self._large = np.maximum(1.0, self.least), np.maximum(1.0, self.most)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        elapsed = at_s - self._at_s
        lower = np.minimum(self._small, self._lower + self._slow * elapsed)
        upper = np.minimum(self._large, self._upper + self._fast * (elapsed + self.late_s))
        return np.maximum(lower, 0.0), upper

    def take(self, event: Event) -> Mask:
        """Updates the bounds and returns which boxes agree. The time since the bucket was last full or empty is
        uncertain, however many calls followed: the lower bound assumes that calls were decided late then and
        promptly now, the upper the opposite."""
        spread, elapsed = (event.by_s if event.usual_s is None else event.usual_s) - event.at_s, event.at_s - self._at_s
        late, least_late = self._fast * spread + event.late_calls, self._slow * spread + event.late_calls
        lower = np.minimum(self._small - least_late, self._lower + self._slow * elapsed)
        upper = np.minimum(self._large, self._upper + self._fast * elapsed)
        # The bucket refills while many calls are decided.
        brim = self._large + (late if event.calls > 1 else 0.0)
        alive: Mask = np.minimum(brim, upper + late) >= event.admitted - _EPS
        lower, upper = lower - event.admitted - event.maybe, upper - event.admitted
        if event.calls or event.maybe:
            lower = np.maximum(lower, -least_late)
        if event.refused is not None:
            before = event.refused_s - event.at_s
            alive &= lower + self._slow * before < event.refused
            upper = np.minimum(upper, event.refused - self._fast * before)
        self._lower, self._upper, self._at_s = lower, upper, event.at_s
        self.hear(event)
        return alive

    def hear(self, event: Event) -> None:
        if event.refused is not None and event.told_s is not None:
            lacks = event.refused - np.clip(self._lower, 0.0, event.refused)
            self._judge_told(event.told_s, 0.0, lacks / self._slow)

    def keep(self, alive: Mask) -> None:
        super().keep(alive)
        self._lower, self._upper = self._lower[alive], self._upper[alive]
        self._size()


class FixedWindows(Boxes):
    kind: Window = "fixed"

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        super().__init__(low, high, least, most, late_s)
        self._lower, self._upper = low.copy(), high.copy()
        self._to_s = 0.0

    def _ends(self, from_s: float, to_s: float) -> tuple[Mask, Mask]:
        """Returns in which boxes a window surely ends after `from_s` and by `to_s`, and in which it may."""
        surely = np.floor((to_s - self.most) / MINUTE_S) > np.floor((from_s - self.least) / MINUTE_S)
        maybe = np.floor((to_s - self.least) / MINUTE_S) > np.floor((from_s - self.most) / MINUTE_S)
        return surely, maybe

    def _left(self, at_s: float) -> tuple[Numbers, Numbers]:
        surely, maybe = self._ends(self._to_s, at_s)
        return np.where(surely, self.low, self._lower), np.where(maybe, self.high, self._upper)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        return self._left(at_s)[0], self._left(at_s + self.late_s)[1]

    def take(self, event: Event) -> Mask:
        """Updates the bounds and returns which boxes agree. Three cases are possible: no window ends between the last
        calls and these, one ends before these, or one ends among them, so that they count in two windows."""
        self._judge(event)
        surely, _ = self._ends(self._to_s, event.by_s)
        before, among = self._ends(self._to_s, event.at_s)[1], self._ends(event.at_s, event.by_s)[1]
        # Calls before may have been counted in a window that has ended since: what is left of the new one is unknown.
        is_past = self._ends(event.at_s, max(event.at_s, self._to_s))[1] & (event.at_s < self._to_s)
        # After a minute one can end before them and the next among them.
        is_new = before & (event.by_s - self._to_s >= MINUTE_S)
        past = np.where(is_past, 0.0, self._lower), np.where(is_past | is_new, self.high, self._upper)
        ways = [
            (~surely, self._lower, self._upper, False),
            (before, self.low, self.high, False),
            (among | is_past, np.minimum(past[0], self.low), past[1] + self.high, True),
        ]
        alive = np.zeros(len(self), dtype=bool)
        lower, upper = np.full(len(self), np.inf), np.zeros(len(self))
        for can_be, least, most, is_among in ways:
            is_so = can_be & (most >= event.admitted - _EPS)
            if event.refused is not None:
                is_so &= least - event.admitted - event.maybe < event.refused
            left = most - event.admitted
            if is_among:
                # The rest was taken from the next window.
                least, left = self.low, np.minimum(self.high, left)
            elif event.refused is not None:
                # Less is left than was refused; if single calls were refused, nothing.
                left = np.minimum(left, 0.0 if event.refused <= 1 else event.refused)
            least = np.maximum(0.0, least - event.admitted - event.maybe)
            lower = np.where(is_so, np.minimum(lower, least), lower)
            upper = np.where(is_so, np.maximum(upper, left), upper)
            alive |= is_so
        self._lower, self._upper, self._to_s = np.where(alive, lower, 0.0), upper, event.by_s
        self.hear(event)
        return alive

    def hear(self, event: Event) -> None:
        if event.refused is not None and event.told_s is not None:
            least_s, most_s = (self.least - event.by_s) % MINUTE_S, (self.most - event.refused_s) % MINUTE_S
            is_near = least_s > most_s
            self._judge_told(event.told_s, np.where(is_near, 0.0, least_s), np.where(is_near, MINUTE_S, most_s))

    def _judge(self, event: Event) -> None:
        """Multiplies `chance` by the event's likelihood, averaged over the seconds in each box at which a window may
        begin."""
        chance = np.zeros(len(self))
        for part in _PARTS:
            begins = self.least + part * (self.most - self.least)
            number = np.floor((event.at_s - begins) / MINUTE_S)
            before = number > np.floor((self._to_s - begins) / MINUTE_S)
            among = np.floor((event.by_s - begins) / MINUTE_S) > number
            lower, upper = np.where(before, self.low, self._lower), np.where(before, self.high, self._upper)
            is_so = upper >= event.admitted - _EPS
            if event.refused is not None:
                is_so &= lower - event.admitted - event.maybe < event.refused
            shared = (upper + self.high >= event.admitted - _EPS) / (1.0 + event.calls)
            chance += np.where(among, shared, is_so)
        self.chance = self.chance * np.maximum(chance / len(_PARTS), _HARDLY)

    def keep(self, alive: Mask) -> None:
        super().keep(alive)
        self._lower, self._upper = self._lower[alive], self._upper[alive]


class SlidingWindows(Boxes):
    kind: Window = "sliding"

    def __init__(self, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> None:
        super().__init__(low, high, least, most, late_s)
        self._taken: list[Event] = []

    def _used(self, at_s: float, by_s: float) -> tuple[float, float]:
        least = sum(each.admitted for each in self._taken if each.at_s + MINUTE_S > by_s)
        return least, sum(each.admitted + each.maybe for each in self._taken if each.by_s + MINUTE_S > at_s)

    def levels(self, at_s: float) -> tuple[Numbers, Numbers]:
        least, most = self._used(at_s, at_s + self.late_s)
        return np.maximum(self.low - most, 0.0), self.high - least

    def take(self, event: Event) -> Mask:
        least, most = self._used(event.at_s, event.by_s)
        alive: Mask = self.high - least >= event.admitted - _EPS
        if event.refused is not None:
            alive &= self.low - most - event.admitted - event.maybe < event.refused
        if event.calls or event.maybe:
            self._taken = [*self._taken, event]
        self.hear(event)
        return alive

    def hear(self, event: Event) -> None:
        """Multiplies `chance` by the likelihood of the Retry-After. The true wait lasts until the first call that still
        counts leaves the minute; the very first may have left by then."""
        if event.refused is not None and event.told_s is not None:
            first = next((each for each in self._taken if each.by_s + MINUTE_S > event.at_s), event)
            later = next((each for each in self._taken if each.calls and each.at_s + MINUTE_S > event.by_s), event)
            self._judge_told(
                event.told_s, max(0.0, first.at_s + MINUTE_S - event.by_s), later.by_s + MINUTE_S - event.refused_s
            )


KINDS: dict[Window, type[Boxes]] = {"bucket": Buckets, "fixed": FixedWindows, "sliding": SlidingWindows}
