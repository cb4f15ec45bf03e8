"""The range of limits a minute that agrees with what was admitted and refused, under each rule by which providers
count.

If every refusal was for want of this quota, each least limit is proven: no provider of that rule can enforce less,
whatever others use of it, and the least of all is not above the truth. Pure arithmetic; knows no clock and no provider.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
MINUTE_S = 60.0
# Some providers state a limit for a minute and count a sixth of it in each ten seconds.
_SHORT_S = 10.0
# How late a call can be decided: the slowest refusal, which is an answer without a model, twice, since few calls are
# refused and many admitted.
_LATE_TIMES = 2.0
# A rule is excluded if its least limit is so many times its most: providers may count a little other than they report.
_EXCLUDED = 1.05


class Use(NamedTuple):
    """A call against a quota: when it was sent and answered, in seconds of the clock, how much of the quota it used or,
    if it was refused, would have used, and the seconds that its refusal asks to wait."""

    sent_s: float
    done_s: float
    amount: float
    is_admitted: bool
    wait_s: float = 0.0


class Range(NamedTuple):
    """The least and the most limit a minute by one rule; infinite: no limit of this rule agrees, or any."""

    least: float
    most: float

    @property
    def is_excluded(self) -> bool:
        return self.least > _EXCLUDED * self.most


class Ranges(NamedTuple):
    """The range by each rule. `short`: the least limit if each window of ten seconds has a sixth of it."""

    sliding: Range
    fixed: Range
    bucket: Range
    short: float

    @property
    def least(self) -> float:
        return min(self.sliding.least, self.fixed.least, self.bucket.least, self.short)

    @property
    def most(self) -> float:
        """The most limit by the rules that are not excluded; 0: all are."""
        return max((each.most for each in self[:3] if not each.is_excluded), default=0.0)

    @property
    def is_bucket(self) -> bool:
        """Whether more came back within a minute than any window of a minute gives."""
        return self.sliding.is_excluded and self.fixed.is_excluded


def late_s(uses: list[Use]) -> float:
    """Returns the seconds after sending by which a call is decided; infinite if none was refused."""
    return _LATE_TIMES * max((use.done_s - use.sent_s for use in uses if not use.is_admitted), default=math.inf)


def ranges(uses: list[Use]) -> Ranges:
    """Returns the range of limits by each rule."""
    calls = _Calls(uses)
    if not len(calls.at):
        nothing = Range(0.0, math.inf)
        return Ranges(nothing, nothing, nothing, 0.0)
    # By both windows less is admitted than in the minute before a refusal and what that had asked for.
    before = calls.around(calls.refused_at - MINUTE_S, calls.refused_by)
    most = float((before + calls.refused).min(initial=math.inf))
    sliding = float(calls.within(calls.at, calls.at + MINUTE_S).max())
    short = MINUTE_S / _SHORT_S * _fixed(calls, _SHORT_S)
    return Ranges(Range(sliding, most), Range(_fixed(calls, MINUTE_S), most), _bucket(calls), short)


class _Calls:
    """Uses as arrays in order of sending: when admitted calls were sent (`at`) and decided at the latest (`by`), and
    the sums of their amounts; when refusals were sent and answered, and what they asked for (`refused`)."""

    def __init__(self, uses: list[Use]) -> None:
        late = late_s(uses)
        admitted = sorted(use for use in uses if use.is_admitted)
        refused = sorted(use for use in uses if not use.is_admitted)
        self.at = np.array([use.sent_s for use in admitted])
        by = np.array([min(use.done_s, use.sent_s + late) for use in admitted])
        # Of calls in order of sending: when all up to this one are decided.
        self.by = np.maximum.accumulate(by) if len(by) else by
        self.sums = np.concatenate(([0.0], np.cumsum([use.amount for use in admitted])))
        self.refused_at = np.array([use.sent_s for use in refused])
        self.refused_by = np.array([use.done_s for use in refused])
        self.refused = np.array([use.amount for use in refused])
        self.waits_s = np.array([use.wait_s for use in refused])

    def within(self, from_s: Numbers, to_s: Numbers) -> Numbers:
        """Returns the sums of what was decided between these times for sure."""
        first = np.searchsorted(self.at, from_s, "left")
        after = np.searchsorted(self.by, to_s, "right")
        sums: Numbers = np.maximum(0.0, self.sums[after] - self.sums[np.minimum(first, after)])
        return sums

    def around(self, from_s: Numbers | float, to_s: Numbers) -> Numbers:
        """Returns the sums of what may have been decided between these times."""
        first = np.searchsorted(self.by, from_s, "left")
        after = np.searchsorted(self.at, to_s, "right")
        sums: Numbers = np.maximum(0.0, self.sums[after] - self.sums[np.minimum(first, after)])
        return sums


def _fixed(calls: _Calls, window_s: float) -> float:
    """Returns the most in any window, for the phase in which that is least. Phases just after a call are enough to try:
    only there the count of a window falls. The spans of `_returns` each need an edge."""
    spans = [(from_s, to_s) for from_s, to_s in _returns(calls) if to_s - from_s < window_s]
    phases = np.unique(np.concatenate((calls.at + 1e-9, np.array([to_s for _, to_s in spans])))) % window_s
    for from_s, to_s in spans:
        phases = phases[(phases - from_s) % window_s <= to_s - from_s + 1e-9]
    if not len(phases):
        return math.inf
    most = np.zeros(len(phases))
    begins = calls.at[0] - (calls.at[0] - phases) % window_s
    while float(begins.min()) <= calls.at[-1]:
        most = np.maximum(most, calls.within(begins, begins + window_s))
        begins = begins + window_s
    return float(most.min())


def _returns(calls: _Calls) -> list[tuple[float, float]]:
    """Returns the spans in which something came back: from a refusal until as much was admitted as it had asked for,
    which cannot have been left; of spans with the same end only the shortest."""
    first = np.searchsorted(calls.at, calls.refused_by, "left")
    last = np.searchsorted(calls.sums, calls.sums[first] + calls.refused, "left") - 1
    # In order of sending, so that the latest refusal before an end is kept.
    ends = [(calls.by[end], from_s) for end, from_s in zip(last, calls.refused_at, strict=True) if end < len(calls.by)]
    return [(float(from_s), float(to_s)) for to_s, from_s in dict(ends).items()]


def _bucket(calls: _Calls) -> Range:
    """Returns the fastest refill between a refusal, when less was left than it asked for, and any later admission; and
    the slowest between an admission and a later refusal, if it was never full after the first. What a refusal asks to
    wait, in whole seconds, is the time of such a refill: a bucket asks for no long wait."""
    waits_s = np.maximum(calls.waits_s - 1.0, 1e-9)
    fastest, slowest = 0.0, float((calls.refused / waits_s).min(initial=math.inf))
    begun_s = float(calls.refused_at.min(initial=math.inf))
    from_ = max(0, int(np.searchsorted(calls.by, begun_s, "left")) - 1)
    for at_s, by_s, amount in zip(calls.refused_at, calls.refused_by, calls.refused, strict=True):
        first = int(np.searchsorted(calls.at, by_s, "left"))
        if first < len(calls.at):
            refilled = calls.sums[first + 1 :] - calls.sums[first] - amount
            fastest = max(fastest, float((refilled / (calls.by[first:] - at_s)).max()))
        before = slice(from_, int(np.searchsorted(calls.by, at_s, "left")) if at_s > begun_s else from_)
        used = calls.sums[np.searchsorted(calls.at, by_s, "right")] - calls.sums[1:][before]
        slowest = min(
            slowest, float(((used + amount) / (at_s - np.maximum(begun_s, calls.by[before]))).min(initial=math.inf))
        )
    return Range(MINUTE_S * fastest, MINUTE_S * slowest)
