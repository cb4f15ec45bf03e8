"""The budget of a folder in which runs or batches are resumed: what its journals cost, and the cost from before it
existed.

Owns the manifest's fields for money that no record shows. How a budget is kept on disk: the engine's budget_file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..engine.attempts.budget_file import BUDGET, Amounts, BudgetPlace, amounts_in
from ..engine.fault import DamagedJournal, LocalFault
from ..engine.runs.journal import read_lines
from ..engine.runs.run_folder import FAILURES, MANIFEST, RECORDS, RUN_FILES, RunFiles, read_manifest

COST_UNSURE, CALLS_UNSURE, HAS_BUDGET = "cost_unsure", "calls_unsure", "has_budget"


class UnsureSpending(Struct, frozen=True):
    """Spending that the records don't show: dollars, and calls that were in flight when a process without a limit
    was killed."""

    dollars: float = 0.0
    calls: int = 0

    def at_worst(self, worst_call: Callable[[], float]) -> float:
        """Returns the most dollars that this can be. `worst_call` returns what the dearest call may cost; it is
        called only if needed."""
        return self.dollars + (self.calls * worst_call() if self.calls else 0.0)

    def notes(self, *, has_budget: bool) -> dict[str, Any]:
        """Returns the fields for the manifest. `has_budget`: the process that begins has a limit."""
        return {COST_UNSURE: self.dollars, CALLS_UNSURE: self.calls, HAS_BUDGET: has_budget}


def unsure_of(folder: Path, manifest: Mapping[str, Any], cost: float, name: str = BUDGET) -> UnsureSpending:
    """Returns the spending that the records don't show, from `manifest` as the last process left it. `cost` is that
    of the records, `name` the budget's file. Raises LocalFault if the budget is damaged."""
    amounts = amounts_in(folder / name)
    if amounts is not None:
        return UnsureSpending(max(0.0, amounts.granted - cost))
    calls = int(manifest.get(CALLS_UNSURE, 0))
    was_killed = manifest.get("started") is not None and manifest.get("ended") is None
    if was_killed and not manifest.get(HAS_BUDGET, False):
        calls += int(manifest.get("in_flight_max", 0))
    return UnsureSpending(float(manifest.get(COST_UNSURE, 0.0)), calls)


def at_most_in(folder: Path, worst_call: Callable[[], float]) -> float:
    """Returns the most dollars that a folder's calls can have cost; 0 for a folder that holds no run yet."""
    if not (folder / MANIFEST).exists():
        return 0.0
    cost = cost_of(folder)
    return cost + unsure_of(folder, read_manifest(folder), cost).at_worst(worst_call)


def cost_of(folder: Path) -> float:
    """Returns the dollars in a folder's journals; 0 for a folder that holds no run yet."""
    decode = msgspec.json.Decoder(_CostLine).decode
    cost = 0.0
    for path in (folder / RECORDS, folder / FAILURES):
        try:
            cost += sum(decode(line).cost or 0.0 for line in read_lines(path))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DamagedJournal(f"{path} has a line that is no record ({error}): verify {folder}") from error
    return cost


def cost_of_retried(folder: Path, files: RunFiles = RUN_FILES) -> float:
    """Returns the dollars of failures that `retry` set aside: they are in no line of the present journals."""
    decode, kept = msgspec.json.Decoder(_CostLine).decode, set(read_lines(folder / files.failures))
    cost = 0.0
    for aside in sorted(folder.glob(files.failures.replace(".jsonl", "-*.jsonl"))):
        with suppress(msgspec.MsgspecError, UnicodeError):
            cost += sum(decode(line).cost or 0.0 for line in read_lines(aside) if line not in kept)
    return cost


class _CostLine(Struct):
    cost: float | None = None


def money_of(place: BudgetPlace | None, cost: float, at_worst: float) -> Amounts | None:
    """Returns what a folder's calls cost in dollars, certainly and at most. `cost` is that of its records, `at_worst`
    the part of it whose tokens were not reported. None without a limit, or if the budget is damaged."""
    if place is None:
        return None
    try:
        amounts = amounts_in(place.path) or place.before
    except LocalFault:
        return None  # reported when it is opened
    return Amounts(max(amounts.granted, cost), max(min(amounts.spent, amounts.granted), cost), at_worst)


def money_lines(money: Amounts | None, max_cost: float | None, *, shared_by: int = 0) -> Iterable[str]:
    """Yields the spending in words; nothing without a limit. `shared_by`: the number of other folders under the same
    limit."""
    if money is None or max_cost is None:
        return
    limit = f"--max-cost ${max_cost:,.4f}" + (f", which {shared_by + 1} folders share" if shared_by else "")
    spent = f"${money.spent:,.4f} spent" + (" in this folder" if shared_by else "")
    if money.at_worst >= 5e-5:
        spent += f" (${money.at_worst:,.4f} of it at its worst, since the provider did not report the tokens)"
    if money.granted - money.spent < 5e-5:
        yield f"{spent} of {limit}"
    else:
        yield (
            f"{spent}; up to ${money.granted:,.4f} counting calls in flight at a kill and attempts "
            f"without a whole answer; the limit: {limit}"
        )


def money_as_json(money: Amounts | None, max_cost: float | None) -> dict[str, Any] | None:
    if money is None:
        return None
    return {
        "spent": round(money.spent, 9),
        "at_worst": round(money.at_worst, 9),
        "at_most": round(money.granted, 9),
        "max_cost": max_cost,
    }
