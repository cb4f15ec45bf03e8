"""The reasons for which a lane waited, as shares of its last seconds.

Each span is divided in this order: what holds the queue's head, retries, waits for another process's answer and
for a shared cache, our own CPU, full slots, answers under way. Pure arithmetic; reads no clock and no lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

CPU = "CPU"
CONCURRENCY = "concurrency"
ANSWERS = "answers"
RETRY = "retry"
# Another process on the same cache asks the same.
LEASE = "lease"
# The server of a shared cache is slow or away.
SHARED = "shared cache"
# Pauses between two pages of one host.
POLITENESS = "politeness"
# A process that has more than this of a core has no time of its own left.
CPU_FULL = 0.9
# If a timer is this late, the loop or the machine is busy.
LAG_FULL_S = 0.1


class LaneSpan(Struct, frozen=True):
    """A lane in the `length_s` seconds between two looks. `holding`: why the queue's head waits at the end of them,
    empty: it does not; `retry_s`, `lease_s` and `shared_s`: seconds of back-offs, of waits for leases, and of waits for
    a shared cache, that ended, summed over callers. `is_cpu_full`: this process was the bottleneck; `is_only_retrying`:
    nothing is in flight, and the latest event was a repeat."""

    length_s: float
    holding: str
    retry_s: float
    in_flight: int
    concurrency: int
    is_cpu_full: bool
    is_only_retrying: bool = False
    lease_s: float = 0.0
    shared_s: float = 0.0

    def waits(self) -> dict[str, float]:
        """Returns its seconds by the reason for waiting. Looks are many: what holds the queue's head at one of them
        counts for the whole time since the last."""
        if self.holding or self.is_only_retrying:
            return {self.holding or RETRY: self.length_s}
        retry_s = min(self.length_s, self.retry_s / self.concurrency)
        lease_s = min(self.length_s - retry_s, self.lease_s / self.concurrency)
        shared_s = min(self.length_s - retry_s - lease_s, self.shared_s / self.concurrency)
        rest = ""
        if self.is_cpu_full:
            rest = CPU
        elif self.in_flight > 0:
            rest = CONCURRENCY if self.in_flight >= self.concurrency else ANSWERS
        left_s = self.length_s - retry_s - lease_s - shared_s
        seconds = {RETRY: retry_s, LEASE: lease_s, SHARED: shared_s, rest: left_s}
        return {reason: each for reason, each in seconds.items() if reason and each > 0}


class WaitShare(NamedTuple):
    """A reason for waiting, and its share of the time, from 0 to 1."""

    reason: str
    share: float


def shares(waits: Iterable[Mapping[str, float]]) -> tuple[WaitShare, ...]:
    """Returns the reasons of several lanes as shares of all their waiting, from the largest to 1%."""
    totals: Any = Counter()
    for seconds_by_reason in waits:
        totals.update(seconds_by_reason)
    whole = sum(totals.values())
    largest = [WaitShare(reason, seconds / whole) for reason, seconds in totals.items() if seconds >= 0.01 * whole > 0]
    return tuple(sorted(largest, key=lambda share: (-share.share, share.reason)))
