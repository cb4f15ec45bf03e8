"""Identical calls that are under way at the same time are sent once, for all who wait (single flight).

A shared call runs in a task of its own, so it belongs to none of its waiters: each of them may leave, and the call goes
on for the others. When the last one leaves, the call is cancelled, unless its outcome is known already and is only
being stored. Knows no cache, and of lanes only that they stop: what is sent, and how, the scheduler says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Protocol

from msgspec import Struct

from .attempts.payer import NotPaid, Payer
from .call import Call, Outcome
from .endpoint import Hear, Request
from .lanes.lane_queue import LaneStopped
from .limits import Tokens
from .routes import Route
from .sink import Sink, SinkLine


class PendingCall(Struct):
    """A call that the cache does not hold, ready to be sent. `key` is its cache key, `tokens` what is reserved for it;
    `payer`: the budget that pays for it beside the engine's, None: there is none."""

    call: Call
    route: Route
    request: Request
    key: bytes
    tokens: Tokens
    payer: Payer | None = None

    @property
    def reckoned_cost(self) -> float:
        """The most that an attempt can cost, in dollars; 0.0 if no limit has to bear it."""
        route, payer = self.route, self.payer
        if route.lane.purse.limit is None and (payer is None or not payer.reckons_worst):
            return 0.0
        return route.worst_cost(self.call) or 0.0


class Waiter(Protocol):
    """Who waits for a shared call. `sink` takes the outcome of a call that this waiter began; `is_early`: the outcome
    is passed on before it is stored. The call sets `is_joining` (it was under way before) and `call`; a waiter leaves
    by `call.remove`. Of `resolve` and `fail`, neither of which may raise, the first that is called counts."""

    pending: PendingCall
    hear: Hear | None
    sink: Sink | None
    is_early: bool
    is_joining: bool
    call: SharedCall | None

    def resolve(self, outcome: Outcome) -> None: ...

    def fail(self, error: BaseException) -> None: ...


class CallWaiter:
    """One caller that waits for a shared call in a coroutine, until `leave`."""

    __slots__ = ("_future", "_on_end", "call", "hear", "is_early", "is_joining", "pending", "sink")

    def __init__(
        self,
        pending: PendingCall,
        *,
        hear: Hear | None = None,
        sink: Sink | None = None,
        on_end: Callable[[], None] | None = None,
        is_early: bool = False,
    ) -> None:
        """Makes a waiter that has not joined a call yet. `on_end` is called at the instant when the outcome or an error
        is known, and must not raise."""
        self.pending = pending
        self.hear = hear
        self.sink = sink
        self.is_early = is_early
        self.is_joining = False
        self.call: SharedCall | None = None
        self._on_end = on_end
        self._future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    @property
    def known(self) -> Outcome | None:
        """The outcome, as this caller's own; None if it is not known yet, or the call ended with an error."""
        future = self._future
        if not future.done() or future.cancelled() or future.exception() is not None:
            return None
        return self._own(future.result())

    async def outcome(self) -> Outcome:
        """Waits for the call to end and returns its outcome. Raises the error that ended the call, or CancelledError if
        the call or this waiter was cancelled. In each case the waiter leaves the call."""
        try:
            return self._own(await self._future)
        finally:
            self.leave()

    def _own(self, outcome: Outcome) -> Outcome:
        return shared_outcome(self.pending.call, outcome) if self.is_joining else outcome

    def resolve(self, outcome: Outcome) -> None:
        if not self._future.done():
            self._future.set_result(outcome)
            if self._on_end is not None:
                self._on_end()

    def fail(self, error: BaseException) -> None:
        if self._future.done():
            return
        self._future.cancel() if isinstance(error, asyncio.CancelledError) else self._future.set_exception(error)
        if self._on_end is not None:
            self._on_end()

    def leave(self) -> None:
        if self.call is not None:
            self.call.remove(self)
        if self._future.done() and not self._future.cancelled():
            self._future.exception()  # a waiter that leaves in the same instant never looks at it

    async def wait_until_free(self) -> None:
        """Waits until slot and connection are free, if this waiter was the last to leave."""
        if self.call is not None:
            await self.call.wait_until_free()


class SharedCall:
    """One call that is being sent for all who wait for it. `is_heard`: its first waiter listens to the streamed text.
    `outcome` is known before it is stored. `line`: what the first waiter's sink receives with the commit. `is_open`:
    identical calls of any payer join it, and its route is in use. `is_leased`: this engine holds its key's lease."""

    __slots__ = (
        "_listeners",
        "_pieces",
        "_waiters",
        "is_heard",
        "is_leased",
        "is_open",
        "key",
        "line",
        "outcome",
        "pending",
        "task",
    )

    task: asyncio.Task[Outcome | None]

    def __init__(self, key: Hashable, pending: PendingCall, *, is_heard: bool) -> None:
        self.key = key
        self.pending = pending
        self.is_heard = is_heard
        self.outcome: Outcome | None = None
        self.line: SinkLine | None = None
        self.is_open = False
        self.is_leased = False
        self._waiters: dict[Waiter, None] = {}
        self._listeners: list[Hear] = []
        self._pieces: list[str] = []

    @property
    def waiters(self) -> tuple[Waiter, ...]:
        return tuple(self._waiters)

    @property
    def first(self) -> Waiter | None:
        """The waiter that began the call; None if it has left."""
        first = next(iter(self._waiters), None)
        return None if first is None or first.is_joining else first

    def add(self, waiter: Waiter) -> None:
        if self.outcome is not None and waiter.is_early:
            waiter.resolve(self.outcome)
            return
        waiter.call = self
        self._waiters[waiter] = None
        if waiter.hear is not None:
            self._listeners.append(waiter.hear)
            if self._pieces:
                waiter.hear("".join(self._pieces))  # the text that was streamed before it joined

    def remove(self, waiter: Waiter) -> None:
        """Removes a waiter. Cancels the call if nobody else waits for it and its outcome is not known."""
        if waiter not in self._waiters:
            return
        if self.line is not None and waiter is self.first:
            self.line.sink = None
        self.release(waiter)
        if not self._waiters and self.outcome is None and not self.task.done():
            self.task.cancel()

    def release(self, waiter: Waiter) -> None:
        """Removes a waiter; the call goes on even if it was the last."""
        del self._waiters[waiter]
        if waiter.hear is not None:
            self._listeners.remove(waiter.hear)

    async def wait_until_free(self) -> None:
        """Waits until slot and connection are free, if all waiters have left: the call was cancelled, or its outcome is
        being stored."""
        if not self._waiters and not self.task.done():
            await asyncio.wait([self.task])

    def hear(self, piece: str | None) -> None:
        """Passes a piece of the answer's text to all listeners; None: a new attempt begins."""
        if piece is None:
            self._pieces.clear()
        else:
            self._pieces.append(piece)
        for listener in self._listeners:
            listener(piece)

    def note_outcome(self, outcome: Outcome) -> bool:
        """Takes the outcome before it is stored, and passes it to the waiters that don't wait for the store. Returns
        whether there was one. From now on the call goes on to its end, even if all leave."""
        self.outcome = outcome
        early = [waiter for waiter in self._waiters if waiter.is_early]
        for waiter in early:
            waiter.resolve(outcome)
        return bool(early)

    def fail_first(self, error: Exception) -> None:
        """Raises an error of the first waiter's sink to that waiter alone."""
        if (first := self.first) is not None:
            first.fail(error)


class SharedCalls:
    """All shared calls of an engine. `send` makes the coroutine that returns a call's outcome, or None if all its
    waiters have gone over to another call."""

    def __init__(self, send: Callable[[SharedCall], Coroutine[Any, Any, Outcome | None]]) -> None:
        self._send = send
        # By its own key; while it waits for its payer, by the payer's name and that key.
        self._under_way: dict[Hashable, SharedCall] = {}

    def __repr__(self) -> str:
        waiting = sum(len(call.waiters) for call in self._calls())
        return f"<SharedCalls [{len(self)} under way, {waiting} waiting]>"

    def __len__(self) -> int:
        return len(self._calls())

    def _calls(self) -> set[SharedCall]:
        # A call that its payer has admitted stands under two keys.
        return set(self._under_way.values())

    def join(self, waiter: Waiter) -> None:
        """Adds a waiter to the identical call that is under way, else begins its call."""
        # No await between the look and the beginning: nobody else begins the same call.
        pending = waiter.pending
        key: Hashable = pending.key
        call, payer = self._under_way.get(key), pending.payer
        if call is None and payer is not None and payer.is_limited:
            key = payer.name, pending.key
            call = self._under_way.get(key)
        waiter.is_joining = call is not None
        if call is not None:
            call.add(waiter)
            return
        call = self._under_way[key] = SharedCall(key, pending, is_heard=waiter.hear is not None)
        if key is pending.key:
            self._open(call)
        call.add(waiter)
        call.task = asyncio.get_running_loop().create_task(self._send(call))
        call.task.add_done_callback(lambda _: self._end(call))

    def open_to_all(self, call: SharedCall) -> bool:
        """Lets identical calls of any payer join a call that its payer has admitted. Returns False if another payer's
        call is under way already; then all waiters have gone over to that one."""
        key = call.pending.key
        other = self._under_way.get(key)
        if other is None:
            self._under_way[key] = call
            self._open(call)
            return True
        for waiter in call.waiters:
            call.release(waiter)
            waiter.is_joining = True
            other.add(waiter)
        return False

    @staticmethod
    def _open(call: SharedCall) -> None:
        # Before the task's first step: a route that is in use is not forgotten.
        call.is_open = True
        call.pending.route.under_way += 1

    async def close(self) -> None:
        """Cancels the calls under way, except those that are only being stored, and waits until all have ended."""
        calls = self._calls()
        for call in calls:
            if call.outcome is None:
                call.task.cancel()
        await asyncio.gather(*(call.task for call in calls), return_exceptions=True)

    def _end(self, call: SharedCall) -> None:
        """Passes the end of a call's task to its waiters; the task may have ended before its first step."""
        for key in (call.key, call.pending.key):
            if self._under_way.get(key) is call:
                del self._under_way[key]
        call.pending.route.under_way -= call.is_open
        task = call.task
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        payer = call.pending.payer
        for waiter in call.waiters:
            if isinstance(error, NotPaid) and payer is not None:
                own = waiter.pending.payer
                if own is not None and own.name == payer.name:
                    waiter.fail(error.why)
                else:
                    self._begin_anew(waiter, call)
            elif isinstance(error, LaneStopped) and waiter.pending.route is not call.pending.route:
                # The same request by another lane, which has not stopped.
                self._begin_anew(waiter, call)
            elif error is not None:
                waiter.fail(error)
            elif (outcome := task.result()) is not None:
                waiter.resolve(outcome)

    def _begin_anew(self, waiter: Waiter, ended: SharedCall) -> None:
        ended.release(waiter)
        self.join(waiter)


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
