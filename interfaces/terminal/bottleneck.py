"""The reasons for which a lane waited, as shares of its last seconds.

Each span of time is divided in this order: waits of the queue's head, retries, waits for another process's answer, our
own CPU, full slots, answers under way. Pure arithmetic; reads no clock and no lane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

CPU = "CPU"
CONCURRENCY = "concurrency"
ANSWERS = "answers"
RETRY = "retry"
# Another process on the same cache asks the same.
LEASE = "lease"
# Pauses between two pages of one host.
POLITENESS = "politeness"
# A process that has more than this of a core has no time of its own left.
CPU_FULL = 0.9
# If a timer is this late, the loop or the machine is busy.
LAG_FULL_S = 0.1


class LaneSpan(Struct, frozen=True):
    """A lane in the `length_s` seconds between two looks. `held_s`: seconds of waits at the queue's head that ended, by
    reason; `holding`: the reason of the wait under way, empty: none; `retry_s`: seconds of back-offs that ended,
    summed over callers. `is_cpu_full`: this process was the bottleneck; `is_only_retrying`: nothing is in flight,
    and the latest event was a repeat. `lease_s`: seconds of waits for leases, summed over callers too."""

    length_s: float
    held_s: Mapping[str, float]
    holding: str
    retry_s: float
    in_flight: int
    concurrency: int
    is_cpu_full: bool
    is_only_retrying: bool = False
    lease_s: float = 0.0


class WaitShare(NamedTuple):
    """A reason for waiting, and its share of the time, from 0 to 1."""

    reason: str
    share: float


class Bottleneck:
    """The last `spans` spans of one lane, divided among the reasons for waiting."""

    def __init__(self, spans: int) -> None:
        self._spans: deque[dict[str, float]] = deque(maxlen=spans)
        self._totals: dict[str, float] = {}
        self._holding = ""
        self._credited_s = 0.0
        # Seconds of waits that are reported when they end and can be longer than a span: they count in later spans.
        self._late_s = {RETRY: 0.0, LEASE: 0.0}

    def add(self, span: LaneSpan) -> None:
        if len(self._spans) == self._spans.maxlen:
            for reason, seconds in self._spans[0].items():
                self._totals[reason] -= seconds
        shares = self._divide(span)
        self._spans.append(shares)
        for reason, seconds in shares.items():
            self._totals[reason] = self._totals.get(reason, 0.0) + seconds

    def seconds(self) -> dict[str, float]:
        """Returns seconds of waiting by reason. Time without anything to wait for is left out."""
        return {reason: seconds for reason, seconds in self._totals.items() if seconds > 1e-9}

    def _divide(self, span: LaneSpan) -> dict[str, float]:
        shares: dict[str, float] = {}
        left = span.length_s
        for reason, seconds in self._held(span).items():
            shares[reason] = min(left, seconds)
            left -= shares[reason]
        for reason, seconds in ((RETRY, span.retry_s), (LEASE, span.lease_s)):
            late_s = self._late_s[reason] + seconds / span.concurrency
            given_s = left if reason == RETRY and span.is_only_retrying else min(left, late_s)
            self._late_s[reason] = max(0.0, min(late_s - given_s, span.length_s * (self._spans.maxlen or 1)))
            if given_s > 0:
                shares[reason] = given_s
                left -= given_s
        if left <= 0:
            return shares
        if span.is_cpu_full:
            shares[CPU] = left
        elif span.in_flight >= span.concurrency:
            shares[CONCURRENCY] = left
        elif span.in_flight > 0:
            shares[ANSWERS] = left
        return shares

    def _held(self, span: LaneSpan) -> dict[str, float]:
        """Returns the seconds of waits at the queue's head by reason. A wait under way is counted as it goes on, so
        that its end adds only the rest."""
        held: dict[str, float] = {}
        for reason, seconds in span.held_s.items():
            if reason == self._holding:
                seconds -= self._credited_s
                self._holding, self._credited_s = "", 0.0
            held[reason] = max(0.0, seconds)
        if span.holding:
            if span.holding != self._holding:
                self._holding, self._credited_s = span.holding, 0.0
            credit = max(0.0, span.length_s - sum(held.values()))
            if span.holding in span.held_s:
                # Several waits one after the other: the one under way began somewhere within this span.
                credit /= 2
            self._credited_s += credit
            held[span.holding] = held.get(span.holding, 0.0) + credit
        else:
            self._holding, self._credited_s = "", 0.0
        return held


def shares(waits: Iterable[Mapping[str, float]]) -> tuple[WaitShare, ...]:
    """Returns the reasons of several lanes as shares of all their waiting, from the largest to 1%."""
    totals: dict[str, float] = {}
    for seconds_by_reason in waits:
        for reason, seconds in seconds_by_reason.items():
            totals[reason] = totals.get(reason, 0.0) + seconds
    whole = sum(totals.values())
    largest = [WaitShare(reason, seconds / whole) for reason, seconds in totals.items() if seconds >= 0.01 * whole > 0]
    return tuple(sorted(largest, key=lambda share: (-share.share, share.reason)))
