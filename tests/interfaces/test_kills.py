"""Promise 1 by force: a run that is killed at random instants ends as one that was not.

Twenty kills here, a thousand in `make torture`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from command_line import Provider, finish, ids_of, scores_of, start
from torture import SEED, record, times

from millstream.bench.millstone.dataset import load, select
from millstream.bench.millstone.grid import Grid
from millstream.bench.millstone.options import GridOptions
from millstream.bench.millstone.work import SAMPLE

pytestmark = pytest.mark.needs_benchmark("millstone")

KILLS = times(20, 1000)
CONCURRENCY = 4
# Long enough to be still under way at the last kill: each leaves the run about a third of a second.
TRIALS = max(3, min(15, KILLS // 5))
SIZE = ("--limit", "2", "--templates", "6", "--trials", str(TRIALS), "--no-progress")
PROMPTS = 2 * 6 * 11 * TRIALS


@pytest.mark.timeout(120 + 3 * KILLS)
@pytest.mark.parametrize("mode", ["record", "live"])
def test_random_kills_lose_nothing_double_nothing_and_pay_twice_for_nothing_but_what_was_in_flight(
    provider: Provider, tmp_path: Path, mode: str
) -> None:
    provider.set_faults("slow_body=0.05")
    chance = random.Random(SEED)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--mode", mode, "--out", "run")
    command = (
        "run",
        "millstone",
        "--no-report",
        "--model",
        "sim/open",
        *SIZE,
        *where,
        "--concurrency",
        str(CONCURRENCY),
    )
    killed = 0
    for _ in range(KILLS // 2):
        process = start(tmp_path, *command)
        try:
            process.wait(chance.uniform(0.05, 1.0))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        finish(process)
    assert killed >= KILLS // 4, "the runs ended before they could be killed"
    provider.set_faults()
    done = finish(start(tmp_path, *command))
    assert done.code == 0, done.err
    ids = ids_of(tmp_path / "run")
    assert len(ids) == len(set(ids)) == PROMPTS
    assert finish(start(tmp_path, "verify", "run")).code == 0
    grid = Grid(select(load(SAMPLE), limit=2), GridOptions(templates=6, trials=TRIALS))
    wanted = Counter(sha256(item.prompt.encode()).hexdigest() for item in grid)
    beyond = provider.received() - wanted
    assert sum(beyond.values()) <= killed * CONCURRENCY
    assert not wanted - provider.received(), "every prompt was asked at least once"
    finish(start(tmp_path, *command, "--out", "whole", "--cache", "other"))
    assert scores_of(tmp_path / "run") == scores_of(tmp_path / "whole")
    again = sum(beyond.values()) / killed
    record("1", killed, killed, f"{again:.2f} calls sent again a kill, of {CONCURRENCY} in flight ({mode})", f"{SEED}")
