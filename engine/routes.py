"""The routes to the outside by lane: a model's for as long as the engine lives, a web host's for as long as it is used.

Builds a route on first use and forgets hosts that nobody uses, so that a run over any number needs no more memory.
Sends nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from msgspec import Struct

from .attempts.money import Bill, CostBound, bill_of, cost_bound
from .attempts.retry import RetryPolicy
from .call import Call, Reply
from .endpoint import Endpoint, Fault
from .estimate import TokenEstimate
from .fault import StopReason
from .lanes.key_gate import Permit
from .lanes.lane_queue import LaneQueue
from .limits import DAY_S, Limit
from .prices import Price

HOSTS_KEPT = 1000
# A call that was sent on the day before may be billed at its price.
_EDGE_S = 3600.0
_UNBILLED = Bill(None)
# A host that was given up is tried again after this many seconds: a run may last for days.
FORGIVEN_S = 300.0
_LOOKED_AT = 16
# Reasons that may have passed since: these lanes may be opened anew.
_REOPENED: tuple[StopReason, ...] = ("dead_key", "empty_account", "redirect", "patience")


class Route(Struct):
    """Everything that one lane needs: an endpoint for each of its API keys, its queue, its price (None: unknown).
    `prices_on` returns the prices of two days, by their numbers since 1970 on the `clock`, if prices may change while
    the route is used: one if it is the same.
    `policy` None: the scheduler's. `is_retrieval`: a search or a page, whose failures are stored and whose answers
    expire; `is_page`: a web host's, which may be given up without the run; `is_local`: its answers are made in this
    process, also if workers carry the others; `is_kept` False: no answer is stored.
    `under_way` counts its open shared calls."""

    endpoints: tuple[Endpoint, ...]
    lane: LaneQueue
    price: Price | None
    estimate: TokenEstimate
    policy: RetryPolicy | None = None
    is_retrieval: bool = False
    is_page: bool = False
    is_local: bool = False
    is_kept: bool = True
    under_way: int = 0
    latest_fault: Fault | None = None
    prices_on: Callable[[float, float], tuple[Price | None, ...]] | None = None
    clock: Callable[[], float] = time.time

    def cost_bounds(self, call: Call) -> tuple[CostBound, ...]:
        """Returns the bounds of what one attempt can cost, also if it is answered on the next day: of each price that
        there is and that has one."""
        bounds = [cost_bound(call, price) for price in self._prices(DAY_S) if price is not None]
        return tuple(filter(None, bounds))

    @property
    def endpoint(self) -> Endpoint:
        """The first endpoint, for uses in which the API key does not matter."""
        return self.endpoints[0]

    def _prices(self, away_s: float) -> tuple[Price | None, ...]:
        """Returns the price of now and, if it is another, that of `away_s` seconds from now."""
        if self.prices_on is None:
            return (self.price,)
        now = self.clock()
        return self.prices_on(now // DAY_S, (now + away_s) // DAY_S)

    def settle(self, permit: Permit, call: Call, weight: int, reply: Reply) -> float | None:
        """Replaces what was reserved for an attempt by what its reply used, and records the success. Returns its cost
        in dollars, the dearer one if the price has just changed; None if it is not known. `weight`: the prompt's."""
        usage, bill = reply.usage, _UNBILLED
        for price in self._prices(-_EDGE_S):
            other = bill_of(reply, call, price, self.estimate)
            if bill.cost is None or (other.cost is not None and other.cost > bill.cost):
                bill = other
        if usage is not None:
            self.estimate.observe(weight, usage)
        permit.gate.succeeded(permit, permit.tokens.settled(usage), bill.cost, is_reported=bill.is_reported)
        self.lane.note_answer(reply)
        return bill.cost


class Routes:
    """All routes; `build` makes one from a lane's name. `lasting` are those of models and searches, `hosts` those of
    web hosts, which are forgotten when idle; `on_open` is called with each new one; `reopened_s` as in RetryPolicy."""

    def __init__(self, build: Callable[[str], Route], reopened_s: float | None = None) -> None:
        self.lasting: dict[str, Route] = {}
        self.hosts: OrderedDict[str, Route] = OrderedDict()
        self._resting: OrderedDict[str, float] = OrderedDict()
        self.halted: tuple[StopReason, str] | None = None
        self.on_open: Callable[[Route], None] = lambda route: None
        self._build = build
        self._reopened_s = reopened_s

    def __iter__(self) -> Iterator[Route]:
        yield from self.lasting.values()
        yield from self.hosts.values()

    def of(self, lane: str) -> Route:
        """Returns a lane's route, which is opened anew if it stopped long enough ago."""
        route = self.lasting.get(lane) or self.hosts.get(lane)
        if route is not None and self._is_reopened(route):
            self._forget(lane)
            route = None
        if route is None:
            route = self._opened(lane)
        elif route.is_page:
            self.hosts.move_to_end(lane)
        return route

    def halt(self, reason: StopReason, detail: str) -> None:
        self.halted = (reason, detail)
        for route in self:
            route.lane.stop(reason, detail)

    def resume(self) -> None:
        """Ends a halt: each lane is opened anew when it is next used."""
        self.halted = None
        for lane, route in tuple(self.lasting.items()):
            if route.lane.stopped is not None and not route.under_way:
                self._forget(lane)

    def close(self) -> None:
        for route in self:
            route.lane.close()

    def _opened(self, lane: str) -> Route:
        route = self._build(lane)
        self.on_open(route)
        if self.halted is not None:
            route.lane.stop(*self.halted)
        if not route.is_page:
            self.lasting[lane] = route
            return route
        self.hosts[lane] = route
        now = asyncio.get_running_loop().time()
        wait_s = self._resting.pop(lane, now) - now
        if wait_s > 0:
            route.lane.keys[0].learn((Limit("requests", wait_s, remaining=0, reset_s=wait_s),), now)
        self._forget_idle(now)
        return route

    def reopens_in_s(self, lane: str) -> float | None:
        """Returns the seconds until a stopped lane may be opened anew; None if it hasn't stopped or won't be."""
        route = self.lasting.get(lane) or self.hosts.get(lane)
        if route is None or route.lane.stopped is None or self.halted is not None:
            return None
        is_passing = route.lane.stopped.reason in _REOPENED
        after_s = FORGIVEN_S if route.is_page else self._reopened_s if is_passing else None
        since_s = asyncio.get_running_loop().time() - route.lane.stopped_at
        return None if after_s is None else max(0.0, after_s - since_s)

    def _is_reopened(self, route: Route) -> bool:
        return not route.under_way and self.reopens_in_s(route.lane.lane.model) == 0

    def _forget_idle(self, now: float) -> None:
        """Forgets the hosts beyond HOSTS_KEPT that were unused for longest, except those in use or in trouble."""
        for _ in range(_LOOKED_AT):
            if len(self.hosts) <= HOSTS_KEPT:
                break
            lane, route = next(iter(self.hosts.items()))
            if route.under_way or not (route.lane.keys[0].is_healthy or self._is_reopened(route)):
                self.hosts.move_to_end(lane)
            else:
                self._forget(lane)
        while self._resting and next(iter(self._resting.values())) <= now:
            self._resting.popitem(last=False)

    def _forget(self, lane: str) -> None:
        """Forgets a route. A host's last call may have been sent just now, so its spacing is remembered until it is
        over."""
        route = self.lasting.pop(lane, None) or self.hosts.pop(lane)
        if route.is_page:
            self._resting[lane] = asyncio.get_running_loop().time() + route.lane.keys[0].quota.spacing_s
        route.lane.close()
