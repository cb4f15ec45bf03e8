"""Computes how many calls may be in flight under a cost limit, since each reserves its worst cost before it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....engine.attempts.estimate import TokenEstimate
from ....engine.attempts.money import worst_cost
from ....engine.call import Call
from ....wiring import Settings
from ..door.prepared_run import PreparedRun


def in_flight_under_limit(prepared: PreparedRun) -> list[dict[str, Any]]:
    """Returns a row for each lane with a price: the dollars that its dearest call can cost, and how many such calls the
    limit allows at once. Empty without a limit."""
    settings = prepared.settings
    if settings.max_cost is None:
        return []
    return [
        {
            "lane": lane,
            "max_cost": settings.max_cost,
            "worst_call": worst,
            "in_flight": int(settings.max_cost / worst),
            "concurrency": settings.concurrency_of(lane),
        }
        for lane, worst in prepared.work.worst_calls(settings).items()
        if worst > 0
    ]


def lines(bounds: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in bounds:
        name, most, concurrency = each["lane"], each["in_flight"], each["concurrency"]
        limit = f"--max-cost ${each['max_cost']:,.4f}"
        can_bear = f"{name}: a call may cost ${each['worst_call']:,.4f} at worst, so {limit} bears"
        if most >= concurrency:
            yield f"{can_bear} {most:,} in flight at once, and its concurrency of {concurrency:,} is not held back"
        elif most:
            yield f"{can_bear} {most:,} in flight at once, fewer than its concurrency of {concurrency:,}"
        else:
            yield f"{can_bear} none of its dearest calls: raise it, or lower --max-tokens"


def worst_costs(calls: Iterable[Call], settings: Settings) -> dict[str, float]:
    """Returns the dollars that the dearest of the calls to each model can cost. Models without a price, or whose
    answers have no bound, are left out."""
    prices, estimate = settings.price_table(), TokenEstimate()
    worst: dict[str, float] = {}
    for call in calls:
        price = prices.get(call.model)
        if price is not None and (most := worst_cost(call, price, estimate)) is not None:
            worst[call.model] = max(most, worst.get(call.model, 0.0))
    return worst
