"""Those who wait for a call that is under way.

A waiter leaves whenever it likes; the call goes on for the others. Knows no cache, and of a call under way only that it
can be left: flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Protocol

from .call import Call, Outcome
from .call_lookup import PendingCall
from .endpoint import Hear
from .sink import Sink, SinkLine


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
    """A call that is under way, for all who wait for it. `outcome` is known before it is stored; from then on the call
    goes to its end, even if all leave. `line`: what the first waiter's sink receives when it is stored. `is_open`:
    identical calls of any payer join it, and its route is in use; `is_leased`: this engine has the lease of its key."""

    def __init__(self, key: Hashable, first: Waiter) -> None:
        self.key = key
        self.pending = first.pending
        self.waiters = [first]
        self.outcome: Outcome | None = None
        self.line: SinkLine | None = None
        self._pieces: list[str] = []
        self.is_open = self.is_leased = self.is_over = False
        self._over: asyncio.Event | None = None

    @property
    def first(self) -> Waiter | None:
        """The waiter that began the call; None if it has left."""
        return self.waiters[0] if self.waiters and not self.waiters[0].is_joining else None

    def add(self, waiter: Waiter) -> None:
        if self.outcome is not None and waiter.is_early:
            waiter.resolve(self.outcome)
            return
        waiter.call = self
        self.waiters.append(waiter)
        if waiter.hear is not None and self._pieces:
            waiter.hear("".join(self._pieces))  # the text that was streamed before it joined

    def remove(self, waiter: Waiter) -> None:
        """Removes a waiter. Ends the flight if nobody else waits for it and its outcome is not known."""
        if waiter not in self.waiters:
            return
        if self.line is not None and waiter is self.first:
            self.line.sink = None
        self.waiters.remove(waiter)
        if not self.waiters and self.outcome is None:
            self.abort()

    def hear(self, piece: str | None) -> None:
        """Passes a piece of the answer's text to all listeners; None: a new attempt begins."""
        if piece is None:
            self._pieces.clear()
        else:
            self._pieces.append(piece)
        for waiter in tuple(self.waiters):
            if waiter.hear is not None:
                waiter.hear(piece)

    def note_outcome(self, outcome: Outcome) -> bool:
        """Takes the outcome before it is stored, and passes it to those who don't wait for the store. Returns whether
        there was one."""
        self.outcome = outcome
        early = [waiter for waiter in self.waiters if waiter.is_early]
        for waiter in early:
            waiter.resolve(outcome)
        return bool(early)

    def line_of(self, outcome: Outcome) -> SinkLine | None:
        """Returns the outcome's line for the sink of the first waiter, if it has one."""
        first = self.first
        self.line = None if first is None or first.sink is None else SinkLine(first.sink, outcome)
        return self.line

    def fail_first(self, error: Exception) -> None:
        """Raises an error of the first waiter's sink to that waiter alone."""
        if (first := self.first) is not None:
            self.waiters.remove(first)
            first.fail(error)

    def begin(self) -> None:
        """Begins the call; tells its waiter nothing before it returns."""
        raise NotImplementedError

    def abort(self) -> None:
        """Ends the call without an outcome."""
        raise NotImplementedError

    def kept(self, outcome: Outcome) -> None:
        """Is called when the outcome is stored and written, or can't be."""
        raise NotImplementedError

    async def wait_until_free(self) -> None:
        """Waits until slot and connection are free, if all have left: the call was ended, or its outcome is being
        stored."""
        if not self.waiters:
            await self.until_over()
            await asyncio.sleep(0)  # an attempt that is a task ends in the next turn of the loop

    async def until_over(self) -> None:
        """Waits until the call has ended and nothing of it is left."""
        if not self.is_over:
            self._over = self._over or asyncio.Event()
            await self._over.wait()

    def set_over(self) -> None:
        self.is_over = True
        if self._over is not None:
            self._over.set()


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
