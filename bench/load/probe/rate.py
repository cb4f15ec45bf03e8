"""How fast a bucket fills: every level and rate that agrees with all that was admitted and refused so far.

Pure arithmetic. With `a` in it at the start and `r` more each second, at most a + r*t can have been taken by a time t,
and a refusal says that one more would be above it: each answer cuts a half-plane off. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

RATE_MAX = 2_000.0
_NARROW = 1.027
_EPS = 1e-9
# So many hints are remembered.
_LINES = 4


class Corner(NamedTuple):
    """A level at the start and a rate a second."""

    level: float
    rate: float


Region = tuple[Corner, ...]


def cut(region: Region, at_s: float, amount: float, sign: int) -> Region:
    """The part where level + rate * at_s is at least the amount (sign 1), or at most (-1)."""
    kept: list[Corner] = []
    over = [sign * (level + rate * at_s - amount) for level, rate in region]
    for place, (corner, here) in enumerate(zip(region, over, strict=True)):
        before, there = region[place - 1], over[place - 1]
        if (here > 0) != (there > 0) and here != there:
            share = there / (there - here)
            level = before.level + share * (corner.level - before.level)
            kept.append(Corner(level, before.rate + share * (corner.rate - before.rate)))
        if here > 0:
            kept.append(corner)
    return tuple(kept)


def rates(region: Region) -> tuple[float, float]:
    return min(corner.rate for corner in region), max(corner.rate for corner in region)


def levels_at(region: Region, rate: float) -> tuple[float, float] | None:
    """Between which levels the region lies at one rate."""
    found = []
    for place, corner in enumerate(region):
        before = region[place - 1]
        low, high = sorted((before, corner), key=lambda each: each.rate)
        if low.rate <= rate <= high.rate:
            share = (rate - low.rate) / (high.rate - low.rate) if high.rate > low.rate else 0.0
            found.append(low.level + share * (high.level - low.level))
            if high.rate == low.rate:
                found.append(high.level)
    return (min(found), max(found)) if found else None


def area(region: Region) -> float:
    pairs = zip(region, (*region[1:], region[0]), strict=True)
    return abs(sum(one.level * two.rate - two.level * one.rate for one, two in pairs)) / 2


class Taken(NamedTuple):
    """One round as a bucket sees it. `admitted_by_s`: when the last of those was decided at the latest, `refused_s`:
    when one of these was at the earliest; None for none. `maybe`: calls of which nobody knows whether they were
    admitted."""

    admitted: int
    admitted_by_s: float | None
    refused_s: float | None
    maybe: int = 0


class Line(NamedTuple):
    """A hint: at this time since the start, so much in all will have come."""

    at_s: float
    amount: float


class FillRate:
    """Begins with a refusal, when less than one was there. A call is decided up to `late_s` after it was sent."""

    def __init__(self, refusal: Taken, late_s: float, least: float = 0.0, most: float = RATE_MAX) -> None:
        assert refusal.refused_s is not None
        self.since_s = refusal.refused_s
        self.late_s = late_s
        self.taken = 0
        self.maybe = 0
        self.lines: list[Line] = []
        # What may have been lost since a full bucket takes no more.
        self.lost = 0.0
        self._rounds: list[tuple[float, int]] = []
        settled_s = 0.0 if refusal.admitted_by_s is None else max(0.0, refusal.admitted_by_s - self.since_s)
        below = -most * settled_s
        box = (Corner(below - _EPS, least), Corner(1.0, least), Corner(1.0, most), Corner(below - _EPS, most))
        self.region = cut(box, settled_s, -_EPS, 1)

    def learn(self, taken: Taken, holds: float) -> None:
        """Cut off what does not agree. `holds`: the bucket's capacity at the least."""
        before = self.taken
        self.taken += taken.admitted
        self.maybe += taken.maybe
        if taken.admitted_by_s is not None:
            by_s = taken.admitted_by_s - self.since_s
            self._rounds.append((by_s, before))
            self.region = cut(self.region, by_s, self.taken - _EPS, 1)
        if taken.refused_s is not None:
            at_s = taken.refused_s - self.since_s
            if self._rounds and self.taken - self._rounds[0][1] > holds - 1 and self.region:
                peak = max(max(level + rate * when for level, rate in self.region) - had for when, had in self._rounds)
                self.lost = max(self.lost, peak - holds)
            self._rounds = []
            self.region = cut(self.region, at_s, self.taken + self.maybe + 1 + self.lost, -1)

    def hint(self, at_s: float, amount: float) -> None:
        self.lines = [*self.lines[1 - _LINES :], Line(at_s - self.since_s, amount)]

    @property
    def least(self) -> float:
        return rates(self.region)[0] if self.region else 0.0

    @property
    def most(self) -> float:
        return rates(self.region)[1] if self.region else RATE_MAX

    @property
    def is_contradicted(self) -> bool:
        """No bucket does what was seen."""
        return not self.region

    @property
    def is_narrow(self) -> bool:
        return bool(self.region) and self.least > 0 and self.most <= _NARROW * self.least


class Guess(NamedTuple):
    """A bucket that may be the one, and how likely it is."""

    level: float
    rate: float
    weight: float


def met(lines: Sequence[Line]) -> list[float]:
    """The rates at which two hints agree."""
    found = []
    for place, one in enumerate(lines):
        for two in lines[:place]:
            if abs(one.amount - two.amount) > 0.5 and not math.isclose(one.at_s, two.at_s):
                rate = (one.amount - two.amount) / (one.at_s - two.at_s)
                if rate > 0:
                    found.append(rate)
    return found
