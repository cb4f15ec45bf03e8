"""Computes how many calls may be in flight under a cost limit, since each reserves its worst cost before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....engine.attempts.money import worst_cost
from ....engine.call import Call
from ....engine.estimate import TokenEstimate, chars_of
from ....providers.models import WINDOW
from ..door.prepared_run import PreparedRun
from ..door.run_items import other_calls

_CHARS_A_TOKEN = 4


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
        for lane, worst in worst_calls(prepared).items()
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


def worst_calls(run: PreparedRun) -> dict[str, float]:
    """Returns the dollars of each lane's dearest call: the one with the longest prompt, or, where prompts contain
    answers, one that fills the model's window or what the specification's `prompt_tokens` have for the lane. Lanes
    without a price, or whose answers have no bound, are left out."""
    prices, estimate = run.settings.price_table(), TokenEstimate()
    worst: dict[str, float] = {}
    for lane in run.lanes:
        if (price := prices.get(lane)) is not None:
            costs = (worst_cost(call, price, estimate) for call in _dearest_calls(run, lane))
            if bounded := [cost for cost in costs if cost is not None]:
                worst[lane] = max(bounded)
    return worst


def _dearest_calls(run: PreparedRun, lane: str) -> Iterator[Call]:
    benchmark = run.benchmark
    if benchmark.is_asked_once:
        if pairs := [pair for pair in run.pairs if pair.model == lane]:
            options = run.options_of(pairs[0])
            longest = max(run.items.longest(), key=lambda item: chars_of(benchmark.call(item, options, pairs[0])))
            yield from (benchmark.call(longest, run.options_of(pair), pair) for pair in pairs)
        yield from (call for call in other_calls(benchmark, run.options) if call.model == lane)
    else:
        limits = run.specification.get("prompt_tokens")
        tokens = (run.settings.facts_of(lane).window or WINDOW) if limits is None else limits.get(lane, 0)
        yield Call(lane, "x" * (_CHARS_A_TOKEN * tokens), max_tokens=run.max_tokens[lane])
