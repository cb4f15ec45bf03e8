"""The least quota a minute that agrees with what was admitted and refused, under each rule by which providers count.

If every refusal was for want of this quota, each bound is proven: no provider of that rule can enforce less, whatever
others use of it, and the least of all bounds is not above the truth. A call that was refused for another reason breaks
the proof. Pure arithmetic; knows no clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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


class Use(NamedTuple):
    """A call against a quota: when it was sent and answered, in seconds of the clock, and how much of the quota it used
    or, if it was refused, would have used."""

    sent_s: float
    done_s: float
    amount: float
    is_admitted: bool


class Least(NamedTuple):
    """The least limit a minute by each rule; infinite: no limit of this rule agrees. `short`: fixed windows of ten
    seconds, each with a sixth of the limit."""

    sliding: float
    fixed: float
    bucket: float
    short: float

    @property
    def of_all(self) -> float:
        return min(self)

    @property
    def is_fixed_excluded(self) -> bool:
        return math.isinf(self.fixed)


def late_s(uses: Iterable[Use]) -> float:
    """Returns the seconds after sending by which a call is decided; infinite if none was refused."""
    return _LATE_TIMES * max((use.done_s - use.sent_s for use in uses if not use.is_admitted), default=math.inf)


class _Calls:
    """Uses as arrays in order of sending: admitted calls with the latest time of each one's decision, and refusals."""

    def __init__(self, uses: list[Use]) -> None:
        late = late_s(uses)
        self.admitted = sorted(use for use in uses if use.is_admitted)
        self.refused = sorted(use for use in uses if not use.is_admitted)
        self.at = np.array([use.sent_s for use in self.admitted])
        by = np.array([min(use.done_s, use.sent_s + late) for use in self.admitted])
        # Of calls in order of sending: when all up to this one are decided.
        self.by = np.maximum.accumulate(by) if len(by) else by
        self.sums = np.concatenate(([0.0], np.cumsum([use.amount for use in self.admitted])))

    def within(self, from_s: Numbers, to_s: Numbers) -> Numbers:
        """Returns the sums of what was decided between these times for sure."""
        first = np.searchsorted(self.at, from_s, "left")
        after = np.searchsorted(self.by, to_s, "right")
        sums: Numbers = np.maximum(0.0, self.sums[after] - self.sums[np.minimum(first, after)])
        return sums


def least(uses: list[Use]) -> Least:
    """Returns the least limit a minute by each rule."""
    calls = _Calls(uses)
    if not len(calls.at):
        return Least(0.0, 0.0, 0.0, 0.0)
    sliding = float(calls.within(calls.at, calls.at + MINUTE_S).max())
    short = MINUTE_S / _SHORT_S * _fixed(calls, _SHORT_S)
    return Least(sliding, _fixed(calls, MINUTE_S), _bucket(calls), short)


def most(uses: list[Use]) -> float:
    """Returns the most a minute by a window's rule: what was admitted in the minute before a refusal, and what that had
    asked for. A bucket may give more."""
    calls = _Calls(uses)
    refused_s = np.array([use.done_s for use in calls.refused])
    first = np.searchsorted(calls.by, np.array([use.sent_s for use in calls.refused]) - MINUTE_S, "left")
    after = np.searchsorted(calls.at, refused_s, "right")
    amounts = np.array([use.amount for use in calls.refused])
    return float((calls.sums[after] - calls.sums[np.minimum(first, after)] + amounts).min(initial=math.inf))


def _returns(calls: _Calls) -> list[tuple[float, float]]:
    """Returns the spans in which something came back: from a refusal until as much was admitted as it had asked for,
    which cannot have been left; of spans with the same end only the shortest."""
    shortest: dict[float, float] = {}
    for refusal in calls.refused:
        first = int(np.searchsorted(calls.at, refusal.done_s, "left"))
        last = int(np.searchsorted(calls.sums, calls.sums[first] + refusal.amount, "left")) - 1
        if last < len(calls.by):
            shortest[float(calls.by[last])] = refusal.sent_s
    return [(from_s, to_s) for to_s, from_s in shortest.items()]


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


def _bucket(calls: _Calls) -> float:
    """Returns the fastest refill between a refusal, when less was left than it asked for, and any later admission."""
    fastest = 0.0
    for refusal in calls.refused:
        first = int(np.searchsorted(calls.at, refusal.done_s, "left"))
        if first < len(calls.at):
            refilled = calls.sums[first + 1 :] - calls.sums[first] - refusal.amount
            fastest = max(fastest, float((refilled / (calls.by[first:] - refusal.sent_s)).max()))
    return MINUTE_S * fastest
