"""The state of an engine at one moment, in plain numbers, for monitoring.

It is read when it is asked for: nothing is counted in between. What happened so far, events report.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from ..engine.attempts.money import CostBudget
from ..engine.scheduler import Scheduler


class LaneStatistics(Struct, frozen=True):
    """The state of one model's or search engine's lane at one moment."""

    model: str
    """The model or engine."""
    in_flight: int
    """Calls in flight."""
    queued: int
    """Calls that wait."""
    concurrency: int
    """The most calls that may be in flight."""
    requests: int
    """Requests of the last minute."""
    input_tokens: int
    """Input tokens of the last minute."""
    output_tokens: int
    """Output tokens of the last minute."""
    waits_for: str = ""
    """What holds up the next call: requests, tokens, pause…; empty: nothing."""
    stopped: str = ""
    """Why it sends nothing more; empty: it does."""


class Statistics(Struct, frozen=True):
    """The state of an engine at one moment."""

    lanes: tuple[LaneStatistics, ...]
    """Each lane."""
    in_flight: int
    """Calls in flight."""
    hosts: int
    """Hosts of pages that it remembers."""
    spent: float
    """Dollars spent by this engine."""
    reserved: float
    """Dollars reserved for what is in flight."""


def statistics_of(scheduler: Scheduler, budget: CostBudget) -> Statistics:
    """Returns the state of an engine. Call it in the engine's loop, whose clock the ledgers use."""
    now = asyncio.get_running_loop().time()
    lanes = []
    for model, route in scheduler.routes.lasting.items():
        group = route.lane
        requests, tokens = group.used(now)
        lanes.append(
            LaneStatistics(
                model,
                group.in_flight,
                group.queued,
                group.concurrency,
                requests,
                tokens.input,
                tokens.output,
                group.waiting_for,
                "" if group.stopped is None else group.stopped.detail,
            )
        )
    at_hosts = sum(route.lane.in_flight for route in scheduler.routes.hosts.values())
    in_flight = at_hosts + sum(lane.in_flight for lane in lanes)
    return Statistics(tuple(lanes), in_flight, len(scheduler.routes.hosts), budget.spent, budget.reserved)
