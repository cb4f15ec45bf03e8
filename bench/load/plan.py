"""The plan of a load test: arrivals, limits, and which part is measured. Checked when made; runs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from random import Random

from msgspec import Struct, structs

from .arrivals import Arrivals, ClosedLoop, OpenLoop, Replay
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
    """The plan of one test, or of one worker's part of it: `share` is the slice of all calls that is sent. Calls due in
    the first `warm_up_s` and the last `cool_down_s` seconds are sent and paid for, but excluded from all figures. Every
    model has these arrivals, each from its own random source."""

    arrivals: Arrivals
    limits: Limits
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    promise: Promise | None = None
    seed: int = 0
    share: tuple[int, None, int] = (0, None, 1)

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

    def times(self, arrivals: OpenLoop | Replay, model: str) -> Iterator[float]:
        """Yields the seconds at which the calls of a model are due."""
        return islice(arrivals.times(Random(f"{self.seed} {model}")), *self.share)

    def shared(self, number: int, of: int) -> LoadPlan:
        """Returns the plan of one of several workers: each has its calls at the times at which a single one would send
        them, and its part of the limits."""
        limits, arrivals = self.limits, self.arrivals
        if isinstance(arrivals, ClosedLoop):
            arrivals = ClosedLoop(_part(arrivals.in_flight, number, of))
        limits = structs.replace(
            limits,
            calls=None if limits.calls is None else _part(limits.calls, number, of),
            max_cost=None if limits.max_cost is None else limits.max_cost / of,
            in_flight=max(1, _part(limits.in_flight, number, of)),
        )
        return structs.replace(self, arrivals=arrivals, limits=limits, share=(number, None, of))

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


def _part(count: int, number: int, of: int) -> int:
    return (count - number + of - 1) // of
