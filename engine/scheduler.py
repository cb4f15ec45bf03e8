"""The front of the engine's calls: what is known of a call, and the one way in which it is sent.

It is given endpoints and lanes; it knows no provider and no benchmark. How a call goes on its way: flight. The iterator
and the results of a whole run: run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random

from .attempts.retry import RetryPolicy, Tries
from .call import Call, Outcome
from .call_lookup import CallEncoding as CallEncoding
from .call_lookup import CallLookup, PendingCall
from .claims import Claims
from .endpoint import Hear
from .events import Events
from .fault import Stopped, StopReason
from .flight import Flight
from .lanes.lane_queue import LaneStopped
from .routes import Route as Route
from .routes import Routes
from .shared_calls import CallWaiter, Parts, Waiter, shared_outcome
from .sink import Sink
from .store.cache import Cache, Mode
from .store.cache_policy import CachePolicy


class Scheduler:
    """The way of all calls to their outcomes. `route` makes a lane's route from its name, when it is first used."""

    def __init__(
        self,
        route: Callable[[str], Route],
        *,
        cache: Cache,
        claims: Claims,
        mode: Mode,
        policy: RetryPolicy,
        events: Events,
        random: Random,
        recall: CachePolicy | None = None,
    ) -> None:
        self.events = events
        self.cache = cache
        self.ways = Routes(route, policy.reopened_s)
        # Those of models and searches, by lane; those of hosts come and go.
        self.routes: Mapping[str, Route] = self.ways.lasting
        self.hosts: Mapping[str, Route] = self.ways.hosts
        self._mode = mode
        lookup = CallLookup(self.ways, recall or CachePolicy(cache, mode), claims, events, mode)
        self.encoded, self.look_up = lookup.encoded, lookup.look_up
        self.route_of, self.resume, self.close = self.ways.of, self.ways.resume, self.ways.close
        self._parts = Parts(
            ways=self.ways,
            lookup=lookup,
            cache=cache,
            claims=claims,
            policy=policy,
            events=events,
            random=random,
            begin=self.begin,
            halt=self.halt,
        )
        self._is_closed = False
        self.on_halt: set[Callable[[], None]] = set()
        self.on_end: set[Callable[[], Awaitable[None]]] = set()

    def __repr__(self) -> str:
        in_flight = sum(route.lane.in_flight for route in self.ways)
        hosts = f"{len(self.ways.hosts)} hosts, " if self.ways.hosts else ""
        calls = f"{self.under_way} calls under way, {in_flight} in flight"
        longest = min(self._parts.under_way.values(), key=lambda call: call.since, default="nothing")
        return f"<Scheduler [{len(self.routes)} lanes, {hosts}{calls}, mode {self._mode}, waits longest: {longest}]>"

    @property
    def halted(self) -> tuple[StopReason, str] | None:
        return self.ways.halted

    @property
    def under_way(self) -> int:
        """The number of calls that are being sent or stored, however many wait for each."""
        return len(self._parts.under_way)

    def is_under_way(self, pending: PendingCall) -> bool:
        """Whether an identical call is being sent or stored, so that this one would join it."""
        return pending.key in self._parts.under_way

    async def end(self) -> None:
        """Ends all runs (those that still wait get an error) and all calls, since the engine is about to be closed."""
        self._is_closed = True
        for listener in tuple(self.on_end):
            await listener()
        for flight in tuple(self._parts.under_way.values()):
            if flight.outcome is None:
                flight.abort()
        for flight in tuple(self._parts.under_way.values()):
            await flight.until_over()

    async def ask(self, call: Call, sink: Sink | None = None, hear: Hear | None = None) -> Outcome:
        """Returns the outcome of one call, after it was written to `sink`, if there is one. Raises Stopped if its lane
        sends nothing more. `hear` receives the streamed text of a call that is sent; nothing for one that is stored
        or was begun without a listener."""
        found = self.look_up(call)
        if isinstance(found, Outcome):
            self._parts.write(found, sink)
            return found
        try:
            return await self.fetch(found, sink, hear)
        except LaneStopped as error:
            raise Stopped([error.stop]) from error

    def halt(self, reason: StopReason, detail: str) -> None:
        """Stops sending on all lanes; calls in flight are finished."""
        self.ways.halt(reason, detail)
        for listener in tuple(self.on_halt):
            listener()

    @property
    def maybe_billed_pending(self) -> int:
        """The attempts that may have been billed, of calls that ended without an outcome."""
        return self._parts.maybe_billed_pending

    def begin(self, waiter: Waiter) -> None:
        """Sends a call for a waiter, or joins it to the identical call that is under way. Never raises."""
        pending, parts, under_way = waiter.pending, self._parts, self._parts.under_way
        call = under_way.get(pending.key)
        waiter.is_joining = call is not None
        if call is not None:
            call.add(waiter)
            return
        flight = waiter.call = under_way[pending.key] = Flight(
            parts=parts,
            pending=pending,
            waiters=[waiter],
            first=waiter,
            payers=() if pending.payer is None else (pending.payer,),
            tries=Tries(pending.route.policy or parts.policy),
            request=pending.request,
            since=parts.loop.time(),
            tokens=pending.tokens,
        )
        flight.begin()

    async def fetch(self, pending: PendingCall, sink: Sink | None, hear: Hear | None = None) -> Outcome:
        """Sends a call, or joins an identical one that is under way, and returns the outcome. If the only caller is
        cancelled, it goes on when slot and connection are free."""
        waiter = CallWaiter(pending, hear=hear, sink=sink)
        self.begin(waiter)
        try:
            outcome = await waiter.outcome()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_closed and task is not None and not task.cancelling():
                raise RuntimeError("the engine was closed while this call was under way") from None
            if waiter.call is not None:
                await waiter.call.wait_until_free()
            raise
        return self.joined(waiter, outcome) if waiter.is_joining else outcome

    def joined(self, waiter: Waiter, outcome: Outcome) -> Outcome:
        """Returns the outcome of a call that another caller began as this waiter's own, and writes it to its sink."""
        kind = None if outcome.failure is None else outcome.failure.kind
        self.events.tell("cached" if kind is None else "unsent", waiter.pending.call.model, detail=kind or "")
        outcome = shared_outcome(waiter.pending.call, outcome)
        self._parts.write(outcome, waiter.sink)
        return outcome
