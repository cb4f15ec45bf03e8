"""The interface to the budget that pays for the attempts of one call.

The engine asks it before each attempt and reports what each one cost. Whose money it is and where it is counted, the
payer's owner knows (the gateway's callers).
"""

from __future__ import annotations

from typing import Protocol

from ..call import Outcome
from ..limits import Tokens


class NotPaid(Exception):
    """Raised when a payer's budget can't bear another attempt. `why` is raised to those who wait at this payer's
    expense; for other waiters the call is sent anew, at the expense of their own payers."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class Payer(Protocol):
    """The budget that pays for one call. `name` is the same for all calls of one budget. `is_limited`: a call waits in
    `admit` before it is sent, and identical calls of one name wait there once. `reckons_worst`: the most that an
    attempt may cost is computed for it, else 0.0 is passed."""

    @property
    def name(self) -> str: ...

    @property
    def is_limited(self) -> bool: ...

    @property
    def reckons_worst(self) -> bool: ...

    async def admit(self, tokens: Tokens, worst_cost: float) -> None:
        """Waits until this payer may have one more call sent; reserves `worst_cost` dollars for its first attempt."""

    def reserve(self, worst_cost: float) -> None:
        """Reserves `worst_cost` dollars for the next attempt, unless one is reserved. Raises NotPaid if it can't."""

    def note_written(self) -> None:
        """Notes that an attempt is about to be written: its send counts from now on. Raises Withdrawn if the budget is
        overdrawn."""

    def pay(self, cost: float, *, is_sure: bool) -> None:
        """Replaces the attempt's reservation by its cost in dollars; called once for each attempt. `is_sure` False: the
        cost is not confirmed by an answer (assumed, or the attempt failed)."""

    def note_answer(self, outcome: Outcome) -> None:
        """Takes the outcome of the call that was sent, before it is stored."""

    def end(self, tokens: Tokens) -> None:
        """Ends the call, whatever its outcome; `tokens` is what it used. A reservation that is left was never sent."""
