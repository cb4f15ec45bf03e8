"""What the manifest of a folder says of its runs: when they began and ended, their kills, and their money."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millstream.engine.attempts.budget_file import BUDGET, Amounts, BudgetFile, BudgetPlace
from millstream.engine.attempts.money import CostBudget
from millstream.engine.runs.run_folder import RunFolder
from millstream.wiring import Settings
from millstream.wiring.folder_run import FolderCost, begin_run, end_run
from millstream.wiring.running import RunEnd


def worst_call() -> float:
    return 0.25


def sat(folder: Path, end: RunEnd | None, *, is_done: bool = False, **settings: Any) -> tuple[Settings, dict[str, Any]]:
    """One process's run in the folder, and the manifest that it left. `end` None: it was killed."""
    with RunFolder(folder, {"what": "ever"}) as opened:
        begun = begin_run(
            opened,
            Settings(environment={}, **settings),
            FolderCost(dollars=1.0, worst_call=worst_call),
            in_flight_max=4,
            is_done=is_done,
            own="first",
        )
        if end is not None:
            end_run(opened, end, counts=[])
        return begun, dict(opened.manifest)


def test_kills_and_what_may_have_been_billed_add_up_over_the_processes_of_one_run(tmp_path: Path) -> None:
    first, manifest = sat(tmp_path, RunEnd(maybe_billed=2))
    assert (manifest["maybe_billed_pending"], manifest["in_flight_at_kills"], manifest["own"]) == (2, 0, "first")
    sat(tmp_path, None)
    killed = sat(tmp_path, None)[1]
    assert (killed["in_flight_at_kills"], killed["ended"], killed["counts"]) == (4, None, [])
    end = RunEnd(maybe_billed=1)
    last, manifest = sat(tmp_path, end)
    assert (end.maybe_billed, end.in_flight_at_kills, manifest["maybe_billed_pending"]) == (3, 8, 3)
    assert last.run_id == first.run_id == manifest["run_id"] and last.run_started == first.run_started


def test_a_run_that_is_done_keeps_its_end_and_one_that_goes_on_has_none(tmp_path: Path) -> None:
    sat(tmp_path, RunEnd())
    with RunFolder(tmp_path, {"what": "ever"}) as folder:
        folder.write_manifest(ended="then")
    assert sat(tmp_path, RunEnd(), is_done=True)[1]["ended"] == "then"
    assert sat(tmp_path, RunEnd())[1]["ended"] != "then"


def test_a_limit_counts_the_records_and_the_calls_in_flight_at_kills_at_their_worst(tmp_path: Path) -> None:
    sat(tmp_path, None)
    begun, manifest = sat(tmp_path, RunEnd(), max_cost=8.0)
    assert begun.budget == BudgetPlace(tmp_path / BUDGET, Amounts(2.0, 1.0))
    assert (manifest["calls_unsure"], manifest["has_budget"]) == (4, True)
    assert begun.budget is not None
    budget = CostBudget(8.0)
    budget.attach(BudgetFile(begun.budget, 8.0))
    budget.settle(0.0, 0.5)
    budget.detach()
    # Without a limit nothing is counted on disk: the manifest has the 2.0 and the 0.5, less what the records say.
    begun, manifest = sat(tmp_path, RunEnd())
    assert begun.budget is None and not (tmp_path / BUDGET).exists()
    assert (manifest["cost_unsure"], manifest["has_budget"]) == (1.5, False)
