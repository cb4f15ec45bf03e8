"""A call under way, for all who wait for it: who they are, how its outcome is stored and passed on, and how it ends.

A waiter leaves whenever it likes; the call goes on for the others. How a call is sent: flight. Where answers lie:
store/cache.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from enum import Enum
from random import Random
from typing import Protocol

from msgspec import MsgspecError, Struct, field, structs

from .attempts.retry import RetryPolicy
from .call import Call, Outcome
from .call_lookup import CallLookup, PendingCall
from .endpoint import Hear, Request, Response
from .fault import LocalFault, StopReason
from .lanes.key_gate import Payer, Permit
from .lanes.lane_queue import LaneStopped
from .sink import Sink, SinkLine
from .store.cache import Cache
from .verdict import Tries

# What the encoder raises for an entry that can't become bytes, such as half a character in a header.
_NOT_ENCODED = (ValueError, TypeError, OverflowError, MsgspecError)


# The most answers that one turn of the loop takes. Answers that arrive together would otherwise be stored together, and
# the calls that follow them sent together, so that a burst of calls never spreads out. Measured with 2,000 in flight
# and answers of half a second, by the process's own time: a call then takes 0.64 s; with at most 32 answers in a turn
# 0.53, with 64 0.54, with 128 0.57.
LANDED_MOST = 32


class At(Enum):
    """The stations of a call under way."""

    BEGUN = "begun"
    CLAIM = "waiting for another engine that sends the same call"
    SHARED = "waiting for the shared cache"
    LANE = "waiting in its lane"
    SENT = "sent"
    PAUSE = "waiting before a repeat"
    KEPT = "being stored"
    OVER = "over"


class UnderWay(Protocol):
    """A call under way, as one that waits for it sees it."""

    def remove(self, waiter: Waiter) -> None:
        """Removes a waiter. Ends the call if nobody else waits for it and its outcome is not known."""
        ...

    async def wait_until_free(self) -> None:
        """Waits until slot and connection are free, if all have left."""
        ...


class Waiter(Struct, eq=False):
    """One that waits for a shared call, until `leave`. `sink` takes the outcome of a call that this one began; `on_end`
    is called at the instant when the end of the call is known, and must not raise; `is_early`: that is before the
    outcome is stored. The call sets `is_joining` (it was under way before) and `call`, and at last `ended`."""

    pending: PendingCall
    on_end: Callable[[Waiter], None] | None = None
    sink: Sink | None = None
    hear: Hear | None = None
    is_early: bool = False
    is_joining: bool = False
    call: UnderWay | None = None
    ended: Outcome | BaseException | None = None
    _future: asyncio.Future[None] | None = None

    @property
    def known(self) -> Outcome | None:
        """The outcome, as this one's own; None if it is not known yet, or the call ended with an error."""
        return self.ended if isinstance(self.ended, Outcome) else None

    async def outcome(self) -> Outcome:
        """Waits for the call to end and returns its outcome, as this one's own. Raises the error that ended the call,
        or CancelledError if the call or this wait was cancelled. In each case it leaves the call."""
        try:
            if self.ended is None:
                self._future = asyncio.get_running_loop().create_future()
                await self._future
        finally:
            self.leave()
        assert self.ended is not None
        if isinstance(self.ended, BaseException):
            raise self.ended
        return self.ended

    def end(self, end: Outcome | BaseException) -> None:
        """Takes the end of the call; the first counts."""
        if self.ended is not None:
            return
        if self.is_joining and isinstance(end, Outcome):
            end = shared_outcome(self.pending.call, end)
        self.ended = end
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        if self.on_end is not None:
            self.on_end(self)

    def leave(self) -> None:
        if self.call is not None:
            self.call.remove(self)


class Parts(CallLookup, eq=False, kw_only=True):
    """What all calls under way in one engine share. `out` counts the attempts whose answer has not arrived;
    `maybe_billed_pending` those that may have been billed, of calls that ended without an outcome; `calls` has each
    call under way by its key; `on_halt` are called when all sending ends, `on_widen` when more may be in flight.
    `landed`: the answers that this turn of the loop has taken; `late`: those that the next turns take."""

    cache: Cache
    policy: RetryPolicy
    random: Random
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    out: int = 0
    maybe_billed_pending: int = 0
    calls: dict[bytes, SharedCall] = field(default_factory=dict)
    on_halt: set[Callable[[], None]] = field(default_factory=set)
    on_widen: set[Callable[[], None]] = field(default_factory=set)
    landed: int = 0
    late: deque[tuple[SharedCall, Response]] = field(default_factory=deque)

    def land_late(self) -> None:
        """Begins a turn of the loop with the answers that the one before has left."""
        self.landed = min(len(self.late), LANDED_MOST)
        if self.landed:
            self.loop.call_soon(self.land_late)
        for _ in range(self.landed):
            flight, response = self.late.popleft()
            flight.land(response)

    def begin(self, waiter: Waiter) -> None:
        """Sends a call for a waiter, or joins it to the identical call that is under way. Never raises."""
        raise NotImplementedError

    def halt(self, reason: StopReason, detail: str) -> None:
        """Stops sending on all lanes; calls in flight are finished."""
        self.routes.halt(reason, detail)
        for listener in tuple(self.on_halt):
            listener()

    def write(self, outcome: Outcome, sink: Sink | None) -> None:
        """Writes an outcome to a sink, at once."""
        if sink is not None:
            sink.write(outcome)
            sink.flush()
            if sink.fault is not None:
                self.halt("local_fault", str(sink.fault))


class SharedCall(Struct, eq=False, kw_only=True):
    """A call that is under way: `at` one of its stations, `since` when. `outcome` is known before it is stored; from
    then on the call goes to its end, even if all leave. `first`: the waiter that began it, None if that has left;
    `payers`: those who wait have these, of whom one pays for the next attempt, empty if one has none."""

    parts: Parts
    pending: PendingCall
    waiters: list[Waiter]
    first: Waiter | None
    payers: tuple[Payer, ...]
    tries: Tries
    request: Request
    since: float
    at: At = At.BEGUN
    outcome: Outcome | None = None
    lease: int = 0
    context: Context = field(default_factory=copy_context)
    pieces: list[str] | None = None
    has_begun: bool = False
    permit: Permit | None = None
    line: SinkLine | None = None
    over: asyncio.Event | None = None

    # Those who wait

    def add(self, waiter: Waiter) -> None:
        if self.outcome is not None and waiter.is_early:
            waiter.end(self.outcome)
            return
        waiter.call = self
        self.waiters.append(waiter)
        if self.payers:
            self.payers = _payers_of(self.waiters)
            self.parts.loop.call_soon(self.pending.route.lane.regroup, self)  # who joins may pay for it now
        if waiter.hear is not None and self.pieces:
            waiter.hear("".join(self.pieces))  # the text that was streamed before it joined

    def remove(self, waiter: Waiter) -> None:
        """Removes a waiter. Ends the call if nobody else waits for it and its outcome is not known."""
        if waiter not in self.waiters:
            return
        self.waiters.remove(waiter)
        self.payers = _payers_of(self.waiters)
        if waiter is self.first:
            self.first = None
            if self.line is not None:
                self.line.sink = None
        if not self.waiters and self.outcome is None:
            self.abort()

    def hear(self, piece: str | None) -> None:
        """Passes a piece of the answer's text to all listeners; None: a new attempt begins."""
        if piece is None or self.pieces is None:
            self.pieces = []
        if piece is not None:
            self.pieces.append(piece)
        for waiter in tuple(self.waiters):
            if waiter.hear is not None:
                waiter.hear(piece)

    async def wait_until_free(self) -> None:
        """Waits until slot and connection are free, if all have left: the call was ended, or its outcome is being
        stored."""
        if not self.waiters:
            await self.until_over()
            await asyncio.sleep(0)  # an attempt that is a task ends in the next turn of the loop

    async def until_over(self) -> None:
        """Waits until the call has ended and nothing of it is left."""
        if self.at is not At.OVER:
            self.over = self.over or asyncio.Event()
            await self.over.wait()

    # Its outcome

    def land(self, response: Response) -> None:
        """Takes the response to the attempt that was sent, unless it was aborted meanwhile."""
        raise NotImplementedError

    def _keep(self, outcome: Outcome, response: Response | None) -> None:
        """Stores the outcome, then has its journal line written: one write serves many. Then the call ends."""
        assert self.at not in (At.BEGUN, At.OVER), self
        self.outcome, self.at, self.since = outcome, At.KEPT, self.parts.loop.time()
        pending, cache, first, route = self.pending, self.parts.cache, self.first, self.pending.route
        if route.is_kept and first is not None and first.sink is not None:
            self.line = SinkLine(first.sink, outcome, self.context)
        key, request, done, line = pending.key, pending.request, self._kept, self.line
        url = request.url if route.is_page else ""
        try:
            if route.is_kept and outcome.failure is not None:
                cache.put_failure(key, request, outcome.failure, response, done, url=url, line=line)
                return
            if route.is_kept and response is not None:
                if response.headers and not route.is_page:
                    # These headers are about quotas at this moment; a page's describe the page.
                    response = structs.replace(response, headers={})
                is_last = self.parts.out == 0  # no other answer is on its way that could share the commit
                cache.put(key, request, pending.call.trial, response, done, is_last=is_last, url=url, line=line)
                return
        except _NOT_ENCODED:
            # It reaches its caller but is not stored: the next identical call is sent again.
            self.line = None
        self._write_first(outcome)
        self._kept(None)

    def _kept(self, error: BaseException | None) -> None:
        """Takes the end of storing and writing: the error of one of the two, if there was one. Must not raise, since
        others were stored by the same commit."""
        outcome, line, parts, pending = self.outcome, self.line, self.parts, self.pending
        assert outcome is not None and self.at is At.KEPT, self
        if isinstance(error, LocalFault):
            # The outcome still reaches the journal; nothing more is sent.
            parts.halt("local_fault", str(error))
            self._write_first(outcome)
        elif error is not None:
            self._fail_first(error)  # its sink's; the others have their answer
        if line is not None and line.sink is not None and line.sink.fault is not None:
            parts.halt("local_fault", str(line.sink.fault))
        if parts.shared is not None and pending.route.is_kept and not isinstance(error, LocalFault):
            parts.shared.put(pending.key)
        if outcome.reply is not None:
            parts.events.tell("answered", pending.call.model, outcome.latency_ms or 0.0, outcome.status)
        self._end(outcome)

    def _write_first(self, outcome: Outcome) -> None:
        """Writes an outcome to the first waiter's sink, at once; the others write it to their own."""
        if (first := self.first) is not None:
            try:
                # The copy, since the attempt may be beginning in the context itself.
                self.context.copy().run(self.parts.write, outcome, first.sink)
            except BaseException as error:  # noqa: BLE001 (the sink's)
                self._fail_first(error)

    def _fail_first(self, error: BaseException) -> None:
        """Raises an error of the first waiter's sink to that waiter alone."""
        if (first := self.first) is not None:
            self.first = None
            self.waiters.remove(first)
            first.end(error)

    # Its end

    def abort(self) -> None:
        """Ends the call without an outcome, wherever it is."""
        self._end(asyncio.CancelledError())

    def _release(self) -> None:
        """Frees the slot of the attempt, if there is one. What it may have cost is settled or stays counted."""
        if (permit := self.permit) is not None:
            self.permit = None
            self.pending.route.lane.release(permit, self.parts.loop.time())

    def _end(self, end: Outcome | BaseException) -> None:
        """Frees all that the call holds, and tells those who wait."""
        if self.at is At.OVER:
            return
        pending, parts = self.pending, self.parts
        self.at = At.OVER
        self._release()
        parts.claims.release(pending.key, self.lease)
        if parts.shared is not None:
            parts.shared.leave(pending.key)
        if isinstance(end, BaseException):
            # The call stays pending, so no record will show what was sent for it.
            parts.maybe_billed_pending += self.tries.maybe_billed
        del parts.calls[pending.key]
        pending.route.under_way -= 1
        self.request = pending.request  # it may have had this call's listener
        if self.has_begun:
            self._tell(end)
        else:
            parts.loop.call_soon(self._tell, end)

    def _tell(self, end: Outcome | BaseException) -> None:
        """Passes the end on to those who wait. Who waited by a lane that has stopped while its own has not begins
        anew."""
        waiters, self.waiters, self.first = self.waiters, [], None  # no cycle is left for the garbage collector
        for waiter in waiters:
            if isinstance(end, LaneStopped) and waiter.pending.route is not self.pending.route:
                self.parts.begin(waiter)
            else:
                waiter.end(end)
        if self.over is not None:
            self.over.set()


def _payers_of(waiters: Sequence[Waiter]) -> tuple[Payer, ...]:
    payers = dict.fromkeys(waiter.pending.payer for waiter in waiters)
    return () if None in payers else tuple(payer for payer in payers if payer is not None)


def shared_outcome(call: Call, outcome: Outcome) -> Outcome:
    """Returns the outcome of an identical call that another began, as this call's own: its cost is 0.0 or None."""
    return Outcome(
        call,
        reply=outcome.reply,
        failure=outcome.failure,
        key=outcome.key,
        cached=outcome.reply is not None,
        cost=None if outcome.cost is None else 0.0,
    )
