"""One caller of the gateway: which models it may ask, its own quota and its own budget.

The engine asks it before each attempt that it pays for, so a call that waits here holds no provider's slot; a stored
answer needs neither. Knows no token, no HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from ...configuration.gateway_settings import CallerSettings
from ...engine.attempts.budget_file import BudgetFile, BudgetPlace
from ...engine.attempts.money import CostBudget
from ...engine.call import Outcome
from ...engine.endpoint import Withdrawn
from ...engine.fault import LocalFault
from ...engine.lanes.key_gate import Permit
from ...engine.lanes.ledger import Ledger
from ...engine.limits import Quota, Tokens
from ...providers.llm.serve_dialect import RequestRefusal

FOLDER = "gateway"


class Caller:
    """One caller of the gateway, who pays for its calls within its quota and budget, if any. `folder` holds their
    files, beside the cache; `reckons_worst`: a call's highest cost must be known, as some caller has a budget.
    `in_flight`, `spent` (dollars) and `tokens` (by direction and model) count attempts at this caller's expense."""

    def __init__(self, settings: CallerSettings, folder: Path, *, reckons_worst: bool = False) -> None:
        self.settings = settings
        self.reckons_worst = reckons_worst
        self.in_flight = 0
        self.spent = 0.0
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.budget: CostBudget | None = None
        self._quota = Quota(settings.rpm, settings.tpm)
        self._ledger: Ledger | None = None
        if settings.max_cost is not None:
            self.budget = caller_budget(folder, settings.name, settings.max_cost)
        if settings.rpm is not None or settings.tpm is not None:
            self._ledger = Ledger(self._quota, folder / f"{settings.name}.ledger")
        self._wakers: dict[Callable[[], None], str] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        name, budget = self.settings.name or "anyone", self.budget or "no budget"
        return f"<Caller {name} [{self.in_flight} in flight, {self.waiting_for or 'open'}] {budget}>"

    @property
    def is_limited(self) -> bool:
        return self._ledger is not None or self.budget is not None or self.settings.concurrency is not None

    @property
    def waiting_for(self) -> str:
        """What its first call waits for; empty if none waits at its expense."""
        return next(iter(self._wakers.values()), "")

    def may_ask(self, model: str) -> bool:
        return not self.settings.models or any(fnmatchcase(model, pattern) for pattern in self.settings.models)

    # What the engine asks

    def hold(self, now: float, tokens: Tokens, cost: float, wake: Callable[[], None]) -> str | Exception | None:
        why = self._money_hold(cost)
        if why is None and self.settings.concurrency is not None and self.in_flight >= self.settings.concurrency:
            why = "slots"
        if why is None and self._ledger is not None:
            seconds, reason = self._ledger.take(now, self._quota.cut_to_fit(tokens), is_tried=True)
            if seconds > 0:
                why = reason
                self._wake_in(seconds)
        if isinstance(why, str):
            self._wakers[wake] = why
        return why

    def _money_hold(self, cost: float) -> str | Exception | None:
        """Returns what an attempt waits for while others in flight could leave enough money, else the error."""
        if self.budget is None:
            return None
        try:
            if self.budget.fits(cost):
                return None
        except LocalFault as fault:
            return fault
        return self.over_budget(cost) if self.budget.is_idle else "budget"

    def take(self, permit: Permit) -> bool:
        if self._ledger is not None and self._ledger.take(permit.sent_at, self._quota.cut_to_fit(permit.tokens))[0] > 0:
            return False
        if self.budget is not None:
            self.budget.reserve(permit.cost)
        self.in_flight += 1
        permit.payer = self
        return True

    def clear(self, permit: Permit, now: float) -> None:
        if self.budget is not None and self.budget.is_overdrawn:
            raise Withdrawn
        if self._ledger is not None:
            self._ledger.move(permit.sent_at, now, self._quota.cut_to_fit(permit.tokens))

    def settle(self, permit: Permit, used: Tokens | None, cost: float, *, is_sure: bool) -> None:
        self.spent += cost
        if self.budget is not None:
            self.budget.settle(permit.cost, cost, unsure=0.0 if is_sure else cost)
        if self._ledger is not None:
            reserved, requests = self._quota.cut_to_fit(permit.tokens), int(used is not None)
            self._ledger.settle(permit.sent_at, reserved, used or Tokens(), requests=requests)
        self._wake()

    def release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def note_answer(self, outcome: Outcome) -> None:
        if outcome.reply is not None and (usage := outcome.reply.usage) is not None:
            self.tokens["input", outcome.call.model] += usage.input or 0
            self.tokens["output", outcome.call.model] += usage.output or 0

    # Who waits

    def _wake_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None and self._timer.when() > loop.time() + seconds:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            # uvloop's handle of a shorter time has no when().
            self._timer = loop.call_later(max(seconds, 0.001), self._wake)

    def _wake(self) -> None:
        """Lets each lane whose calls wait here ask again, the one that asked first last: they take turns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._wakers:
            first, *others = self._wakers
            self._wakers = {}
            for wake in (*others, first):
                wake()

    def over_budget(self, most: float) -> RequestRefusal:
        assert self.budget is not None
        money, most = self.budget, most * self.budget.overrun
        message = (
            f"the next call may cost ${most:.4f}; ${money.charged:.4f} of max_cost ${money.limit or 0.0:.4f} of caller "
            f"{self.settings.name} is spent, ${money.reserved:.4f} reserved: raise its max_cost or cut max_tokens"
        )
        return RequestRefusal(message, None, "over_budget", 429)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._ledger is not None:
            self._ledger.close()
        if self.budget is not None:
            self.budget.detach()


def caller_budget(folder: Path, name: str, limit: float) -> CostBudget:
    """Returns the budget of one caller, with `limit` dollars: a file that several gateways share and that outlives a
    kill. `folder` has all callers' files. Raises LocalFault."""
    budget = CostBudget(limit)
    budget.attach(BudgetFile(BudgetPlace(folder / f"{name}.budget", lock=folder), limit))
    return budget
