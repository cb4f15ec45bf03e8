"""What one model measured over the whole of a test: one run, or a search's many, on one axis of time.

Joins; judges nothing and writes nothing. Bounded: of a step that is over, only what tells of its rate is kept.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...bench.load.arrivals import Arrivals
from ...bench.load.goal import Found
from ...bench.load.meter import Meter, Promise
from ...bench.load.meter import Part as Counted
from ...bench.load.run import Measured
from ...bench.load.watch import Verdict

Standing = Literal["kept", "missed", "open"]


class Window(Struct, frozen=True):
    """Time in which calls that were due are measured. Its arrivals' own time begins at `zero_s`."""

    begins_s: float
    ends_s: float
    arrivals: Arrivals
    zero_s: float

    @property
    def seconds(self) -> float:
        return max(0.0, self.ends_s - self.begins_s)


class Step(Struct):
    """Calls at one rate (None: none was asked). `seconds`: those measured, repeats included."""

    rate: float | None
    begins_s: float
    seconds: float
    counted: Counted
    is_client_bound: bool = False
    standing: Standing | None = None


class Judged(Struct, frozen=True):
    """The client, over a run: its verdict, at which rate of a search, and for how long."""

    verdict: Verdict
    rate: float | None
    seconds: float


class Whole:
    """One model's part of a test."""

    def __init__(self, promise: Promise | None) -> None:
        self.measured = Measured(Meter(promise))
        self.windows: list[Window] = []
        self.steps: list[Step] = []
        self.judged: list[Judged] = []
        self.found: Found | None = None

    def __repr__(self) -> str:
        return f"<Whole [{self.measured.begun} calls begun in {len(self.windows)} runs, {len(self.steps)} steps]>"

    @property
    def seconds(self) -> float:
        return sum(window.seconds for window in self.windows)

    def take_only(self, own: Measured, window: Window, verdict: Verdict) -> None:
        """The only run there is."""
        self.measured = own
        self.windows.append(window)
        self.judged.append(Judged(verdict, None, window.seconds))

    def take(self, own: Measured, window: Window, verdict: Verdict, rate: float | None = None) -> None:
        """One run that is over. `rate`: of a search."""
        self.windows.append(window)
        self.judged.append(Judged(verdict, rate, window.seconds))
        whole = self.measured
        whole.meter.merge(own.meter)
        whole.begun += own.begun
        whole.held += own.held
        whole.hold_max_s = max(whole.hold_max_s, own.hold_max_s)
        whole.unsent_held += own.unsent_held
        whole.unsent_late += own.unsent_late
        whole.in_flight_max = max(whole.in_flight_max, own.in_flight_max)
        whole.spent += own.spent
