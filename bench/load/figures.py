"""Computes the structs of `load.json` from measurements: histograms to percentiles, counts to rates and shares.

Pure functions. Does not know how a test is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from ...engine.prices import Price
from ...engine.version import VERSION
from ...metrics.load.knee import knee
from ...metrics.load.load_json import (
    Client,
    GoalFound,
    LoadClient,
    LoadFigures,
    LoadPart,
    ModelFigures,
    ShareInterval,
    Times,
)
from ...metrics.load.unmeasured import unmeasured, unmeasured_goals
from ...metrics.statistics.shares import share_interval
from .arrivals import OpenLoop, asked_between
from .budget import LoadEnd
from .histogram import Histogram
from .measurements import MeasuredRun, MeasuredStep, ModelMeasurement
from .meter import LoadMeter, PartMeter
from .spec import LoadSpec

PERCENTS = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
_DECIMALS = 6


def load_of(
    spec: LoadSpec,
    wholes: Mapping[str, ModelMeasurement],
    ending: LoadEnd,
    prices: Mapping[str, Price | None],
    *,
    began: float,
    left_out: tuple[float, float] = (0.0, 0.0),
    unsure: float = 0.0,
    workers: tuple[LoadClient, ...] = (),
) -> LoadFigures:
    """Returns the figures of a whole test. `left_out` has the seconds excluded at both ends; `unsure` is the part of
    the cost, in dollars, that may not have been billed; `workers` are those that sent the calls."""
    models = {model: _model(spec, whole, is_priced=prices.get(model) is not None) for model, whole in wholes.items()}
    gone = (*unmeasured(models), *unmeasured_goals(models))
    costs = [model.spent for model in models.values() if model.spent is not None]
    return LoadFigures(
        millstream=VERSION,
        began=began,
        seconds=round(max((whole.seconds for whole in wholes.values()), default=0.0), _DECIMALS),
        ending=ending.reason,
        ending_detail=" ".join(ending.detail.split()),
        test=dict(spec.said),
        spent=sum(costs) if costs else None,
        spent_unsure=round(unsure, 9),
        client=structs.replace(client_of(wholes), workers=workers),
        models=models,
        warm_up_s=round(left_out[0], _DECIMALS),
        cool_down_s=round(left_out[1], _DECIMALS),
        unmeasured=gone,
    )


def times_of(histogram: Histogram, *, is_whole: bool = True) -> Times:
    """Returns a histogram's percentiles, and the histogram itself if `is_whole`."""
    return Times(
        count=histogram.count,
        mean_s=round(histogram.mean_s, _DECIMALS),
        longest_s=round(histogram.longest_s, _DECIMALS),
        percentiles=tuple(filter(None, map(histogram.percentile, PERCENTS))),
        hdr=histogram.encoded() if is_whole and histogram.count else "",
    )


def client_of(wholes: Mapping[str, ModelMeasurement]) -> Client:
    """Returns the figures of the client over all runs: the worst lag, and each run's reasons with their model and
    rate."""
    reasons: dict[str, None] = {}
    judged = [(model, each) for model, whole in wholes.items() for each in whole.runs]
    for model, each in judged:
        where = [] if len(wholes) == 1 else [model]
        where += [] if each.rate is None else [f"{each.rate:.4g} calls/s"]
        for reason in each.verdict.reasons:
            reasons[f"{', '.join(where)}: {reason}" if where else reason] = None
    seconds = sum(each.seconds for _, each in judged)
    mean = sum(each.verdict.cpu_mean * each.seconds for _, each in judged) / seconds if seconds else 0.0
    return Client(
        reasons=tuple(reasons),
        lag_p99_s=max((each.verdict.lag_p99_s for _, each in judged), default=0.0),
        cpu_peak=round(max((each.verdict.cpu_peak for _, each in judged), default=0.0), 4),
        cpu_mean=round(mean, 4),
    )


def _model(spec: LoadSpec, whole: ModelMeasurement, *, is_priced: bool) -> ModelFigures:
    run, meter, seconds = whole.measured, whole.measured.meter, whole.seconds

    def per_s(count: int) -> float:
        return round(count / seconds, _DECIMALS) if seconds > 0 else 0.0

    steps = tuple(_step(step, meter) for step in whole.steps)
    return ModelFigures(
        calls=meter.calls,
        answered=meter.answered,
        errors=dict(meter.failures.most_common()),
        error_share=_share(meter.errors, meter.calls),
        begun=run.begun,
        held=run.held,
        hold_max_s=round(run.hold_max_s, _DECIMALS),
        unsent_held=run.unsent_held,
        unsent_late=run.unsent_late,
        in_flight_max=run.in_flight_max,
        attempts=meter.attempts,
        rate=per_s(meter.calls),
        goodput=None if meter.promise is None or not meter.answered else per_s(meter.kept),
        input_tokens=meter.input_tokens,
        output_tokens=meter.output_tokens,
        output_tokens_per_s=per_s(meter.output_tokens),
        spent=run.spent if is_priced else None,
        latency=times_of(meter.latency),
        service=times_of(meter.service),
        first_token=times_of(meter.first_token),
        token=times_of(meter.token),
        gap=times_of(meter.gap),
        own_delay=times_of(meter.own_delay),
        held_by_lane=times_of(meter.held),
        slices=tuple(_slices(meter, whole.runs)),
        steps=steps,
        goal=_goal(spec, whole),
        knee=knee(sorted(steps, key=lambda step: step.rate or 0.0), _burstiness(spec)),
        empty=meter.empty,
        cut=meter.cut,
    )


def _share(hits: int, count: int) -> ShareInterval:
    low, high = share_interval(hits, count)
    return ShareInterval(hits / count if count else 0.0, low, high)


def _burstiness(spec: LoadSpec) -> float:
    arrivals = spec.plan.arrivals
    return max(1.0, arrivals.burstiness) if isinstance(arrivals, OpenLoop) else 1.0


def _goal(spec: LoadSpec, whole: ModelMeasurement) -> GoalFound | None:
    """Returns the search's result with rates rounded as in the steps; None if there was no search. Without an answered
    call no rate is named, neither as kept nor as missed."""
    result = whole.found
    if result is None or spec.search is None:
        return None
    goal = spec.search.goal
    if not whole.measured.meter.answered:
        return GoalFound(goal.text, None, None, None)
    kept, missed, client_at = map(_rounded, (result.kept, result.missed, result.client_at))
    is_unmeasured = "unmeasured" in result.steps.values()
    return GoalFound(goal.text, kept, missed, client_at, goal.lack if is_unmeasured else "")


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, _DECIMALS)


def _step(step: MeasuredStep, whole: LoadMeter) -> LoadPart:
    counted = step.counted
    part = _part(counted, step.begins_s, step.seconds, step.rate, is_whole=True)
    return structs.replace(
        part,
        standing=step.standing if whole.answered else None,
        is_client_bound=step.is_client_bound,
        kept=None if whole.promise is None or not whole.answered else counted.kept,
        output_tokens=counted.output_tokens,
        token=times_of(counted.token, is_whole=False),
        gap=times_of(counted.gap, is_whole=False),
    )


def _part(counted: PartMeter, begins_s: float, seconds: float, rate: float | None, *, is_whole: bool) -> LoadPart:
    return LoadPart(
        begins_s=round(begins_s, _DECIMALS),
        seconds=round(seconds, _DECIMALS),
        calls=counted.calls,
        errors=counted.errors,
        latency=times_of(counted.latency, is_whole=is_whole),
        first_token=times_of(counted.first_token, is_whole=is_whole),
        rate=_rounded(rate),
        kinds=dict(counted.failures.most_common()),
    )


def _slices(meter: LoadMeter, runs: Sequence[MeasuredRun]) -> Iterator[LoadPart]:
    """Yields the figures of each slice of time that was measured; each slice is as long as its measured part."""
    for number, counted in sorted(meter.slices.items()):
        low, high = number * meter.slice_s, (number + 1) * meter.slice_s
        met = [
            (run, max(low, run.begins_s), min(high, run.ends_s))
            for run in runs
            if min(high, run.ends_s) > max(low, run.begins_s)
        ]
        seconds = sum(end - begin for _, begin, end in met)
        if not seconds:
            continue
        expected = [asked_between(run.arrivals, begin - run.zero_s, end - run.zero_s) for run, begin, end in met]
        calls = [each for each in expected if each is not None]
        yield _part(counted, met[0][1], seconds, sum(calls) / seconds if calls else None, is_whole=False)
