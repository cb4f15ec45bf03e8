"""Whose budget pays for the attempts of one call, as far as the engine has to know: the face of a payer.

The engine asks it before each attempt and tells it what each one cost. Whose money it is and where that is counted, the
payer's owner knows (the gateway's callers).
"""

from __future__ import annotations

from typing import Protocol

from ..call import Outcome
from ..limits import Tokens


class NotPaid(Exception):
    """A payer's budget can't bear another attempt. `why` is raised to those who wait at this payer's expense; anybody
    else who waits for the same call has it sent anew, at the expense of their own payer."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class Payer(Protocol):
    """One call's payer. `name` is the same for all calls of one budget. `is_limited`: a call waits in `admit` first,
    and identical calls of one name wait there once. `reckons_worst`: what an attempt may cost at most is reckoned."""

    @property
    def name(self) -> str: ...

    @property
    def is_limited(self) -> bool: ...

    @property
    def reckons_worst(self) -> bool: ...

    async def admit(self, tokens: Tokens, worst_cost: float) -> None:
        """Waits until this payer may have one more call sent, and reserves its first attempt."""

    def reserve(self, worst_cost: float) -> None:
        """Reserves the next attempt, unless one is reserved already. Raises NotPaid."""

    def pay(self, cost: float, *, is_sure: bool) -> None:
        """Replaces the attempt's reservation by its cost; called once for each attempt. `is_sure` False: the cost is
        not confirmed by an answer (assumed, or the attempt failed)."""

    def note_answer(self, outcome: Outcome) -> None:
        """Takes the answer that was sent for, before it is stored."""

    def end(self, tokens: Tokens) -> None:
        """The call has ended, however it did, with so many tokens used. What is still reserved was never sent."""
