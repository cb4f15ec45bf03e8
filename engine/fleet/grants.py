"""The money of a cap over a fleet: the driver grants it in blocks, workers report what they spent and return the rest.

What a worker was granted and has not reported counts as spent once it is dead, so the cap holds whatever dies. Pure
arithmetic; it travels with the batches.
"""

from __future__ import annotations

from msgspec import Struct, field

from ..attempts.budget_file import Amounts, Leftover
from ..attempts.money import CostBudget


class Grant(Struct):
    """What a driver tells a worker: dollars that it may spend beside those granted before; `is_last`: no more can come;
    `overrun`: the largest ratio of a call's cost to its highest, of any worker."""

    dollars: float = 0.0
    is_last: bool = False
    overrun: float = 1.0


class Spending(Struct):
    """What a worker reports, in dollars: all that it spent so far, with the part that may not have been billed and the
    part at its worst, as CostBudget counts them; what it returns now; the least that its next call needs (0.0: it needs
    none), and what it would like."""

    spent: float = 0.0
    unsure: float = 0.0
    at_worst: float = 0.0
    returned: float = 0.0
    needed: float = 0.0
    wanted: float = 0.0
    overrun: float = 1.0


class Grants:
    """A worker's purse: takes the place of a file for `budget`, if that has a limit. `is_waiting`: more has been asked
    for and may come; `has_news`: that is not reported yet."""

    def __init__(self, budget: CostBudget) -> None:
        self._budget = budget
        self.is_shared, self.ends = True, False
        self.leftover: Leftover | None = None
        self.overrun = 1.0
        self.has_news = False
        self._free = 0.0
        self._drawn = 0.0
        self._needed = self._wanted = 0.0
        self._is_last = False

    def __repr__(self) -> str:
        return f"<Grants [${self._drawn:.4f} drawn, ${self._free:.4f} free]>"

    @property
    def all(self) -> Amounts:
        return Amounts(self._drawn, 0.0)

    @property
    def is_waiting(self) -> bool:
        return self._needed > 0.0 and not self._is_last

    def draw(self, least: float, block: float) -> float:
        if self._free < least:
            self.has_news, self._needed, self._wanted = True, least, max(least, block)
            return 0.0
        self._needed = self._wanted = 0.0
        amount = min(self._free, max(least, block))
        self._free -= amount
        self._drawn += amount
        return amount

    def settle(self, unused: float, spent: float, overrun: float = 1.0) -> float:
        self._free += unused
        self._drawn -= unused
        self.overrun = max(self.overrun, overrun)
        return unused

    def close(self, *, is_finished: bool) -> None:
        pass

    def receive(self, grant: Grant) -> None:
        """Takes a grant, and lets the calls go on that wait for it."""
        self.overrun = max(self.overrun, grant.overrun)
        self._is_last = grant.is_last
        self._free += grant.dollars
        if self._needed and (grant.dollars or grant.is_last):
            self._budget.wake()

    def report(self) -> Spending:
        """Returns what was spent so far, and gives back all that nothing is reserved for: two workers that kept some,
        each too little for a call, would wait for each other."""
        budget = self._budget
        if self._needed:
            slack = budget.give_back()
            self._needed, self._wanted = self._needed + slack, self._wanted + slack
        self.has_news, returned, self._free = False, self._free, 0.0
        return Spending(
            budget.own, budget.unsure, budget.at_worst, returned, self._needed, self._wanted, budget.overrun
        )


class Purse(Struct):
    """The driver's account of one worker: the dollars that it was granted and has neither spent nor returned (`open`),
    what the budget reserves for them, and the latest report."""

    open: float = 0.0
    reserved: float = 0.0
    latest: Spending = field(default_factory=Spending)

    def grant(self, budget: CostBudget, *, is_settled: bool) -> Grant:
        """Returns what the worker can be told now: what it asks for, as far as the cap allows, which is reserved.
        `is_settled`: no worker has any that it may return."""
        report, dollars = self.latest, 0.0
        if report.needed > 0.0:
            # A worker's sums hold its overrun already.
            fitting = (each for each in (report.wanted, report.needed) if budget.fits(each / budget.overrun))
            dollars = next(fitting, 0.0)
        is_last = report.needed > 0.0 and not dollars and is_settled
        if dollars:
            budget.reserve(dollars / budget.overrun)
            self.open += dollars
            self.reserved += dollars / budget.overrun
            report.needed = report.wanted = 0.0
        return Grant(dollars, is_last, budget.overrun)

    def note(self, spending: Spending, budget: CostBudget) -> None:
        """Takes a report."""
        spent = spending.spent - self.latest.spent
        freed = self._close(spent + spending.returned)
        unsure, at_worst = spending.unsure - self.latest.unsure, spending.at_worst - self.latest.at_worst
        budget.settle(freed, spent, unsure=unsure, at_worst=at_worst)
        budget.overrun = max(budget.overrun, spending.overrun)
        self.latest = spending

    def bury(self, budget: CostBudget) -> None:
        """Counts all that a dead worker may have spent."""
        rest = max(0.0, self.open)
        budget.settle(self._close(rest), rest, unsure=rest)
        self.latest = Spending()

    def _close(self, dollars: float) -> float:
        """Takes dollars off what is open, and returns what the budget had reserved for them."""
        share = 1.0 if dollars >= self.open - 1e-12 else dollars / self.open
        freed = self.reserved * share
        self.open, self.reserved = max(0.0, self.open - dollars), self.reserved - freed
        return freed
