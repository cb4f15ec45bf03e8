"""When calls are due: lazy streams of seconds since the start, drawn from a random source that is passed in.

Each open process is drawn at a rate of 1 and mapped through the inverse of the expected number of arrivals, so that
ramps and steps are exact. A closed loop has no times, only a number in flight. Knows no clock and no server.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, count, pairwise
from random import Random
from typing import Literal

from msgspec import Struct, structs

Process = Literal["constant", "poisson", "gamma"]

# A ramp is measured in this many steps, enough to show how a server bears it.
RAMP_PARTS = 10


class Stretch(Struct, frozen=True):
    """A period of `seconds` at `rate` calls a second, which changes linearly to `rate_end` (None: the rate is
    constant)."""

    seconds: float
    rate: float
    rate_end: float | None = None

    @property
    def last_rate(self) -> float:
        return self.rate if self.rate_end is None else self.rate_end

    @property
    def expected(self) -> float:
        """The expected number of arrivals in the whole stretch."""
        return self.seconds * (self.rate + self.last_rate) / 2

    def cut(self, parts: int) -> tuple[Stretch, ...]:
        """Returns the stretch as `parts` stretches of equal length with the same rates at the same times."""
        rise = (self.last_rate - self.rate) / parts
        ends = [max(0.0, self.rate + rise * number) for number in range(parts)] + [self.last_rate]
        return tuple(Stretch(self.seconds / parts, low, high) for low, high in pairwise(ends))

    def when(self, arrivals: float) -> float:
        """Returns the seconds into the stretch by which `arrivals` calls are expected: the root of `rate t + slope t² /
        2 = arrivals`."""
        slope = 0.0 if self.rate == self.last_rate else (self.last_rate - self.rate) / self.seconds
        if slope == 0:
            return arrivals / self.rate
        # This form of the root is accurate for small slopes.
        under = max(0.0, self.rate**2 + 2 * slope * arrivals)
        return min(self.seconds, 2 * arrivals / (self.rate + math.sqrt(under))) if arrivals > 0 else 0.0


class OpenLoop(Struct, frozen=True):
    """Arrivals that don't depend on the server. `process` is `constant` (even gaps), `poisson`, or `gamma`, whose
    variance is `burstiness` times that of a Poisson process (above 1: bursts)."""

    stretches: tuple[Stretch, ...]
    process: Process = "poisson"
    burstiness: float = 1.0

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.stretches)

    def times(self, random: Random) -> Iterator[float]:
        """Yields due times in seconds since the start, ascending; endless where the last stretch is endless."""
        expected = list(accumulate(each.expected for each in self.stretches))
        begins = [0.0, *accumulate(each.seconds for each in self.stretches[:-1])]
        for arrivals in self._of_unit_rate(random):
            number = bisect_right(expected, arrivals)
            if number == len(expected):
                return
            before = expected[number - 1] if number else 0.0
            yield begins[number] + self.stretches[number].when(arrivals - before)

    def _of_unit_rate(self, random: Random) -> Iterator[float]:
        if self.process == "constant":
            # Counted, not summed: a million rounding errors would shift the rate.
            yield from count(0.0)
            return
        at = 0.0
        while True:
            if self.process == "poisson":
                at += random.expovariate(1.0)
            else:
                at += random.gammavariate(1 / self.burstiness, self.burstiness)
            yield at

    def step_of(self, at: float) -> int:
        """Returns the number, from 0, of the stretch that contains the time `at`."""
        ends = list(accumulate(each.seconds for each in self.stretches))
        return min(bisect_right(ends, at), len(ends) - 1)


class Replay(Struct, frozen=True):
    """The time stamps of a trace, in seconds from any origin. `speed` 2 replays it in half its time. `lasts` is the
    length of an excerpt in the trace's own seconds, including the silence at its end; None: it ends with the last
    stamp."""

    stamps: tuple[float, ...]
    speed: float = 1.0
    lasts: float | None = None

    @property
    def seconds(self) -> float:
        return (self.stamps[-1] - self.stamps[0] if self.lasts is None else self.lasts) / self.speed

    def times(self, random: Random) -> Iterator[float]:
        """Yields the stamps relative to the first, divided by `speed`. `random` is not used."""
        first = self.stamps[0]
        return ((stamp - first) / self.speed for stamp in self.stamps)

    def step_of(self, at: float) -> int:
        return 0


class ClosedLoop(Struct, frozen=True):
    """A fixed number of calls in flight: each is due when the previous one has ended. It slows down with the server, so
    its latencies don't show what calls at a given rate would meet."""

    in_flight: int


Arrivals = OpenLoop | Replay | ClosedLoop


def at_rate(rate: float, process: Process = "poisson", burstiness: float = 1.0) -> OpenLoop:
    """Returns endless arrivals at one constant rate, in calls a second."""
    return OpenLoop((Stretch(math.inf, rate),), process, burstiness)


def asked_between(arrivals: Arrivals, low_s: float, high_s: float) -> float | None:
    """Returns the expected calls between two times in seconds; None for a closed loop or a trace, which have no
    rate."""
    if not isinstance(arrivals, OpenLoop):
        return None
    calls = begins = 0.0
    for each in arrivals.stretches:
        low, high = max(low_s, begins) - begins, min(high_s, begins + each.seconds) - begins
        if high > low:
            slope = 0.0 if math.isinf(each.seconds) else (each.last_rate - each.rate) / each.seconds
            calls += (high - low) * (each.rate + slope * (low + high) / 2)
        begins += each.seconds
    return calls


def rate_at(arrivals: Arrivals, at_s: float) -> float | None:
    """Returns the planned calls a second at a moment; None for a closed loop or a trace."""
    calls = asked_between(arrivals, at_s, at_s + 0.001)
    return None if calls is None else calls / 0.001


def in_parts(arrivals: Arrivals) -> Arrivals:
    """Returns the same arrivals with each ramp cut into ten steps, so that each step is measured separately."""
    if not isinstance(arrivals, OpenLoop):
        return arrivals
    cut = (each.cut(RAMP_PARTS) if each.rate != each.last_rate else (each,) for each in arrivals.stretches)
    return structs.replace(arrivals, stretches=tuple(part for parts in cut for part in parts))


def spans(arrivals: Arrivals, ended_s: float) -> list[tuple[float, float]]:
    """Returns the seconds at which each step begins and ends, in order, in a test that ended at `ended_s`."""
    if not isinstance(arrivals, OpenLoop):
        return [(0.0, ended_s)]
    ends = list(accumulate(each.seconds for each in arrivals.stretches))
    return [(min(low, ended_s), min(high, ended_s)) for low, high in zip([0.0, *ends], ends, strict=False)]
