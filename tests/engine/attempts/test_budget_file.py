"""A limit on money is kept in a file that outlives kills, that processes share, and that damage does not fool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from millstream.engine.attempts.budget_file import BudgetFile, BudgetPlace, amounts_in
from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.program_budget import forget_leftovers, program_budget
from millstream.engine.fault import LocalFault

LIMIT = 1.0
ONE_NANO = 1e-9


def opened(place: BudgetPlace, limit: float = LIMIT) -> CostBudget:
    budget = CostBudget(limit)
    budget.attach(BudgetFile(place, limit))
    return budget


def killed(budget: CostBudget) -> None:
    """Its files are closed by the system, and nothing more is written."""
    file = budget._file
    assert isinstance(file, BudgetFile)
    file._close_files()


class _Engine:
    """A budget, and what its calls reserved."""

    def __init__(self, place: BudgetPlace) -> None:
        self.budget = opened(place)
        self.held: list[float] = []


class BudgetOverKills(RuleBasedStateMachine):
    """Two processes share a budget, in one file or in a file each. What may have been billed is the sum of what was
    spent by all of them and of everything that a killed one had reserved."""

    folders: Iterator[int] = count()
    root: Path

    def __init__(self) -> None:
        super().__init__()
        folder = self.root / str(next(self.folders))
        self.places = [BudgetPlace(folder / "both", lock=folder)] * 2
        if int(folder.name) % 2:
            one, other = folder / "one" / "budget", folder / "other" / "budget"
            self.places = [
                BudgetPlace(one, beside={other: 0.0}, lock=folder),
                BudgetPlace(other, beside={one: 0.0}, lock=folder),
            ]
        self.engines: list[_Engine | None] = [None, None]
        self.billed = 0.0

    def engine(self, number: int) -> _Engine:
        found = self.engines[number] = self.engines[number] or _Engine(self.places[number])
        return found

    @rule(number=st.integers(0, 1), cost=st.floats(0.0, 0.3))
    def reserve(self, number: int, cost: float) -> None:
        engine = self.engine(number)
        if engine.budget.fits(cost):
            engine.budget.reserve(cost)
            engine.held.append(cost)

    @rule(number=st.integers(0, 1), share=st.floats(0.0, 1.0), which=st.integers(0, 50), is_unsure=st.booleans())
    def settle(self, number: int, share: float, which: int, is_unsure: bool) -> None:
        engine = self.engine(number)
        if engine.held:
            reserved = engine.held.pop(which % len(engine.held))
            spent = reserved if is_unsure else reserved * share
            engine.budget.settle(reserved, spent, unsure=spent if is_unsure else 0.0)
            self.billed += spent

    @rule(number=st.integers(0, 1))
    def kill(self, number: int) -> None:
        engine = self.engines[number]
        if engine is not None:
            killed(engine.budget)
            self.billed += sum(engine.held)
            self.engines[number] = None

    @rule(number=st.integers(0, 1))
    def close(self, number: int) -> None:
        engine = self.engines[number]
        if engine is not None and not engine.held:
            engine.budget.detach()
            self.engines[number] = None

    @invariant()
    def the_file_grants_all_that_may_be_billed_and_never_more_than_the_limit(self) -> None:
        paths = {place.path for place in self.places}
        found = [amounts for path in paths if (amounts := amounts_in(path)) is not None]
        held = sum(sum(engine.held) for engine in self.engines if engine is not None)
        granted = sum(amounts.granted for amounts in found)
        assert self.billed + held <= granted + 1e-7
        assert granted <= LIMIT + ONE_NANO
        assert sum(amounts.spent for amounts in found) <= self.billed + 1e-7


def test_the_bound_on_disk_holds_over_any_sequence_of_calls_kills_and_ends(tmp_path: Path) -> None:
    BudgetOverKills.root = tmp_path
    run_state_machine_as_test(
        BudgetOverKills, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )


def test_without_kills_nearly_all_of_the_limit_is_spent_and_the_file_is_seldom_written(tmp_path: Path) -> None:
    place = BudgetPlace(tmp_path / "run" / "budget")
    budget, calls = opened(place), 0
    held: list[float] = []
    writes = 0
    before = None
    while True:
        while len(held) < 64 and budget.fits(0.001):
            budget.reserve(0.001)
            held.append(0.001)
        if not held:
            break
        calls += 1
        budget.settle(held.pop(), 0.00002)
        found = amounts_in(place.path)
        writes += found != before
        before = found
    assert 0.95 * LIMIT <= budget.spent <= LIMIT
    assert calls > 40_000 and writes < 1_000
    budget.detach()
    ended = amounts_in(place.path)
    assert ended is not None and ended.granted == ended.spent == pytest.approx(budget.spent)


def test_what_was_in_flight_at_a_kill_counts_at_its_worst_and_a_higher_limit_goes_on_from_there(tmp_path: Path) -> None:
    place = BudgetPlace(tmp_path / "budget")
    budget = opened(place)
    for _ in range(3):
        assert budget.fits(0.3)
        budget.reserve(0.3)
    budget.settle(0.3, 0.1)
    killed(budget)
    again = opened(place)
    assert 0.7 <= again.spent <= 0.75 and again.spent - again.unsure == pytest.approx(0.1)
    assert not again.fits(0.3)
    again.detach()
    higher = opened(place, 2.0)
    assert higher.fits(1.2) and not higher.fits(1.4)
    higher.detach()


def test_what_may_not_have_been_billed_stays_unsure_after_a_clean_end(tmp_path: Path) -> None:
    place = BudgetPlace(tmp_path / "budget")
    budget = opened(place)
    for _ in range(2):
        assert budget.fits(0.3)
        budget.reserve(0.3)
    budget.settle(0.3, 0.1)
    budget.settle(0.3, 0.2, unsure=0.2)
    budget.detach()
    again = opened(place)
    assert (again.spent, again.unsure, again.amounts.spent) == pytest.approx((0.3, 0.2, 0.1))
    again.detach()


def test_what_another_process_was_granted_is_charged_and_not_left(tmp_path: Path) -> None:
    place = BudgetPlace(tmp_path / "budget", lock=tmp_path)
    one, other = opened(place), opened(place)
    assert one.fits(0.3)
    one.reserve(0.3)
    assert other.fits(0.1)
    other.reserve(0.1)
    other.settle(0.1, 0.05)
    # A block is a 200th of the limit: one has at most so much more than it asked for.
    assert other.charged == pytest.approx(0.3 + 0.05, abs=0.006)
    assert other.left == pytest.approx(LIMIT - other.charged)
    for budget in (one, other):
        budget.detach()


def test_a_call_that_was_dearer_than_it_could_be_is_counted_all_the_same(tmp_path: Path) -> None:
    place = BudgetPlace(tmp_path / "budget")
    budget = opened(place)
    assert budget.fits(0.5)
    budget.reserve(0.5)
    budget.settle(0.5, 1.5)
    found = amounts_in(place.path)
    assert found is not None and found.granted >= 1.5 and not budget.fits(0.01)


def reserved_in(budget: CostBudget, cost: float) -> int:
    """How many calls of this highest cost the budget bears at once."""
    number = 0
    while budget.fits(cost):
        budget.reserve(cost)
        number += 1
    return number


def test_a_call_dearer_than_its_highest_cost_lowers_what_is_granted_here_elsewhere_and_after_a_kill(
    tmp_path: Path,
) -> None:
    place = BudgetPlace(tmp_path / "budget", lock=tmp_path)
    one, other = opened(place, 100.0), opened(place, 100.0)
    assert one.fits(0.001) and other.fits(0.001)
    one.reserve(0.001)
    one.settle(0.001, 0.1)  # a hundred times
    assert other.fits(0.6) and other.overrun == pytest.approx(100.0)
    assert reserved_in(one, 0.3) == 1  # 30 dollars of the 39.9 that are left
    killed(one)
    killed(other)
    again = opened(place, 151.0)
    assert again.overrun == pytest.approx(100.0) and reserved_in(again, 0.01) in (60, 61)
    # What is in flight when an overrun is learned counts at it, so a kill loses nothing.
    killed(again)
    assert not opened(place, 151.0).fits(0.02)


def test_calls_in_flight_count_at_an_overrun_that_is_learned_only_now(tmp_path: Path) -> None:
    place = BudgetPlace(tmp_path / "budget")
    budget = opened(place)
    for _ in range(100):
        assert budget.fits(0.0003)
        budget.reserve(0.0003)
    was_overdrawn = budget.is_overdrawn
    budget.settle(0.0003, 0.03)
    assert (was_overdrawn, budget.is_overdrawn) == (False, True)
    assert budget.reserved == pytest.approx(99 * 0.03)
    killed(budget)
    assert not opened(place).fits(0.0003)


def test_an_unreported_count_teaches_no_overrun(tmp_path: Path) -> None:
    budget = opened(BudgetPlace(tmp_path / "budget"))
    assert budget.fits(0.1)
    budget.reserve(0.1)
    budget.settle(0.1, 0.11, at_worst=0.11)
    assert budget.overrun == 1.0 and budget.spent == 0.11


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"", lambda data: data.replace(b"0", b"1", 1)])
def test_damage_is_told_and_nothing_is_granted(tmp_path: Path, damage: object) -> None:
    place = BudgetPlace(tmp_path / "budget")
    budget = opened(place)
    assert budget.fits(0.5)
    budget.detach()
    assert callable(damage)
    place.path.write_bytes(damage(place.path.read_bytes()))
    with pytest.raises(LocalFault, match=r"budget is damaged.*delete it"):
        opened(place)


def test_a_file_that_cannot_be_written_sends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    budget = CostBudget(LIMIT)
    with pytest.raises(LocalFault, match="can't be written"):
        budget.attach(BudgetFile(BudgetPlace(tmp_path / "file" / "budget"), LIMIT))
        budget.fits(0.1)


def test_a_program_takes_up_what_its_killed_like_left_and_begins_anew_after_a_clean_end(tmp_path: Path) -> None:
    def begun(identity: str = "a") -> CostBudget:
        budget = CostBudget(LIMIT)
        budget.attach(program_budget(tmp_path, identity, LIMIT))
        return budget

    first, beside = begun(), begun()
    for budget in (first, beside):
        assert budget.fits(0.6)
        budget.reserve(0.6)
    assert begun("b").fits(1.0), "a living program's budget is its own"
    killed(first)
    again = begun()
    assert again.leftover is not None and not again.fits(0.6)
    again.is_exhausted = True
    again.detach()
    # Whoever was refused for it leaves it: a program that is restarted by another one would begin anew.
    third = begun()
    assert third.leftover is not None and third.fits(0.3)
    third.detach()
    assert begun().leftover is None
    killed(beside)
    assert [round(left.granted, 2) for left in forget_leftovers(tmp_path, "a")] == [0.6]
    assert not forget_leftovers(tmp_path, "a") and os.listdir(tmp_path)
