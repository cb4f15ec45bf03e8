"""A caller's budget is kept on disk: over restarts, kills, torn lines and several gateways at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.engine.fault import LocalFault
from millstream.interfaces.gateway.spending import Spending


def test_what_was_spent_outlives_the_gateway_and_what_is_open_counts_at_its_worst(tmp_path: Path) -> None:
    first = Spending(tmp_path / "ann.spent", 1.0)
    paid, left = first.reserve(0.3), first.reserve(0.5)
    assert paid is not None and left is not None and first.reserve(0.3) is None
    first.settle(paid, 0.1)
    first.close()
    again = Spending(tmp_path / "ann.spent", 1.0)
    assert again.settled == pytest.approx(0.1) and again.reserved == pytest.approx(0.5)
    assert again.is_idle and again.reserve(0.5) is None and again.reserve(0.4) is not None
    again.close()


def test_a_line_that_is_torn_anywhere_is_cut_off_and_the_rest_counts(tmp_path: Path) -> None:
    whole = Spending(tmp_path / "whole", 10.0)
    for cost in (0.25, 0.5, 1.0):
        mark = whole.reserve(2.0)
        assert mark is not None
        whole.settle(mark, cost)
    whole.close()
    data = (tmp_path / "whole").read_bytes()
    for size in range(len(data) + 1):
        torn = tmp_path / "torn"
        torn.write_bytes(data[:size])
        opened = Spending(torn, 10.0)
        lines = data[:size].split(b"\n")[:-1]
        settled = [float(line.split()[2]) for line in lines if line.startswith(b"=")]
        assert opened.settled == sum(settled) and opened.reserved == 2.0 * (len(lines) - 2 * len(settled))
        mark = opened.reserve(0.1)
        assert mark is not None
        opened.settle(mark, 0.0)
        opened.close()
        Spending(torn, 10.0).close()


def test_damage_is_told_and_nothing_is_begun(tmp_path: Path) -> None:
    opened = Spending(tmp_path / "ann.spent", 1.0)
    for _ in range(2):
        opened.reserve(0.1)
    opened.close()
    data = bytearray((tmp_path / "ann.spent").read_bytes())
    data[20] ^= 1
    (tmp_path / "ann.spent").write_bytes(data)
    with pytest.raises(LocalFault, match=r"ann\.spent is damaged"):
        Spending(tmp_path / "ann.spent", 1.0)


def test_two_gateways_share_one_limit(tmp_path: Path) -> None:
    one, other = (Spending(tmp_path / "ann.spent", 1.0) for _ in range(2))
    mark = one.reserve(0.7)
    assert mark is not None and other.reserve(0.4) is None and other.reserve(0.3) is not None
    one.settle(mark, 0.0)
    assert other.reserve(0.4) is not None and one.reserve(0.4) is None
    one.close()
    other.close()


SPEND = """
import sys
from pathlib import Path
from millstream.interfaces.gateway.spending import Spending
spending = Spending(Path(sys.argv[1]), 1e9)
print(flush=True)
while True:
    spending.settle(spending.reserve(2.0), 1.0)
"""


def test_a_kill_at_any_instant_counts_no_less_than_was_spent(tmp_path: Path) -> None:
    path = tmp_path / "ann.spent"
    for killed in range(1, 9):
        with subprocess.Popen([sys.executable, "-P", "-c", SPEND, str(path)], stdout=subprocess.PIPE) as spending:
            assert spending.stdout is not None
            spending.stdout.readline()
            before = path.stat().st_size
            while path.stat().st_size < before + 2_000:
                pass
            os.kill(spending.pid, signal.SIGKILL)
        lines = path.read_bytes().split(b"\n")[:-1]
        opened = Spending(path, 1e9)
        assert opened.settled == sum(line.startswith(b"=") for line in lines)
        assert opened.reserved == 2.0 * (sum(line.startswith(b"+") for line in lines) - opened.settled)
        assert opened.reserved <= 2.0 * killed
        opened.close()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalFault, match="can't be written"):
        Spending(tmp_path / "file" / "ann.spent", 1.0)
