"""A caller's budget is kept on disk: over restarts, kills and several gateways at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.engine.attempts.budget_file import amounts_in
from millstream.engine.attempts.money import CostBudget
from millstream.engine.fault import LocalFault
from millstream.interfaces.gateway.callers import caller_budget


def reserved(budget: CostBudget, dollars: float) -> bool:
    if not budget.fits(dollars):
        return False
    budget.reserve(dollars)
    return True


def test_what_was_spent_outlives_the_gateway_and_two_gateways_share_one_limit(tmp_path: Path) -> None:
    one, other = (caller_budget(tmp_path, "ann", 1.0) for _ in range(2))
    assert reserved(one, 0.7) and not reserved(other, 0.4) and reserved(other, 0.2)
    one.settle(0.7, 0.1)
    assert other.left == pytest.approx(0.7) and reserved(other, 0.7) and not reserved(one, 0.1)
    other.settle(0.9, 0.5)
    assert [one.charged, other.charged] == pytest.approx([0.6, 0.6])
    for budget in (one, other):
        budget.detach()
    again = caller_budget(tmp_path, "ann", 1.0)
    assert again.charged == pytest.approx(0.6) and again.unsure == pytest.approx(0.0)
    assert not reserved(again, 0.5) and reserved(again, 0.4)


def test_damage_is_told_and_nothing_is_begun(tmp_path: Path) -> None:
    (tmp_path / "bob.budget").write_bytes(b"granted 1")
    with pytest.raises(LocalFault, match=r"bob\.budget is damaged"):
        caller_budget(tmp_path, "bob", 1.0)


SPEND = """
import sys
from pathlib import Path
from millstream.interfaces.gateway.callers import caller_budget
budget = caller_budget(Path(sys.argv[1]), "ann", 1e9)
while True:
    assert budget.fits(2.0)
    budget.reserve(2.0)
    print("sent", flush=True)
    budget.settle(2.0, 1.0)
"""


def test_a_kill_at_any_instant_counts_no_less_than_was_spent(tmp_path: Path) -> None:
    sent = 0
    for _ in range(5):
        command = [sys.executable, "-P", "-c", SPEND, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as spending:
            assert spending.stdout is not None
            for _ in range(20):
                spending.stdout.readline()
            spending.send_signal(signal.SIGKILL)
            sent += 20 + spending.stdout.read().count(b"sent")
        found = amounts_in(tmp_path / "ann.budget")
        assert found is not None and found.spent <= sent <= found.granted


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalFault, match="can't be written"):
        caller_budget(tmp_path / "file", "ann", 1.0)
