"""The budget of a folder that runs or batches are resumed in: where it lies, and what counts before it exists.

Owns what a manifest keeps of money that no record tells of. How a budget is kept on disk: the engine room's
budget_file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..engine.budget_file import BUDGET, Amounts, BudgetPlace, amounts_in
from ..engine.fault import LocalFault

COST_UNSURE, CALLS_UNSURE, HAS_BUDGET = "cost_unsure", "calls_unsure", "has_budget"


class Unsure(Struct, frozen=True):
    """What may have been billed beyond what the records cost: dollars, and calls that were in flight when a process
    without a limit was killed."""

    dollars: float = 0.0
    calls: int = 0

    def at_worst(self, worst_call: Callable[[], float]) -> float:
        """`worst_call` is what the dearest call may cost, asked for only where it matters."""
        return self.dollars + (self.calls * worst_call() if self.calls else 0.0)

    def notes(self, *, has_budget: bool) -> dict[str, Any]:
        """What the manifest has to keep of it. `has_budget`: the process that begins has a limit."""
        return {COST_UNSURE: self.dollars, CALLS_UNSURE: self.calls, HAS_BUDGET: has_budget}


def unsure_of(folder: Path, manifest: Mapping[str, Any], cost: float) -> Unsure:
    """`manifest` as the last process left it; `cost` is that of the records. Raises LocalFault where the budget is
    damaged."""
    found = amounts_in(folder / BUDGET)
    if found is not None:
        return Unsure(max(0.0, found.granted - cost))
    # Before there were budgets the manifest kept only how many calls were in flight.
    calls = int(manifest.get(CALLS_UNSURE, manifest.get("in_flight_at_kills", 0)))
    was_killed = manifest.get("started") is not None and manifest.get("ended") is None
    if was_killed and not manifest.get(HAS_BUDGET, False):
        calls += int(manifest.get("in_flight_max", 0))
    return Unsure(float(manifest.get(COST_UNSURE, 0.0)), calls)


def place_of(folder: Path, before: Amounts, beside: Mapping[Path, float] | None = None) -> BudgetPlace:
    """`beside`: other folders under the same limit, with what counts for each while it has no budget."""
    if not beside:
        return BudgetPlace(folder / BUDGET, before)
    files = {other / BUDGET: dollars for other, dollars in beside.items()}
    return BudgetPlace(folder / BUDGET, before, files, lock=folder.parent)


def drop_budget(folder: Path) -> None:
    """A process without a limit begins, and counts nothing here: what the budget said stands in the manifest now."""
    with suppress(OSError):
        (folder / BUDGET).unlink()


def money_of(place: BudgetPlace | None, cost: float) -> Amounts | None:
    """What a folder's calls cost: surely, and at most. `cost` is that of its records; None without a limit."""
    if place is None:
        return None
    try:
        found = amounts_in(place.path) or place.before
    except LocalFault:
        return None  # told where it is opened
    return Amounts(max(found.granted, cost), max(min(found.spent, found.granted), cost))


def money_lines(money: Amounts | None, max_cost: float | None, *, shared_by: int = 0) -> Iterable[str]:
    """`shared_by`: how many other folders share the limit."""
    if money is None or max_cost is None:
        return
    limit = f"--max-cost ${max_cost:,.4f}" + (f" of {shared_by + 1} folders together" if shared_by else "")
    if money.granted - money.spent < 5e-5:
        yield f"${money.spent:,.4f} spent of {limit}"
    else:
        yield (
            f"${money.spent:,.4f} spent; up to ${money.granted:,.4f} counting calls in flight at a kill and attempts "
            f"without a whole answer; the limit: {limit}"
        )


def money_as_json(money: Amounts | None, max_cost: float | None) -> dict[str, Any] | None:
    if money is None:
        return None
    return {"spent": round(money.spent, 9), "at_most": round(money.granted, 9), "max_cost": max_cost}
