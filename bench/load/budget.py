"""The calls and the money that all models of a load test may still use, and why the test ends.

Money is reserved for the worst case before a call begins. Sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from ...engine.attempts.money import CostBudget, why_unbounded, worst_cost
from ...engine.call import Call, Outcome
from ...engine.estimate import TokenEstimate, call_weight
from ...engine.prices import Price
from .plan import Limits

Reason = Literal["duration", "calls", "cost", "arrivals", "prompts", "stopped", "interrupted", "fault", "goal", "error"]


class LoadEnd(Struct, frozen=True):
    """Why a test ended; `detail` explains reasons other than the test's own limits (empty: nothing to explain)."""

    reason: Reason
    detail: str = ""


class Budget:
    """The limits on calls and cost; `over` is set when no more call may begin. `money` is shared by several tests
    (None: a new one with the cost limit)."""

    def __init__(
        self, limits: Limits, models: Iterable[str], prices: Mapping[str, Price | None], money: CostBudget | None = None
    ) -> None:
        self.money = CostBudget(limits.max_cost) if money is None else money
        self.begun = 0
        self.over = asyncio.Event()
        self.ending: LoadEnd | None = None
        self.error: BaseException | None = None
        self.on_end: list[Callable[[], None]] = []
        self.on_drop: list[Callable[[], None]] = []
        self.is_dropped = False
        self._calls = limits.calls
        self._prices = prices
        self._estimates = {model: TokenEstimate() for model in models}

    def __repr__(self) -> str:
        return f"<Budget [{self.begun} calls begun, {self.ending.reason if self.ending else 'open'}] {self.money}>"

    def end(self, reason: Reason, detail: str = "") -> None:
        """Ends the test; the first reason given is kept."""
        if self.ending is None:
            self.ending = LoadEnd(reason, detail)
        self.over.set()
        for listener in self.on_end:
            listener()

    def drop(self) -> None:
        """Stops waiting for calls in flight; they count as unfinished."""
        self.is_dropped = True
        for listener in self.on_drop:
            listener()

    def fail(self, error: BaseException) -> None:
        """Ends the test with an error that no call should raise; the test then raises it."""
        if self.error is None:
            self.error = error
        self.end("error", str(error))

    def take(self, call: Call) -> float | None:
        """Reserves and returns the most dollars that a call can cost; None: it may not begin, and the test ends."""
        if self._calls is not None and self.begun >= self._calls:
            self.end("calls")
            return None
        price = self._prices.get(call.model)
        worst = 0.0 if price is None else worst_cost(call, price, self._estimates[call.model])
        if worst is None:
            if self.money.limit is not None:
                self.end("cost", why_unbounded(call, price))
                return None
            worst = 0.0
        if not self.money.fits(worst):
            gone, limit = self.money.spent + self.money.reserved, self.money.limit or 0.0
            self.end("cost", f"${gone:.4f} of ${limit:.4f} are spent or reserved; the next call may cost ${worst:.4f}")
            return None
        self.money.reserve(worst)
        self.begun += 1
        return worst

    def settle(self, call: Call, reserved: float, outcome: Outcome | None, *, was_sent: bool) -> float:
        """Releases a call's reservation and returns its cost in dollars. `outcome` None: the result is not known, so a
        call that was sent counts at its whole reservation."""
        spent, unsure = self._cost(call, reserved, outcome, was_sent=was_sent)
        self.money.settle(reserved, spent - unsure)
        self.money.settle(0.0, unsure, unsure=unsure)  # earlier attempts too, for which nothing is reserved any more
        return spent

    def _cost(self, call: Call, reserved: float, outcome: Outcome | None, *, was_sent: bool) -> tuple[float, float]:
        """Returns the dollars of a call, and the part of them that may not have been billed. `outcome` None: the call
        was cut off, which costs what was reserved if it was sent, else nothing."""
        if outcome is None:
            return (reserved, reserved) if was_sent else (0.0, 0.0)
        # Every earlier attempt that may have been billed counts at the reservation.
        unsure = reserved * outcome.maybe_billed
        if outcome.reply is None:
            return unsure, unsure
        if outcome.reply.usage is not None and not outcome.cached:
            self._estimates[call.model].observe(call_weight(call), outcome.reply.usage)
        if outcome.cost is None:
            return unsure + reserved, unsure + reserved
        return unsure + outcome.cost, unsure
