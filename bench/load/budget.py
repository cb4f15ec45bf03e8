"""What all models of a load test share: the calls and the money that are left, and why it ends.

Money is reserved before a call is begun, for the worst that it can cost. Sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from ...engine.call import Call, Outcome
from ...engine.estimate import TokenEstimate
from ...engine.money import Price, Purse, why_unbounded, worst_cost
from .plan import Limits

Reason = Literal["duration", "calls", "cost", "arrivals", "prompts", "stopped", "interrupted", "fault", "goal", "error"]


class Ending(Struct, frozen=True):
    """Why a test ended; `detail` where that was none of its own limits."""

    reason: Reason
    detail: str = ""


class Budget:
    """`over` is set when nothing more may be begun. `purse`: one that several tests share; None: one of its own, with
    the limit on cost in it."""

    def __init__(
        self, limits: Limits, models: Iterable[str], prices: Mapping[str, Price | None], purse: Purse | None = None
    ) -> None:
        self.purse = Purse(limits.max_cost) if purse is None else purse
        self.begun = 0
        self.over = asyncio.Event()
        self.ending: Ending | None = None
        self.error: BaseException | None = None
        self.on_end: list[Callable[[], None]] = []
        self.on_drop: list[Callable[[], None]] = []
        self._calls = limits.calls
        self._prices = prices
        self._estimates: dict[str, TokenEstimate] = {}
        for model in models:
            self._estimates[model] = TokenEstimate()
            if limits.max_cost is not None and prices.get(model) is None:
                limit = f"max_cost (${limits.max_cost:g})"
                raise ValueError(f"{model} has no price, so {limit} can't be kept: give its price, or no max_cost")

    def __repr__(self) -> str:
        return f"<Budget [{self.begun} calls begun, {self.ending.reason if self.ending else 'open'}] {self.purse}>"

    def end(self, reason: Reason, detail: str = "") -> None:
        """The first reason stays."""
        if self.ending is None:
            self.ending = Ending(reason, detail)
        self.over.set()
        for listener in self.on_end:
            listener()

    def drop(self) -> None:
        """Wait no more for what is in flight: it is counted as unfinished."""
        for listener in self.on_drop:
            listener()

    def fail(self, error: BaseException) -> None:
        """What no call should ever raise: the test ends, and it is raised there."""
        if self.error is None:
            self.error = error
        self.end("error", str(error))

    def take(self, call: Call) -> float | None:
        """What is reserved for one call; None: it may not be begun, and the test is over."""
        if self._calls is not None and self.begun >= self._calls:
            self.end("calls")
            return None
        price = self._prices.get(call.model)
        worst = 0.0 if price is None else worst_cost(call, price, self._estimates[call.model])
        if worst is None:
            if self.purse.is_limited:
                self.end("cost", why_unbounded(call.model))
                return None
            worst = 0.0
        if not self.purse.fits(worst):
            gone, limit = self.purse.spent + self.purse.reserved, self.purse.limit or 0.0
            self.end("cost", f"${gone:.4f} of ${limit:.4f} are spent or reserved; the next call may cost ${worst:.4f}")
            return None
        self.purse.reserve(worst)
        self.begun += 1
        return worst

    def settle(self, call: Call, reserved: float, outcome: Outcome | None, *, was_sent: bool) -> float:
        """What the call cost, as far as anyone knows. `outcome` None: nobody knows what became of it, so all that it
        may have cost is gone if it was sent."""
        spent, unsure = self._cost(call, reserved, outcome, was_sent=was_sent)
        self.purse.settle(reserved, spent, unsure=unsure)
        return spent

    def _cost(self, call: Call, reserved: float, outcome: Outcome | None, *, was_sent: bool) -> tuple[float, float]:
        """And the part of it that may not have been billed."""
        if outcome is None:
            return (reserved, reserved) if was_sent else (0.0, 0.0)
        # Attempts that may have been billed are repeated, and each of them may have been the dearest.
        unsure = reserved * outcome.maybe_billed
        if outcome.reply is None:
            return unsure, unsure
        if outcome.reply.usage is not None and not outcome.cached:
            self._estimates[call.model].observe(call, outcome.reply.usage)
        if outcome.cost is None:
            return unsure + reserved, unsure + reserved
        return unsure + outcome.cost, unsure
