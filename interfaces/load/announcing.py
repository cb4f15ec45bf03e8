"""What a load test will send, for how long and at what cost, reckoned before anything is sent.

Owns the forecast and its one line. The cost of a call at most is reckoned as the cap on cost reserves it.
"""

from __future__ import annotations

import math
from itertools import islice
from statistics import fmean, pstdev
from typing import Any

from msgspec import Struct

from ...bench.load.arrivals import Arrivals, Closed, Open, Replay
from ...bench.load.goal import Goal, Search
from ...engine.endpoint import EncodeError
from ...engine.estimate import TokenEstimate
from ...engine.limits import declared_quota
from ...engine.money import worst_cost
from ...wiring import access_to, keyless_endpoint_to
from ..refusal import UsageError
from .asked import asked_between
from .kinds import TRACE
from .order import Order

# So many calls of each model tell what the others cost.
_LOOK = 1_000
# Standard deviations: of ten million tests, one has more arrivals.
_SURE = 5.0


class Forecast(Struct, frozen=True):
    """`calls`: as many as are expected, `calls_most` that it never has more than, both of all models together; None
    where that is the server's to say. `cost`: if every answer is as long as it may be; `cost_most`: what no test goes
    beyond, its own cap included. None: not known. `each_most`: of one call."""

    calls: float | None
    calls_most: int | None
    seconds: float | None
    cost: float | None
    cost_most: float | None
    each: float | None
    each_most: float | None
    is_capped: bool
    unpriced: tuple[str, ...]


class _Looked(Struct, frozen=True):
    """One model's calls, of which the first `count` were looked at: dollars of each, if answered in full, and at most
    with the deviation of that."""

    count: int
    each: float
    most: float
    most_mean: float
    most_deviation: float

    def at_most(self, calls: int) -> float:
        """Of so many calls, but for a chance that no test meets: of many, few are among the dearest."""
        spread = self.most_deviation * (math.sqrt(calls) + calls / math.sqrt(max(1, self.count)))
        return min(calls * self.most, calls * self.most_mean + _SURE * spread + self.most)


def forecast_of(order: Order) -> Forecast:
    """Refuses what no call of the test could do: a parameter that its model never takes, a prompt that no minute of
    its lane holds."""
    looked = {model: _looked(model, order) for model in order.models}
    unpriced = tuple(model for model, own in looked.items() if own is None)
    known = [own for own in looked.values() if own is not None]
    calls, most = _calls(order)
    each = each_most = cost = cost_most = None
    if not unpriced:
        each = sum(own.each for own in known) / len(known)
        each_most = max(own.most for own in known)
        cost = None if calls is None else calls * each
        # A limit on calls is all models' own: the dearest may have them all.
        cost_most = None if most is None else max(own.at_most(most) for own in known)
    cap = order.plan.limits.max_cost
    is_capped = cap is not None and (cost_most is None or cap < cost_most)
    seconds, warm_up_s = _seconds(order), order.plan.warm_up_s
    if seconds is not None and warm_up_s >= seconds > 0:
        raise UsageError(
            f"--warm-up: expected less than the {_time(seconds)} that the test takes, got {_time(warm_up_s)}: nothing "
            f"would be measured"
        )
    cost_most = cap if is_capped else cost_most
    return Forecast(calls, most, seconds, cost, cost_most, each, each_most, is_capped, unpriced)


def _looked(model: str, order: Order) -> _Looked | None:
    """None: it has no price."""
    price = order.settings.price_table().get(model)
    endpoint = keyless_endpoint_to(access_to(model, order.settings))
    quota, estimate = declared_quota(order.settings.lane_of(model)), TokenEstimate()
    costs, worst = [], []
    for number, call in enumerate(islice(order.calls(model, 0), _LOOK)):
        if number == 0:
            try:
                endpoint.encode(call)
            except EncodeError as error:
                raise UsageError(str(error)) from error
        tokens = estimate.tokens_of(call)
        if (lack := quota.lacks(tokens)) is not None:
            raise UsageError(
                f"--{lack.name}: expected room for a call of about {lack.needed:,} {lack.what}, got {lack.most:,.0f} a "
                f"minute: raise it or ask for less"
            )
        if price is not None and (most := worst_cost(call, price, estimate)) is not None:
            costs.append(price.of_call(tokens.input, tokens.output))
            worst.append(most)
    return _Looked(len(worst), fmean(costs), max(worst), fmean(worst), pstdev(worst)) if worst else None


def _calls(order: Order) -> tuple[float | None, int | None]:
    """Of all models: expected, and at most."""
    models, plan = len(order.models), order.plan
    if order.goal is not None and order.search is not None:
        return None, models * _calls_of_search(order.goal, order.search, plan.warm_up_s)
    expected, most = _due(plan.arrivals, plan.ends_s, models)
    given = plan.limits.calls
    if given is not None:
        expected, most = min(expected, float(given)), min(most, float(given))
    return (None, None) if math.isinf(expected) else (expected, math.ceil(most))


def _due(arrivals: Arrivals, ends_s: float | None, models: int) -> tuple[float, float]:
    """Expected, and at most but for a chance that no test meets."""
    if isinstance(arrivals, Replay):
        return float(models * len(arrivals.stamps)), float(models * len(arrivals.stamps))
    if isinstance(arrivals, Closed) or ends_s is None:
        return math.inf, math.inf
    expected = models * (asked_between(arrivals, 0.0, ends_s) or 0.0)
    if arrivals.process == "constant":
        return expected, models * math.ceil(expected / models)
    return expected, expected + _SURE * (math.sqrt(arrivals.burstiness * expected) + arrivals.burstiness)


def _calls_of_search(goal: Goal, search: Search, warm_up_s: float) -> int:
    """Every rate up to the highest, and the halvings between the last two, each repeated as often as it may be."""
    rates, rate = [search.low], search.low
    while rate < search.high:
        rate = min(search.high, rate * search.growth)
        rates.append(rate)
    halvings = 0
    if len(rates) > 1:
        halvings = max(0, math.ceil(math.log2(math.log(search.growth) / math.log1p(search.precision))))
    rates += [search.high] * halvings
    runs = search.repeats_max + 1
    return sum((2**runs - 1) * search.calls_of(goal, rate) + runs * math.ceil(rate * warm_up_s) for rate in rates)


def _seconds(order: Order) -> float | None:
    """How long calls are begun, but for what the cap on cost cuts off."""
    if order.goal is not None:
        return None
    ends, given, arrivals = order.plan.ends_s, order.plan.limits.calls, order.plan.arrivals
    if given is None or not isinstance(arrivals, Open) or len(arrivals.stretches) > 1:
        return ends
    (stretch,) = arrivals.stretches
    needed = stretch.when(given / len(order.models)) if given / len(order.models) < stretch.expected else math.inf
    return needed if ends is None else min(ends, needed)


def tell(order: Order, forecast: Forecast) -> str:
    """One line."""
    told = [_told_of_calls(order, forecast), *_told_of_cost(order, forecast)]
    return "; ".join(told)


def _told_of_calls(order: Order, forecast: Forecast) -> str:
    to = "" if len(order.models) == 1 else f" to {len(order.models)} models together"
    if order.goal is not None and order.search is not None:
        first = order.search.calls_of(order.goal, order.search.low)
        return (
            f"searches the highest rate from {order.search.low:,g} to {order.search.high:,g} calls/s that keeps "
            f"{order.goal_text}: {first:,} calls or more at a rate ({_time(first / order.search.low)} at the first), "
            f"more where they don't decide, and {forecast.calls_most:,} at most{to}"
        )
    over = "" if forecast.seconds is None else f" over {_time(forecast.seconds)}"
    if isinstance(order.plan.arrivals, Closed):
        each = "" if len(order.models) == 1 else f" to each of {len(order.models)} models"
        many = "" if forecast.calls_most is None else f", {forecast.calls_most:,} at most"
        return f"keeps {order.plan.arrivals.in_flight:,} calls in flight{each}{over}{many}"
    assert forecast.calls is not None and forecast.calls_most is not None
    if round(forecast.calls) == forecast.calls_most:
        return f"sends at most {forecast.calls_most:,} calls{to}{over}"
    return f"sends about {forecast.calls:,.0f} calls{to}{over}, {forecast.calls_most:,} at most"


def _told_of_cost(order: Order, forecast: Forecast) -> list[str]:
    if forecast.unpriced:
        return [f"what it costs is not known: no price for {', '.join(forecast.unpriced)}"]
    tokens = order.said["max-tokens"]
    long = "if answers are as long as the trace tells" if tokens == TRACE else f"if answers take all {tokens:,} tokens"
    told = []
    if forecast.cost is not None:
        told.append(f"about {_dollars(forecast.cost)} {long}")
    elif forecast.each is not None:
        told.append(f"about {_dollars(forecast.each)} a call {long}")
    if forecast.cost_most is not None:
        by = " by --max-cost" if forecast.is_capped else ""
        early = ", which is likely to end it early" if by and (forecast.cost or 0.0) > forecast.cost_most else ""
        told.append(f"at most {_dollars(forecast.cost_most)}{by}{early}")
    elif forecast.each_most is not None:
        told.append(
            f"at most {_dollars(forecast.each_most)} a call, and no limit on all: --calls or --max-cost sets one"
        )
    return told


def as_json(order: Order, forecast: Forecast) -> dict[str, Any]:
    return {
        "models": list(order.models),
        "test": dict(order.said),
        "calls": forecast.calls,
        "calls_most": forecast.calls_most,
        "seconds": forecast.seconds,
        "cost": forecast.cost,
        "cost_most": forecast.cost_most,
        "cost_of_a_call": forecast.each,
        "cost_of_a_call_most": forecast.each_most,
        "without_a_price": list(forecast.unpriced),
    }


def _dollars(amount: float) -> str:
    """Two digits that tell something."""
    if amount == 0 or amount >= 1:
        return f"${amount:,.2f}"
    return f"${amount:.{min(9, 1 - math.floor(math.log10(amount)))}f}"


def _time(seconds: float) -> str:
    if seconds < 180:
        return f"{seconds:,.3g} s"
    minutes = seconds / 60
    return f"{minutes:,.3g} min" if minutes < 180 else f"{minutes / 60:,.3g} h"
