"""The plan of a load test: arrivals, limits, and which part is measured. Checked when made; runs nothing."""

from __future__ import annotations

import math

from msgspec import Struct

from .arrivals import Arrivals, ClosedLoop
from .meter import Promise

IN_FLIGHT_MAX = 100_000


class Limits(Struct, frozen=True):
    """The limits that end a test; None: no limit. `calls` and `max_cost` (dollars) are shared by all models. At most
    `in_flight` calls of a model are under way: further ones wait and count as held. After the end, calls in flight have
    `drain_s` to finish."""

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


class LoadPlan(Struct, frozen=True):
    """The plan of one test. Calls due in the first `warm_up_s` and the last `cool_down_s` seconds are sent and paid
    for, but excluded from all figures. Every model has these arrivals, each from its own random source."""

    arrivals: Arrivals
    limits: Limits
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    promise: Promise | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        limits, arrivals = self.limits, self.arrivals
        if isinstance(arrivals, ClosedLoop) and arrivals.in_flight > limits.in_flight:
            raise ValueError(f"a closed loop of {arrivals.in_flight} calls must be <= in_flight ({limits.in_flight})")
        if self.ends_s is None and limits.calls is None and limits.max_cost is None:
            raise ValueError("a test must have an end: give duration_s, calls or max_cost")
        for name, seconds in (("warm_up_s", self.warm_up_s), ("cool_down_s", self.cool_down_s)):
            if not 0 <= seconds < math.inf:
                raise ValueError(f"{name} ({seconds:g} s) must be >= 0")
        if self.cool_down_s and self.ends_s is None:
            raise ValueError(
                "--cool-down: expected a test whose end is known, got one that ends with its calls: add --duration"
            )
        if self.ends_s is not None and self.warm_up_s + self.cool_down_s >= self.ends_s > 0:
            raise ValueError(
                f"--warm-up and --cool-down: expected less than the test's {self.ends_s:g} s together, got "
                f"{self.warm_up_s + self.cool_down_s:g} s"
            )

    @property
    def ends_s(self) -> float | None:
        """The second at which no more call begins: after the test's duration, or earlier with its arrivals; None: other
        limits end the test."""
        arrivals_s = (
            None
            if isinstance(self.arrivals, ClosedLoop) or math.isinf(self.arrivals.seconds)
            else self.arrivals.seconds
        )
        duration_s = self.limits.duration_s
        return duration_s if arrivals_s is None else arrivals_s if duration_s is None else min(arrivals_s, duration_s)

    def counts(self, due: float) -> bool:
        """Returns whether a call due at that second is measured. A trace's last stamp is due at its very end."""
        return due >= self.warm_up_s and (not self.cool_down_s or due < (self.ends_s or 0.0) - self.cool_down_s)

    def measured_s(self, ended_s: float) -> float:
        """Returns the seconds of the measured part of a test that ended at `ended_s`."""
        until = ended_s if self.ends_s is None else min(ended_s, self.ends_s - self.cool_down_s)
        return max(0.0, until - self.warm_up_s)

    def step_of(self, due: float) -> int:
        return 0 if isinstance(self.arrivals, ClosedLoop) else self.arrivals.step_of(due)
