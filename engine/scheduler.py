"""The front of the engine's calls: what is known of a call, and the one way in which it is sent.

It is given endpoints and lanes; it knows no provider and no benchmark. How a call goes on its way: flight. The iterator
and the results of a whole run: run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import field

from .call import Call, Outcome
from .call_lookup import CallEncoding as CallEncoding
from .call_lookup import PendingCall
from .endpoint import Hear
from .fault import Stopped
from .flight import Flight
from .lanes.lane_queue import LaneStopped
from .routes import Route as Route
from .shared_calls import Parts, Waiter
from .sink import Sink
from .verdict import Tries

# Calls of one lane that may be in work beyond what it sends at once, where each first asks a server that several
# machines share, or a worker.
AHEAD = 256


class Scheduler(Parts, eq=False, kw_only=True):
    """The way of all calls to their outcomes. `on_end` are waited for before the engine closes."""

    on_end: set[Callable[[], Awaitable[None]]] = field(default_factory=set)
    _is_closed: bool = False

    def __repr__(self) -> str:
        in_flight = sum(route.lane.in_flight for route in self.routes)
        hosts = f"{len(self.routes.hosts)} hosts, " if self.routes.hosts else ""
        calls = f"{self.under_way} calls under way, {in_flight} in flight"
        longest = min(self.calls.values(), key=lambda call: call.since, default="nothing")
        lanes = len(self.routes.lasting)
        return f"<Scheduler [{lanes} lanes, {hosts}{calls}, mode {self.mode}, waits longest: {longest}]>"

    @property
    def under_way(self) -> int:
        """The number of calls that are being sent or stored, however many wait for each."""
        return len(self.calls)

    def in_work_most(self, lane: str) -> int:
        """Returns how many calls of a lane a run may have in work at once."""
        return self.routes.of(lane).lane.in_work_most + (0 if self.shared is None else AHEAD)

    async def end(self) -> None:
        """Ends all runs (those that still wait get an error) and all calls, since the engine is about to be closed."""
        self._is_closed = True
        for listener in tuple(self.on_end):
            await listener()
        while self.late:  # their answers are paid for
            self.land_late()
        for flight in tuple(self.calls.values()):
            if flight.outcome is None:
                flight.abort()
        for flight in tuple(self.calls.values()):
            await flight.until_over()

    async def ask(self, call: Call, sink: Sink | None = None, hear: Hear | None = None) -> Outcome:
        """Returns the outcome of one call, after it was written to `sink`, if there is one. Raises Stopped if its lane
        sends nothing more. `hear` receives the streamed text of a call that is sent; nothing for one that is stored
        or was begun without a listener."""
        result = self.look_up(call)
        if isinstance(result, Outcome):
            self.write(result, sink)
            return result
        try:
            return await self.fetch(result, sink, hear)
        except LaneStopped as error:
            raise Stopped([error.stop]) from error

    def begin(self, waiter: Waiter) -> None:
        pending = waiter.pending
        call = self.calls.get(pending.key)
        waiter.is_joining = call is not None
        if call is not None:
            call.add(waiter)
            return
        flight = waiter.call = self.calls[pending.key] = Flight(
            parts=self,
            pending=pending,
            waiters=[waiter],
            first=waiter,
            payers=() if pending.payer is None else (pending.payer,),
            tries=Tries(pending.route.policy or self.policy),
            request=pending.request,
            since=self.loop.time(),
            tokens=pending.tokens,
        )
        flight.begin()

    async def fetch(self, pending: PendingCall, sink: Sink | None, hear: Hear | None = None) -> Outcome:
        """Sends a call, or joins an identical one that is under way, and returns the outcome. If the only caller is
        cancelled, it goes on when slot and connection are free."""
        waiter = Waiter(pending, hear=hear, sink=sink)
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
        if waiter.is_joining:
            self.note_joined(outcome, sink)
        return outcome

    def note_joined(self, outcome: Outcome, sink: Sink | None) -> None:
        """Reports the outcome of a call that another caller began, and writes it to the sink of one that joined it."""
        kind = None if outcome.failure is None else outcome.failure.kind
        self.events.tell("cached" if kind is None else "unsent", outcome.call.model, detail=kind or "")
        self.write(outcome, sink)
