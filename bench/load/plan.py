"""What a load test is asked for: arrivals, limits, and which part of it counts. Checked when made; runs nothing."""

from __future__ import annotations

import math

from msgspec import Struct

from .arrivals import Arrivals, Closed
from .meter import Promise

IN_FLIGHT_MAX = 100_000


class Limits(Struct, frozen=True):
    """Where a test ends, whatever comes first; None: no such limit. All models share `calls` and `max_cost` (dollars).
    No more than `in_flight` calls of a model are under way: one that is due beyond them waits and is counted as held.
    What is in flight at the end has `drain_s` to be finished."""

    duration_s: float | None = None
    calls: int | None = None
    max_cost: float | None = None
    in_flight: int = 2_000
    drain_s: float = 60.0

    def __post_init__(self) -> None:
        if self.duration_s is not None and not 0 < self.duration_s < math.inf:
            raise ValueError(f"duration_s ({self.duration_s:g} s) must be > 0, or left out for no limit")
        if self.calls is not None and self.calls < 1:
            raise ValueError(f"calls ({self.calls}) must be >= 1, or left out for no limit")
        if self.max_cost is not None and not 0 <= self.max_cost < math.inf:
            raise ValueError(f"max_cost (${self.max_cost:g}) must be >= 0, or left out for no limit")
        if not 1 <= self.in_flight <= IN_FLIGHT_MAX:
            raise ValueError(f"in_flight ({self.in_flight}) must be >= 1 and <= {IN_FLIGHT_MAX:,}")
        if not 0 <= self.drain_s < math.inf:
            raise ValueError(f"drain_s ({self.drain_s:g} s) must be >= 0")


class Plan(Struct, frozen=True):
    """One test. Calls that are due in the first `warm_up_s` and the last `cool_down_s` seconds are sent and paid for,
    and left out of every figure. Every model has these arrivals, each from a random source of its own."""

    arrivals: Arrivals
    limits: Limits
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    promise: Promise | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        limits, arrivals = self.limits, self.arrivals
        if isinstance(arrivals, Closed) and arrivals.in_flight > limits.in_flight:
            raise ValueError(f"a closed loop of {arrivals.in_flight} calls must be <= in_flight ({limits.in_flight})")
        if self.ends_s is None and limits.calls is None and limits.max_cost is None:
            raise ValueError("a test must have an end: give duration_s, calls or max_cost")
        for name, seconds in (("warm_up_s", self.warm_up_s), ("cool_down_s", self.cool_down_s)):
            if not 0 <= seconds < math.inf:
                raise ValueError(f"{name} ({seconds:g} s) must be >= 0")
        if self.cool_down_s and self.ends_s is None:
            raise ValueError(
                f"cool_down_s ({self.cool_down_s:g} s) needs duration_s: else nobody knows the last seconds"
            )
        if self.ends_s is not None and self.warm_up_s + self.cool_down_s >= self.ends_s > 0:
            raise ValueError(
                f"warm-up and cool-down ({self.warm_up_s:g} s + {self.cool_down_s:g} s) must be "
                f"shorter than the test ({self.ends_s:g} s)"
            )

    @property
    def ends_s(self) -> float | None:
        """When the test ends by time: its duration, or that of its arrivals where it is shorter."""
        own = None if isinstance(self.arrivals, Closed) or math.isinf(self.arrivals.seconds) else self.arrivals.seconds
        given = self.limits.duration_s
        return given if own is None else own if given is None else min(own, given)

    def counts(self, due: float) -> bool:
        """Whether a call that is due then is measured. The last stamp of a trace is due at its very end."""
        return due >= self.warm_up_s and (not self.cool_down_s or due < (self.ends_s or 0.0) - self.cool_down_s)

    def measured_s(self, ended_s: float) -> float:
        """How long the measured part was of a test that ended then."""
        until = ended_s if self.ends_s is None else min(ended_s, self.ends_s - self.cool_down_s)
        return max(0.0, until - self.warm_up_s)

    def step_of(self, due: float) -> int:
        return 0 if isinstance(self.arrivals, Closed) else self.arrivals.step_of(due)
