"""All measurements of one model in a test: one run, or the many runs of a search on one axis of time.

Joins runs; judges nothing and writes nothing. Keeps only the figures of each rate, so that memory is bounded.
"""

from __future__ import annotations

from msgspec import Struct

from .arrivals import Arrivals
from .goal import SearchResult, Standing
from .meter import LoadMeter, Promise, StepMeter
from .run import ModelRun
from .watch import ClientVerdict


class Window(Struct, frozen=True):
    """A span of time, from `begins_s` to `ends_s` in seconds of the test, whose due calls are measured. `zero_s` is the
    second at which its arrivals begin."""

    begins_s: float
    ends_s: float
    arrivals: Arrivals
    zero_s: float

    @property
    def seconds(self) -> float:
        return max(0.0, self.ends_s - self.begins_s)


class MeasuredStep(Struct):
    """The measurements (`counted`) of the calls at one rate, in calls a second (None: the plan has no rate). `seconds`
    is the measured time, with repeats; `is_client_bound`: the client was the bottleneck; `standing` is whether the
    goal was kept (None: there is no goal)."""

    rate: float | None
    begins_s: float
    seconds: float
    counted: StepMeter
    is_client_bound: bool = False
    standing: Standing | None = None


class RunVerdict(Struct, frozen=True):
    """Whether the client was the bottleneck in one run of `seconds` seconds; `rate` is the rate of a search's step
    (None: no search)."""

    verdict: ClientVerdict
    rate: float | None
    seconds: float


class ModelMeasurement:
    """The measurements of one model over all runs of a test: the totals, the measured windows, the steps with a rate,
    the verdicts on the client, and a search's result."""

    def __init__(self, promise: Promise | None) -> None:
        self.measured = ModelRun(LoadMeter(promise))
        self.windows: list[Window] = []
        self.steps: list[MeasuredStep] = []
        self.judged: list[RunVerdict] = []
        self.found: SearchResult | None = None

    def __repr__(self) -> str:
        return f"<ModelMeasurement [{self.measured.begun} calls, {len(self.windows)} runs, {len(self.steps)} steps]>"

    @property
    def seconds(self) -> float:
        return sum(window.seconds for window in self.windows)

    def take_only(self, run: ModelRun, window: Window, verdict: ClientVerdict) -> None:
        """Sets the measurements of a test that has one run."""
        self.measured = run
        self.windows.append(window)
        self.judged.append(RunVerdict(verdict, None, window.seconds))

    def take(self, run: ModelRun, window: Window, verdict: ClientVerdict, rate: float | None = None) -> None:
        """Adds one finished run. `rate` is the rate of a search's step."""
        self.windows.append(window)
        self.judged.append(RunVerdict(verdict, rate, window.seconds))
        whole = self.measured
        whole.meter.merge(run.meter)
        whole.begun += run.begun
        whole.held += run.held
        whole.hold_max_s = max(whole.hold_max_s, run.hold_max_s)
        whole.unsent_held += run.unsent_held
        whole.unsent_late += run.unsent_late
        whole.in_flight_max = max(whole.in_flight_max, run.in_flight_max)
        whole.spent += run.spent
