"""All measurements of one model in a test: one run, or the many runs of a search on one axis of time.

Joins runs; judges nothing and writes nothing. Keeps only the figures of each rate, so that memory is bounded.
"""

from __future__ import annotations

from msgspec import Struct

from .arrivals import Arrivals
from .goal import SearchResult, Standing
from .meter import LoadMeter, Promise, StepMeter
from .run import LoadResult, ModelRun
from .watch import ClientVerdict


class MeasuredRun(Struct, frozen=True):
    """A run whose calls that were due from `begins_s` to `ends_s`, in seconds of the test, were measured. Its arrivals
    begin at `zero_s`. `verdict` says whether the client was the bottleneck; `rate` is that of a search's step (None: no
    search)."""

    begins_s: float
    ends_s: float
    zero_s: float
    arrivals: Arrivals
    verdict: ClientVerdict
    rate: float | None

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


class ModelMeasurement:
    """The measurements of one model over all runs of a test: the totals, the runs, the steps with a rate, and a
    search's result."""

    def __init__(self, promise: Promise | None) -> None:
        self.measured = ModelRun(LoadMeter(promise))
        self.runs: list[MeasuredRun] = []
        self.steps: list[MeasuredStep] = []
        self.found: SearchResult | None = None

    def __repr__(self) -> str:
        return f"<ModelMeasurement [{self.measured.begun} calls, {len(self.runs)} runs, {len(self.steps)} steps]>"

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)

    def take(self, model: str, result: LoadResult, rate: float | None = None) -> MeasuredRun:
        """Adds one finished run. `rate` is the rate of a search's step."""
        low = result.begins_s + result.plan.warm_up_s
        run = MeasuredRun(
            low, low + result.seconds, result.begins_s, result.plan.arrivals, result.verdicts[model], rate
        )
        self.runs.append(run)
        self.measured.merge(result.models[model])
        return run
