"""Predicts what a load test will send, for how long and at what cost, before anything is sent.

Owns the forecast and its line of text. The most a call can cost is computed as the cost cap reserves it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from statistics import fmean, pstdev
from typing import Any

from msgspec import Struct, to_builtins

from ...configuration.errors import UsageError
from ...engine.attempts.money import worst_cost
from ...engine.endpoint import EncodeError
from ...engine.estimate import TokenEstimate, call_weight
from ...engine.limits import declared_quota
from ...format import count_text, dollars, rough_time
from ...wiring import access_to, keyless_endpoint_to
from .arrivals import Arrivals, ClosedLoop, OpenLoop, Replay, asked_between
from .goal import GROWTH, Search
from .option_kinds import TRACE
from .spec import LoadSpec

# The costs of all calls are estimated from this many of each model.
_LOOK = 1_000
# Standard deviations: one test in ten million has more arrivals.
_SURE = 5.0


class LoadForecast(Struct, frozen=True):
    """What a test will send and cost, all models together, with costs in dollars. None: unknown.

    `calls` are expected and `calls_most` is their upper bound; the server decides both in a closed loop. `cost` assumes
    answers of the allowed length; `cost_most` is the bound, cap included (`is_capped`). `seconds_of_search` are those
    of a search for a goal that the first rate misses, and of one that misses it at last only."""

    calls: float | None
    calls_most: int | None
    seconds: float | None
    seconds_of_search: tuple[float, float] | None
    cost: float | None
    cost_most: float | None
    cost_of_a_call: float | None
    cost_of_a_call_most: float | None
    without_a_price: tuple[str, ...]
    is_capped: bool


class _SampledCalls(Struct, frozen=True):
    """The costs in dollars of one model's first `count` calls: `each` if answered in full, and of the worst case the
    maximum, the mean and the standard deviation."""

    count: int
    each: float
    most: float
    most_mean: float
    most_deviation: float

    def at_most(self, calls: int) -> float:
        """Returns the most dollars that `calls` calls cost, except with negligible probability: not all of many calls
        cost as much as the dearest."""
        spread = self.most_deviation * (math.sqrt(calls) + calls / math.sqrt(max(1, self.count)))
        return min(calls * self.most, calls * self.most_mean + _SURE * spread + self.most)


def forecast_of(spec: LoadSpec) -> LoadForecast:
    """Returns the forecast. Raises UsageError if no call could be sent: its model never accepts a parameter, or the
    prompt exceeds a minute's quota."""
    sampled = {model: _sampled(model, spec) for model in spec.models}
    unpriced = tuple(model for model, sample in sampled.items() if sample is None)
    samples = [sample for sample in sampled.values() if sample is not None]
    calls, most = _calls(spec)
    each = each_most = cost = cost_most = None
    if not unpriced:
        each = sum(sample.each for sample in samples) / len(samples)
        each_most = max(sample.most for sample in samples)
        cost = None if calls is None else calls * each
        # All models share a limit on calls, so the dearest model may use it up.
        cost_most = None if most is None else max(sample.at_most(most) for sample in samples)
    cap = spec.plan.limits.max_cost
    is_capped = cap is not None and (cost_most is None or cap < cost_most)
    seconds, warm_up_s = _seconds(spec), spec.plan.warm_up_s
    if seconds is not None and warm_up_s >= seconds > 0:
        raise UsageError(
            f"--warm-up: expected less than the {seconds:,g} s that the test takes, got {warm_up_s:,g} s: nothing "
            f"would be measured"
        )
    cost_most = cap if is_capped else cost_most
    return LoadForecast(calls, most, seconds, _search_s(spec), cost, cost_most, each, each_most, unpriced, is_capped)


def _sampled(model: str, spec: LoadSpec) -> _SampledCalls | None:
    """Returns the costs in dollars of a model's first calls; None if it has no price. Raises UsageError if they can't
    be sent."""
    price = spec.settings.price_table().get(model)
    endpoint = keyless_endpoint_to(access_to(model, spec.settings))
    quota, estimate = declared_quota(spec.settings.lane_of(model)), TokenEstimate()
    costs, worst = [], []
    for number, call in enumerate(islice(spec.calls(model, 0), _LOOK)):
        if number == 0:
            try:
                endpoint.encode(call)
            except EncodeError as error:
                raise UsageError(str(error)) from error
        tokens = estimate.tokens_of(call, call_weight(call))
        if (lack := quota.lacks(tokens)) is not None:
            raise UsageError(
                f"--{lack.name}: expected room for a call of about {lack.needed:,} {lack.what}, got {lack.most:,.0f} a "
                f"minute: raise it or ask for less"
            )
        if price is not None and (most := worst_cost(call, price, estimate)) is not None:
            costs.append(price.of_call(tokens.input, tokens.output))
            worst.append(most)
    return _SampledCalls(len(worst), fmean(costs), max(worst), fmean(worst), pstdev(worst)) if worst else None


def _calls(spec: LoadSpec) -> tuple[float | None, int | None]:
    """Returns the calls of all models, expected and at most; None: not limited."""
    models, plan = len(spec.models), spec.plan
    if spec.search is not None:
        return None, models * _calls_of_search(spec.search, plan.warm_up_s)
    expected, most = _due(plan.arrivals, plan.ends_s, models)
    limit = plan.limits.calls
    if limit is not None:
        expected, most = min(expected, float(limit)), min(most, float(limit))
    return (None, None) if math.isinf(expected) else (expected, math.ceil(most))


def _due(arrivals: Arrivals, ends_s: float | None, models: int) -> tuple[float, float]:
    """Returns how many calls all models together get until `ends_s`: the expected number, and one exceeded with
    negligible probability. Both are infinite in a closed loop or without an end; a replay has one for each stamp and
    ignores `ends_s`."""
    if isinstance(arrivals, Replay):
        return float(models * len(arrivals.stamps)), float(models * len(arrivals.stamps))
    if isinstance(arrivals, ClosedLoop) or ends_s is None:
        return math.inf, math.inf
    expected = models * (asked_between(arrivals, 0.0, ends_s) or 0.0)
    if arrivals.process == "constant":
        return expected, models * math.ceil(expected / models)
    return expected, expected + _SURE * (math.sqrt(arrivals.burstiness * expected) + arrivals.burstiness)


def _calls_of_search(search: Search, warm_up_s: float) -> int:
    """Returns the most calls that a search sends: at every rate up to the highest, and at each halving of the range
    between the last two, with all repeats."""
    rates = _doubled(search)
    rates += [search.high] * _halvings(search, rates)
    runs = search.repeats_max + 1
    return sum((2**runs - 1) * search.calls_at(rate) + runs * math.ceil(rate * warm_up_s) for rate in rates)


def _doubled(search: Search) -> list[float]:
    """Returns the rates up to the highest, as long as each keeps the goal."""
    rates, rate = [search.low], search.low
    while rate < search.high:
        rate = min(search.high, rate * GROWTH)
        rates.append(rate)
    return rates


def _halvings(search: Search, rates: Sequence[float]) -> int:
    """Returns the most halvings between the last rate that kept the goal and the one that missed it."""
    if len(rates) < 2:
        return 0
    return max(0, math.ceil(math.log2(math.log(GROWTH) / math.log1p(search.precision))))


def _search_s(spec: LoadSpec) -> tuple[float, float] | None:
    """Returns the shortest and the longest time of a search in which each rate is decided at once; None: no search."""
    if spec.search is None:
        return None
    search, warm_up_s = spec.search, spec.plan.warm_up_s
    rates = _doubled(search)
    seconds = [search.calls_at(rate) / rate + warm_up_s for rate in rates]
    # Halved rates lie between the last two; the lower one takes longer.
    return seconds[0], sum(seconds) + _halvings(search, rates) * seconds[-2 if len(rates) > 1 else -1]


def _seconds(spec: LoadSpec) -> float | None:
    """Returns the seconds in which calls are begun, without an early end by the cost cap; None: not known."""
    if spec.search is not None:
        return None
    ends, limit, arrivals = spec.plan.ends_s, spec.plan.limits.calls, spec.plan.arrivals
    if limit is None or not isinstance(arrivals, OpenLoop) or len(arrivals.stretches) > 1:
        return ends
    (stretch,) = arrivals.stretches
    needed = stretch.when(limit / len(spec.models)) if limit / len(spec.models) < stretch.expected else math.inf
    return needed if ends is None else min(ends, needed)


def tell(spec: LoadSpec, forecast: LoadForecast) -> str:
    """Returns the forecast as one line of text."""
    texts = [_calls_text(spec, forecast), *_cost_texts(spec, forecast)]
    return "; ".join(texts)


def _calls_text(spec: LoadSpec, forecast: LoadForecast) -> str:
    to = "" if len(spec.models) == 1 else f" to {len(spec.models)} models together"
    if spec.search is not None and forecast.seconds_of_search is not None:
        first = spec.search.calls_at(spec.search.low)
        least, most = map(rough_time, forecast.seconds_of_search)
        return (
            f"searches the highest rate from {spec.search.low:,g} to {spec.search.high:,g} calls/s that keeps "
            f"{spec.search.goal.text}: {first:,} calls or more at a rate ({rough_time(first / spec.search.low)} at the "
            f"first), more where they don't decide, and {forecast.calls_most:,} at most{to}; takes {least} (the first "
            f"rate misses) to {most} (the last one misses)"
        )
    over = "" if forecast.seconds is None else f" over {rough_time(forecast.seconds)}"
    if isinstance(spec.plan.arrivals, ClosedLoop):
        each = "" if len(spec.models) == 1 else f" to each of {len(spec.models)} models"
        many = "" if forecast.calls_most is None else f", {forecast.calls_most:,} at most"
        return f"keeps {count_text(spec.plan.arrivals.in_flight, 'call')} in flight{each}{over}{many}"
    assert forecast.calls is not None and forecast.calls_most is not None
    if round(forecast.calls) == forecast.calls_most:
        return f"sends at most {count_text(forecast.calls_most, 'call')}{to}{over}"
    return f"sends about {forecast.calls:,.0f} calls{to}{over}, {forecast.calls_most:,} at most"


def _cost_texts(spec: LoadSpec, forecast: LoadForecast) -> list[str]:
    if forecast.without_a_price:
        return [f"cost unknown: no price for {', '.join(forecast.without_a_price)}"]
    tokens, each, each_most = spec.said["max-tokens"], forecast.cost_of_a_call, forecast.cost_of_a_call_most
    long = "if answers are as long as the trace tells" if tokens == TRACE else f"if answers take all {tokens:,} tokens"
    texts = []
    if forecast.cost is not None:
        texts.append(f"about {dollars(forecast.cost)} {long}")
    elif each is not None:
        texts.append(f"about {dollars(each)} a call {long}")
    if forecast.cost_most is not None:
        by = " by --max-cost" if forecast.is_capped else ""
        early = ", which is likely to end it early" if by and (forecast.cost or 0.0) > forecast.cost_most else ""
        texts.append(f"at most {dollars(forecast.cost_most)}{by}{early}")
    elif each_most is not None:
        texts.append(f"at most {dollars(each_most)} a call, and no limit on all: --calls or --max-cost sets one")
    return texts


def as_json(spec: LoadSpec, forecast: LoadForecast) -> dict[str, Any]:
    figures = to_builtins(forecast)
    del figures["is_capped"]
    return {"models": list(spec.models), "test": dict(spec.said), **figures}
