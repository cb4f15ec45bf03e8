"""One caller of the gateway: which models it may ask, its own lane and its own budget.

A call that waits here holds no provider's slot; a stored answer needs neither lane nor budget. Knows no token, no HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from ...configuration.gateway_settings import CallerSettings
from ...engine.attempts.budget_file import BudgetFile, BudgetPlace
from ...engine.attempts.money import CostBudget
from ...engine.attempts.payer import NotPaid
from ...engine.attempts.retry import RetryPolicy
from ...engine.call import Outcome
from ...engine.endpoint import Withdrawn
from ...engine.events import Events
from ...engine.fault import LocalFault, Stop
from ...engine.lane import CONCURRENCY_DEFAULT, Lane
from ...engine.lanes.key_gate import KeyGate, Permit
from ...engine.lanes.lane_queue import LaneQueue, LaneStopped
from ...engine.lanes.ledger import Ledger
from ...engine.limits import Tokens, declared_quota
from ...providers.llm.serve_dialect import RequestRefusal

FOLDER = "gateway"
_LANE = "caller"
# A place in a caller's minute is renewed while its call waits: well before the minute is over.
_RENEWED_S = 20.0


class Caller:
    """One caller of the gateway, with its lane and budget, if any. `folder` holds their files, beside the cache."""

    def __init__(self, settings: CallerSettings, folder: Path) -> None:
        self.settings = settings
        self.purse: CostBudget | None = None
        self._lane: LaneQueue | None = None
        self._settled = asyncio.Event()
        if settings.max_cost is not None:
            self.purse = caller_purse(folder, settings.name, settings.max_cost)
        if settings.rpm is not None or settings.tpm is not None or settings.concurrency is not None:
            self._lane = _lane_of(settings, folder)

    def __repr__(self) -> str:
        return f"<Caller {self.settings.name or 'anyone'} {self._lane or 'no lane'} {self.purse or 'no budget'}>"

    @property
    def is_limited(self) -> bool:
        return self._lane is not None or self.purse is not None

    @property
    def in_flight(self) -> int:
        return 0 if self._lane is None else self._lane.in_flight

    @property
    def waiting_for(self) -> str:
        return "" if self._lane is None else self._lane.waiting_for

    def may_ask(self, model: str) -> bool:
        return not self.settings.models or any(fnmatchcase(model, pattern) for pattern in self.settings.models)

    async def admit(self, tokens: Tokens) -> Permit | None:
        """Waits until this caller may send one more call; returns the permit for `give_back`, None without a lane."""
        return None if self._lane is None else await _Place(self._lane, tokens).permit()

    def give_back(self, permit: Permit | None, used: Tokens | None) -> None:
        """Gives a permit back. `used`: the tokens of the call; None: it was not sent, and counts nothing."""
        if permit is None or self._lane is None:
            return
        now = asyncio.get_running_loop().time()
        if used is None:
            permit.lane.withdraw(permit, now)
        else:
            permit.lane.succeeded(permit, used, 0.0)
        self._lane.release(permit, now)

    async def reserve(self, most: float) -> None:
        """Reserves `most` dollars; waits while calls under way could leave enough, else raises RequestRefusal."""
        while not self.try_reserve(most):
            assert self.purse is not None
            if self.purse.is_idle:
                raise self.over_budget(most)
            self._settled.clear()
            await self._settled.wait()

    def try_reserve(self, most: float) -> bool:
        """Reserves `most` dollars if the budget can bear them now; returns whether it did. Raises LocalFault if the
        budget's file can't be written."""
        assert self.purse is not None
        if not self.purse.fits(most):
            return False
        self.purse.reserve(most)
        return True

    def settle(self, reserved: float, cost: float, *, is_sure: bool) -> None:
        assert self.purse is not None
        self.purse.settle(reserved, cost, unsure=0.0 if is_sure else cost)
        self._settled.set()

    def over_budget(self, most: float) -> RequestRefusal:
        assert self.purse is not None
        purse, most = self.purse, most * self.purse.overrun
        said = (
            f"the next call may cost ${most:.4f}; ${purse.charged:.4f} of max_cost ${purse.limit or 0.0:.4f} of caller "
            f"{self.settings.name} is spent, ${purse.reserved:.4f} reserved: raise its max_cost or cut max_tokens"
        )
        return RequestRefusal(said, None, "over_budget", 429)

    def close(self) -> None:
        if self._lane is not None:
            self._lane.close()
        if self.purse is not None:
            self.purse.detach()


class _Place:
    """A call's place in its caller's lane."""

    refused_by = 0

    def __init__(self, lane: LaneQueue, tokens: Tokens) -> None:
        self.tokens, self.cost = tokens, 0.0
        self.is_queued = False
        self._lane = lane
        self._permit: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()

    async def permit(self) -> Permit:
        if (permit := self._lane.admit(self)) is not None:
            return permit
        try:
            return await self._permit
        except asyncio.CancelledError:
            self._lane.leave(self)
            if not self._permit.cancelled() and self._permit.exception() is None:
                self._lane.release(self._permit.result(), asyncio.get_running_loop().time())
            raise

    def admitted(self, permit: Permit) -> None:
        if self._permit.done():
            self._lane.release(permit, asyncio.get_running_loop().time())
        else:
            self._permit.set_result(permit)

    def stopped(self, stop: Stop) -> None:
        if not self._permit.done():
            self._permit.set_exception(LaneStopped(stop))

    def rested(self) -> None:
        """Nothing rests here."""


class CallPayment:
    """The engine's `Payer` for one caller's call: takes a place in the caller's lane and reserves attempts in its
    budget. `reckons_worst`: the call's highest cost must be known, as some caller has a budget. `spent` is called
    with the dollars of attempts, `used` with the answers, both with the caller's name."""

    def __init__(
        self,
        caller: Caller,
        *,
        reckons_worst: bool,
        spent: Callable[[str, float], None],
        used: Callable[[str, Outcome], None],
    ) -> None:
        self.name = caller.settings.name
        self.is_limited = caller.is_limited
        self.reckons_worst = reckons_worst
        self._caller = caller
        self._spent = spent
        self._used = used
        self._permit: Permit | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._reserved: float | None = None
        self._was_sent = False

    async def admit(self, tokens: Tokens, worst_cost: float) -> None:
        """Waits for the caller's lane, then reserves the first attempt. Raises RequestRefusal if the budget can't bear
        it, LocalFault if the budget's file can't be written."""
        self._permit = await self._caller.admit(tokens)
        if self._permit is not None:
            self._renew(self._permit)
        if self._caller.purse is not None:
            await self._caller.reserve(worst_cost)
            self._reserved = worst_cost

    def reserve(self, worst_cost: float) -> None:
        if self._caller.purse is None or self._reserved is not None:
            return
        try:
            is_reserved = self._caller.try_reserve(worst_cost)
        except LocalFault as fault:
            raise NotPaid(fault) from fault
        if not is_reserved:
            raise NotPaid(self._caller.over_budget(worst_cost))
        self._reserved = worst_cost

    def note_written(self) -> None:
        if self._caller.purse is not None and self._caller.purse.is_overdrawn:
            raise Withdrawn
        if self._permit is not None and not self._was_sent:
            self._stop_renewal()
            self._permit.lane.clear(self._permit)
        self._was_sent = True

    def _renew(self, permit: Permit) -> None:
        """Counts the call in its caller's minute from now on, and again until it is written, since it may wait long
        for the model's lane."""
        permit.lane.clear(permit)
        self._renewal = asyncio.get_running_loop().call_later(_RENEWED_S, self._renew, permit)

    def _stop_renewal(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()

    def pay(self, cost: float, *, is_sure: bool) -> None:
        if cost:
            self._spent(self.name, cost)
        if self._reserved is not None:
            reserved, self._reserved = self._reserved, None
            self._caller.settle(reserved, cost, is_sure=is_sure)

    def note_answer(self, outcome: Outcome) -> None:
        self._used(self.name, outcome)

    def end(self, tokens: Tokens) -> None:
        if self._reserved is not None:
            reserved, self._reserved = self._reserved, None
            self._caller.settle(reserved, 0.0, is_sure=True)
        self._stop_renewal()
        permit, self._permit = self._permit, None
        self._caller.give_back(permit, tokens if self._was_sent else None)


def caller_purse(folder: Path, name: str, limit: float) -> CostBudget:
    """Returns the budget of one caller, with `limit` dollars: a file that several gateways share and that outlives a
    kill. `folder` has all callers' files. Raises LocalFault."""
    purse = CostBudget(limit)
    purse.attach(BudgetFile(BudgetPlace(folder / f"{name}.budget", lock=folder), limit))
    return purse


def _lane_of(settings: CallerSettings, folder: Path) -> LaneQueue:
    lane = Lane(
        f"{_LANE}/{settings.name}",
        settings.rpm,
        settings.tpm,
        CONCURRENCY_DEFAULT if settings.concurrency is None else settings.concurrency,
    )
    ledger = Ledger(declared_quota(lane), folder / f"{settings.name}.ledger")
    purse, events = CostBudget(), Events()
    return LaneQueue(
        [KeyGate(lane, ledger=ledger, purse=purse, policy=RetryPolicy(), events=events)], purse=purse, events=events
    )
