"""A driver's calls under way and its workers: which worker has which call, and what it may spend."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

from msgspec import Struct, field, structs

from ..call import Outcome
from ..call_lookup import PendingCall
from ..shared_calls import Waiter
from .batches import CallLink, Given
from .grants import Purse


class FleetCall(Struct, eq=False):
    """A call under way. `waiter` None: nobody waits any more; `deaths`: workers that died while they had it, each of
    which may have sent it."""

    number: int
    pending: PendingCall
    waiter: Waiter | None
    on_leave: Callable[[FleetCall], None]
    worker: FleetWorker | None = None
    deaths: int = 0
    context: Context = field(default_factory=copy_context)

    def remove(self, waiter: Waiter) -> None:
        if self.waiter is waiter:
            self.waiter = None
            self.on_leave(self)

    async def wait_until_free(self) -> None:
        """Returns at once: the worker frees what the call holds."""

    def outcome_of(self, carried: Outcome) -> Outcome:
        """Returns an outcome that came without its call as that of this call."""
        attempts, maybe_billed = carried.attempts + self.deaths, carried.maybe_billed + self.deaths
        return structs.replace(carried, call=self.pending.call, attempts=attempts, maybe_billed=maybe_billed)

    def done(self, outcome: Outcome, error: BaseException | None) -> None:
        """Ends the call, once its line is written."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            waiter.end(outcome if error is None else error)


class FleetWorker(Struct, eq=False):
    """One worker. `given` are the calls that it has, by number; `own` those that only it may carry; `next` is what it
    is handed next; `is_alive` False: another process is being started in its place; `is_ready` False: so it is, or
    what it has handed back leads to others; `serving`: takes what it hands back."""

    link: CallLink
    is_alive: bool = True
    given: dict[int, FleetCall] = {}
    own: deque[FleetCall] = field(default_factory=deque)
    next: Given = field(default_factory=Given)
    is_ready: bool = True
    serving: asyncio.Task[None] | None = None
    maybe_billed: int = 0
    purse: Purse = field(default_factory=Purse)
    in_flight: dict[str, int] = {}
