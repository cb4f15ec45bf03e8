"""What counts against a folder's limit before it has a budget, and what its summary says of the money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Provider

from millstream.engine.attempts.budget_file import BUDGET, Amounts, BudgetFile, BudgetPlace, amounts_in
from millstream.engine.attempts.money import CostBudget
from millstream.wiring.folder_budget import UnsureSpending, money_lines, unsure_of

PRICES = '[prices."sim/open"]\ninput = 20\noutput = 20\n'


@pytest.mark.parametrize(
    ("manifest", "unsure"),
    [
        ({}, UnsureSpending()),
        ({"started": "then", "ended": "later", "in_flight_max": 8}, UnsureSpending()),
        ({"started": "then", "in_flight_max": 8}, UnsureSpending(0.0, 8)),
        # A process with a limit that was killed before its first call has nothing in flight.
        ({"started": "then", "in_flight_max": 8, "has_budget": True, "calls_unsure": 3}, UnsureSpending(0.0, 3)),
        ({"started": "then", "ended": "later", "cost_unsure": 0.5, "calls_unsure": 2}, UnsureSpending(0.5, 2)),
    ],
)
def test_calls_in_flight_at_kills_count_at_their_worst(
    tmp_path: Path, manifest: dict[str, Any], unsure: UnsureSpending
) -> None:
    assert unsure_of(tmp_path, manifest, 1.0) == unsure
    assert unsure.at_worst(lambda: 0.25) == unsure.dollars + 0.25 * unsure.calls
    kept = {**manifest, **unsure.notes(has_budget=False), "ended": "now"}
    assert unsure_of(tmp_path, kept, 1.0) == unsure


def test_a_budget_says_what_may_have_been_spent_beyond_the_records(tmp_path: Path) -> None:
    budget = CostBudget(2.0)
    budget.attach(BudgetFile(BudgetPlace(tmp_path / BUDGET, Amounts(1.0, 0.75)), 2.0))
    assert budget.spent == 1.0 and budget.unsure == 0.25 and budget.fits(0.5) and not budget.fits(1.1)
    budget.settle(0.0, 0.5)
    budget.detach()
    found = unsure_of(tmp_path, {"in_flight_at_kills": 99}, 1.25)
    assert found.calls == 0 and found.dollars == pytest.approx(0.25)


def test_folders_of_a_sweep_share_a_limit_also_with_one_that_has_no_budget_yet(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()

    def budget_of(folder: Path) -> CostBudget:
        budget = CostBudget(1.0)
        beside = {other / BUDGET: 0.3 if other.name == "c" else 0.0 for other in folders if other != folder}
        budget.attach(BudgetFile(BudgetPlace(folder / BUDGET, Amounts(), beside, folder.parent), 1.0))
        return budget

    first, second = budget_of(folders[0]), budget_of(folders[1])
    assert first.fits(0.4) and not second.fits(0.4) and second.fits(0.25)
    first.settle(0.0, 0.4)
    assert budget_of(folders[1]).spent == pytest.approx(0.3 + 0.4 + 0.25, abs=0.02)


def test_the_summary_says_both_only_where_they_differ() -> None:
    assert list(money_lines(None, 8.0)) == list(money_lines(Amounts(), None)) == []
    (same,) = money_lines(Amounts(7.0, 7.0), 8.0)
    assert same == "$7.0000 spent of --max-cost $8.0000"
    (both,) = money_lines(Amounts(7.94, 7.12), 8.0, shared_by=1)
    assert both.startswith("$7.1200 spent in this folder; up to $7.9400 counting calls in flight at a kill")
    # The message that a call would pass the limit counts all folders that share it.
    (shared,) = money_lines(Amounts(), 8.0, shared_by=1)
    assert shared == "$0.0000 spent in this folder of --max-cost $8.0000, which 2 folders share"


@pytest.mark.needs_benchmark("millstone")
def test_an_attempt_that_may_have_been_billed_counts_over_sessions(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--config", "prices.toml", "--no-progress", "--json")
    size = ("--limit", "1", "--templates", "1", "--trials", "2", "--max-tokens", "16", "--no-report")
    command = ("run", "millstone", "--model", "sim/open", *size, *where, "--out", "run", "--max-cost")
    provider.set_faults("truncated_json,rate=0.5")
    first = json.loads(cli(*command, "0.2").out)["runs"][0]["money"]
    assert 0 < first["spent"] < first["at_most"] <= 0.2
    provider.set_faults()
    more = cli(*command, "4")
    second = json.loads(more.out)["runs"][0]["money"]
    assert more.code == 0 and second["at_most"] - second["spent"] >= first["at_most"] - first["spent"] - 1e-6
    # Without a limit nothing is counted on disk, and what was uncertain stays known.
    (tmp_path / "run" / "records.jsonl").write_bytes(b"")
    assert cli(*command[:-1]).code == 0 and not (tmp_path / "run" / BUDGET).exists()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["cost_unsure"] > 0 and not manifest["has_budget"]


@pytest.mark.needs_benchmark("millstone")
def test_a_damaged_budget_ends_with_5_and_says_what_to_do(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    size = ("--limit", "1", "--templates", "1", "--trials", "1", "--max-tokens", "16", "--no-report")
    where = ("--base-url", provider.base_url, "--config", "prices.toml", "--no-progress", "--out", "run")
    command = ("run", "millstone", "--model", "sim/open", *size, *where, "--max-cost", "4")
    assert cli(*command).code == 0 and amounts_in(tmp_path / "run" / BUDGET) is not None
    (tmp_path / "run" / BUDGET).write_bytes(b"granted 0")
    done = cli(*command)
    assert done.code == 5 and "budget is damaged" in done.err and "delete it" in done.err
    (tmp_path / "run" / BUDGET).unlink()
    assert cli(*command).code == 0


@pytest.mark.needs_benchmark("millstone")
def test_plan_says_how_many_calls_a_limit_bears_in_flight(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    size = ("--limit", "1", "--max-tokens", "16", "--config", "prices.toml")
    command = ("plan", "millstone", "--model", "sim/open", *size, "--concurrency", "100", "--max-cost")
    (bound,) = json.loads(cli(*command, "1", "--json").out)["runs"][0]["in_flight_under_max_cost"]
    assert bound["in_flight"] == int(1 / bound["worst_call"]) < bound["concurrency"] == 100
    assert "fewer than its concurrency of 100" in cli(*command, "1").out
    assert "its concurrency of 100 is not held back" in cli(*command, "100").out
    assert "bears none of its dearest calls" in cli(*command, "0.0001").out
