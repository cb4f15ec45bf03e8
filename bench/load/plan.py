"""The plan of a load test: arrivals, limits, and which part is measured. Checked when made; runs nothing."""

from __future__ import annotations

import math

from msgspec import Struct

from .arrivals import Arrivals, ClosedLoop
from .meter import Promise


class Limits(Struct, frozen=True):
    """The limits that end a test; None: no limit. `calls` and `max_cost` (dollars) are shared by all models. At most
    `in_flight` calls of a model are under way: further ones wait and count as held. After the end, calls in flight have
    `drain_s` to finish."""

    duration_s: float | None = None
    calls: int | None = None
    max_cost: float | None = None
    in_flight: int = 2_000
    drain_s: float = 60.0


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
