"""A driver's calls under way and its workers: which worker has which call, and what it may spend."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

from msgspec import Struct, field

from ..call import Outcome
from ..call_lookup import PendingCall
from ..fault import Stop
from ..shared_calls import Waiter
from .batches import Carried, Link
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

    def outcome_of(self, carried: Carried) -> Outcome:
        return Outcome(
            self.pending.call,
            carried.reply,
            carried.failure,
            carried.key,
            carried.cached,
            carried.attempts + self.deaths,
            carried.maybe_billed + self.deaths,
            carried.cost,
            carried.latency_ms,
        )

    def done(self, outcome: Outcome, error: BaseException | None) -> None:
        """Ends the call, once its line is written."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            waiter.end(outcome if error is None else error)


class FleetWorker(Struct, eq=False):
    """One worker. `given` are the calls that it has, by number; `own` those that only it may carry; `left` the numbers
    of calls that nobody waits for any more; `is_alive` False: another process is being started in its place."""

    link: Link
    is_alive: bool = True
    given: dict[int, FleetCall] = {}
    own: deque[FleetCall] = field(default_factory=deque)
    left: list[int] = []
    stops: list[Stop] = []
    is_waiting: bool = False
    is_halted: bool = False
    maybe_billed: int = 0
    purse: Purse = field(default_factory=Purse)
    in_flight: dict[str, int] = {}
