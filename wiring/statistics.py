"""What an engine is doing at one moment, in plain numbers, for whoever watches it from outside.

Read off when it is asked for: nothing is counted meanwhile. What happened so far, events tell.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from ..engine.money import Purse
from ..engine.scheduler import Scheduler


class LaneStatistics(Struct, frozen=True):
    """One model's or search engine's lane. Requests and tokens are those of the last minute. `waits_for`: what holds up
    the next call (requests, tokens, pause…), empty where nothing does; `stopped`: why nothing more is sent, if so."""

    model: str
    in_flight: int
    queued: int
    concurrency: int
    requests: int
    input_tokens: int
    output_tokens: int
    waits_for: str = ""
    stopped: str = ""


class Statistics(Struct, frozen=True):
    """Dollars are those of the engine's whole life; `hosts` is how many hosts of pages it remembers."""

    lanes: tuple[LaneStatistics, ...]
    in_flight: int
    hosts: int
    spent: float
    reserved: float


def statistics_of(scheduler: Scheduler, purse: Purse) -> Statistics:
    """For the loop that the engine runs in, whose time its ledgers count in."""
    now = asyncio.get_running_loop().time()
    lanes = []
    for model, route in scheduler.routes.items():
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
    at_hosts = sum(route.lane.in_flight for route in scheduler.hosts.values())
    in_flight = at_hosts + sum(lane.in_flight for lane in lanes)
    return Statistics(tuple(lanes), in_flight, len(scheduler.hosts), purse.spent, purse.reserved)
