"""The ways out by lane: each model's for as long as the engine lives, each host's for as long as it is of use.

Builds a route on first use and forgets hosts that rest, so that a run over any number of them needs no more memory.
Sends nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator

from msgspec import Struct

from .admission import StopReason
from .call import WEB
from .endpoint import Endpoint, Fault
from .estimate import TokenEstimate
from .group import LaneGroup
from .money import Price
from .retry import RetryPolicy

HOSTS_KEPT = 1000
# So long a host that rests is remembered, whatever its pause between two calls.
RESTED_S = 2.0
# A host that was given up is tried again after so long: a run may last for days.
FORGIVEN_S = 300.0
_LOOKED_AT = 16
_HOST = f"{WEB}/"


class Route(Struct):
    """Everything one lane needs: where it goes (an endpoint for each of the lane's keys), under which quota, at what
    price. `policy` None: the scheduler's. `is_retrieval`: a search or a page, whose failures are kept and whose answers
    grow old; `is_page`: a host's, which may be given up without the run."""

    endpoints: tuple[Endpoint, ...]
    lane: LaneGroup
    price: Price | None
    estimate: TokenEstimate
    policy: RetryPolicy | None = None
    is_retrieval: bool = False
    is_page: bool = False
    under_way: int = 0
    used_at: float = 0.0
    stopped_at: float | None = None
    latest_fault: Fault | None = None

    @property
    def endpoint(self) -> Endpoint:
        """For what no key matters to."""
        return self.endpoints[0]


class Routes:
    """`build` makes the route of a lane. `lasting` are those that are never forgotten."""

    def __init__(self, build: Callable[[str], Route]) -> None:
        self.lasting: dict[str, Route] = {}
        self.hosts: OrderedDict[str, Route] = OrderedDict()
        self.halted: tuple[StopReason, str] | None = None
        self._build = build

    def __iter__(self) -> Iterator[Route]:
        yield from self.lasting.values()
        yield from self.hosts.values()

    def of(self, lane: str) -> Route:
        route = self.lasting.get(lane)
        if route is not None:
            return route
        if lane.startswith(_HOST):
            return self._of_host(lane)
        route = self.lasting[lane] = self._built(lane)
        return route

    def halt(self, reason: StopReason, detail: str) -> None:
        self.halted = (reason, detail)
        for route in self:
            route.lane.stop(reason, detail)

    def close(self) -> None:
        for route in self:
            route.lane.close()

    def _built(self, lane: str) -> Route:
        route = self._build(lane)
        if self.halted is not None:
            route.lane.stop(*self.halted)
        return route

    def _of_host(self, lane: str) -> Route:
        now = asyncio.get_running_loop().time()
        route = self.hosts.get(lane)
        if route is not None and self._is_forgiven(route, now):
            self._forget(lane)
            route = None
        if route is None:
            route = self.hosts[lane] = self._built(lane)
            self._forget_rested(now)
        else:
            self.hosts.move_to_end(lane)
        route.used_at = now
        return route

    def _is_forgiven(self, route: Route, now: float) -> bool:
        if route.lane.stopped is None:
            return False
        if route.stopped_at is None:
            route.stopped_at = now
        return self.halted is None and route.under_way == 0 and now - route.stopped_at >= FORGIVEN_S

    def _forget_rested(self, now: float) -> None:
        """Those used longest ago, as far as nothing has to be remembered of them."""
        for _ in range(_LOOKED_AT):
            if len(self.hosts) <= HOSTS_KEPT:
                return
            lane, route = next(iter(self.hosts.items()))
            if self._is_at_rest(route, now):
                self._forget(lane)
            else:
                self.hosts.move_to_end(lane)

    @staticmethod
    def _is_at_rest(route: Route, now: float) -> bool:
        if route.under_way:
            return False
        key = route.lane.keys[0]
        rested_s = max(RESTED_S, key.quota.spacing_s) if key.is_healthy else FORGIVEN_S
        return now - route.used_at >= rested_s

    def _forget(self, lane: str) -> None:
        self.hosts.pop(lane).lane.close()
