"""What was measured as the structs of `load.json`: histograms to percentiles, counts to rates and shares.

Pure functions. Knows how a test is told, and nothing of how it is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from ... import __version__
from ...bench.load.arrivals import Open
from ...bench.load.budget import Ending
from ...bench.load.histogram import Histogram, share_interval
from ...bench.load.meter import Meter
from ...bench.load.meter import Part as Counted
from ...engine.money import Price
from ...metrics.load.file import Client, GoalFound, Load, Model, Part, Percentile, Share, Times
from ...metrics.load.knee import knee
from ...metrics.load.unmeasured import unmeasured
from .asked import asked_between
from .measured import Step, Whole, Window
from .order import Order

PERCENTS = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
_DECIMALS = 6


def load_of(
    order: Order,
    wholes: Mapping[str, Whole],
    ending: Ending,
    prices: Mapping[str, Price | None],
    *,
    began: float,
    left_out: tuple[float, float] = (0.0, 0.0),
    unsure: float = 0.0,
) -> Load:
    """`left_out`: seconds at the beginning and at the end. `unsure`: dollars of what was spent."""
    models = {model: _model(order, whole, is_priced=prices.get(model) is not None) for model, whole in wholes.items()}
    gone = unmeasured(models)
    known = [model.spent for model in models.values() if model.spent is not None]
    return Load(
        millstream=__version__,
        began=began,
        seconds=round(max((whole.seconds for whole in wholes.values()), default=0.0), _DECIMALS),
        ending=ending.reason,
        ending_detail=" ".join(ending.detail.split()),
        test=dict(order.said),
        spent=sum(known) if known else None,
        spent_unsure=round(unsure, 9),
        client=client_of(wholes),
        models=models,
        warm_up_s=round(left_out[0], _DECIMALS),
        cool_down_s=round(left_out[1], _DECIMALS),
        unmeasured=gone,
    )


def times_of(histogram: Histogram, *, is_whole: bool = True) -> Times:
    """`is_whole`: with the histogram itself, and not its percentiles alone."""
    found = [histogram.percentile(percent) for percent in PERCENTS]
    return Times(
        count=histogram.count,
        mean_s=round(histogram.mean_s, _DECIMALS),
        longest_s=round(histogram.longest_s, _DECIMALS),
        percentiles=tuple(
            Percentile(each.percent, each.value_s, each.low_s, each.high_s) for each in found if each is not None
        ),
        hdr=histogram.encoded() if is_whole and histogram.count else "",
    )


def client_of(wholes: Mapping[str, Whole]) -> Client:
    """All runs together: the worst of their lags, and the reasons of each with where they were met."""
    reasons: dict[str, None] = {}
    judged = [(model, each) for model, whole in wholes.items() for each in whole.judged]
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


def _model(order: Order, whole: Whole, *, is_priced: bool) -> Model:
    own, meter, seconds = whole.measured, whole.measured.meter, whole.seconds

    def per_s(count: int) -> float:
        return round(count / seconds, _DECIMALS) if seconds > 0 else 0.0

    steps = tuple(_step(step, is_answered=meter.answered > 0) for step in whole.steps)
    return Model(
        calls=meter.calls,
        answered=meter.answered,
        errors=dict(meter.failures.most_common()),
        error_share=_share(meter.errors, meter.calls),
        begun=own.begun,
        held=own.held,
        hold_max_s=round(own.hold_max_s, _DECIMALS),
        unsent_held=own.unsent_held,
        unsent_late=own.unsent_late,
        in_flight_max=own.in_flight_max,
        attempts=meter.attempts,
        rate=per_s(meter.calls),
        goodput=None if meter.promise is None or not meter.answered else per_s(meter.kept),
        input_tokens=meter.input_tokens,
        output_tokens=meter.output_tokens,
        output_tokens_per_s=per_s(meter.output_tokens),
        spent=own.spent if is_priced else None,
        latency=times_of(meter.latency),
        service=times_of(meter.service),
        first_token=times_of(meter.first_token),
        token=times_of(meter.token),
        gap=times_of(meter.gap),
        own_delay=times_of(meter.own_delay),
        held_by_lane=times_of(meter.held),
        slices=_slices(meter, whole.windows),
        steps=steps,
        goal=_goal(order, whole),
        knee=knee(sorted(steps, key=lambda step: step.rate or 0.0), _burstiness(order)),
        empty=meter.empty,
        cut=meter.cut,
    )


def _share(hits: int, count: int) -> Share:
    low, high = share_interval(hits, count)
    return Share(hits / count if count else 0.0, low, high)


def _burstiness(order: Order) -> float:
    arrivals = order.plan.arrivals
    given = arrivals.burstiness if order.goal is None and isinstance(arrivals, Open) else order.burstiness
    return max(1.0, given)


def _goal(order: Order, whole: Whole) -> GoalFound | None:
    """Rates are those that the steps have. Where no call was answered, none is named, neither as kept nor as missed."""
    found = whole.found
    if found is None:
        return None
    if not whole.measured.meter.answered:
        return GoalFound(order.goal_text, None, None, None)
    kept, missed, client_at = map(_rounded, (found.kept, found.missed, found.client_at))
    return GoalFound(order.goal_text, kept, missed, client_at)


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, _DECIMALS)


def _part(
    counted: Counted, begins_s: float, seconds: float, rate: float | None, *, is_whole: bool, step: Step | None = None
) -> Part:
    return Part(
        begins_s=round(begins_s, _DECIMALS),
        seconds=round(seconds, _DECIMALS),
        calls=counted.calls,
        errors=counted.errors,
        latency=times_of(counted.latency, is_whole=is_whole),
        first_token=times_of(counted.first_token, is_whole=is_whole),
        rate=_rounded(rate),
        standing=None if step is None else step.standing,
        is_client_bound=step is not None and step.is_client_bound,
        kinds=dict(counted.failures.most_common()),
    )


def _step(step: Step, *, is_answered: bool) -> Part:
    part = _part(step.counted, step.begins_s, step.seconds, step.rate, is_whole=True, step=step)
    return part if is_answered else structs.replace(part, standing=None)


def _slices(meter: Meter, windows: Sequence[Window]) -> tuple[Part, ...]:
    """Latency over time. A slice is as long as what was measured of it."""
    parts = []
    for _, counted in sorted(meter.slices.items()):
        low, high = counted.begins_s, counted.begins_s + meter.slice_s
        met = [
            (window, max(low, window.begins_s), min(high, window.ends_s))
            for window in windows
            if min(high, window.ends_s) > max(low, window.begins_s)
        ]
        seconds = sum(end - begin for _, begin, end in met)
        if not seconds:
            continue
        asked = [
            asked_between(window.arrivals, begin - window.zero_s, end - window.zero_s) for window, begin, end in met
        ]
        known = [each for each in asked if each is not None]
        rate = sum(known) / seconds if known else None
        parts.append(_part(counted, met[0][1], seconds, rate, is_whole=False))
    return tuple(parts)
