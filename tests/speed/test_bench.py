"""The bench of what users run, small: a look at whether it still runs and prints its rows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import environment

pytestmark = pytest.mark.needs_benchmark("millstone")


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("nginx") or Path("/usr/sbin/nginx").exists()), reason="nginx is not installed")
def test_every_client_has_a_row_and_every_part_its_figures(tmp_path: Path) -> None:
    size = ("--rounds", "1", "--calls", "1000", "--issues", "1")
    command = [sys.executable, "-P", "-m", "millstream.speed", *size]
    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=110)
    # So few calls are mostly the start of processes: goals are missed.
    assert done.returncode in (0, 3), done.stderr
    lines = done.stdout.splitlines()
    rows = [line[:24].strip() for line in lines if line.count(" to ") == 3]
    calls = ["floor", "bare aiohttp", "ms.Engine", "floor, grid's lengths", "run millstone"]
    assert rows == [*calls, "floor", "cold", "from the cache", "asked again", "verify", "report"], done.stdout
    assert sum(f"{number} in flight: " in done.stdout for number in ("500", "2,000", "10,000")) == 3
    assert any("first call: " in line for line in lines)
    assert "the grid of 990 prompts, from the command to printed scores" in lines
    assert [line.split()[0] for line in lines[-2:]] == ["run", "ask"]


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "millstream.speed", "warm"]
    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert done.returncode == 2
    assert "unknown part warm: name calls, grid, latency, memory, start, frames" in done.stderr
