"""Whether plans hold: a pilot of thirty and then the run, before a server whose latencies and lengths follow a law."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import run_command
from toy_outside import KEY, Asked, Spent, Toys, ToyServer

SEEDS = 20
# How many of them must hold: an interval of 95% fails one in twenty, and the factor may be missed once.
LEAST = 18
FACTOR = 1.5
# Seeds at the same time, each before a server of its own: eight calls in flight, or fifty a second, leave a core idle.
# Where 64 are in flight, a seed has a core.
BESIDE, BUSY = 3, 2


def law_of(seed: int, spread: float) -> Callable[[Asked], Spent]:
    """Seconds around 80 ms that differ by `spread` in their logarithm, the same for a prompt whenever it comes; longer
    answers take longer."""

    def law(asked: Asked) -> Spent:
        named = json.dumps([seed, asked.model, asked.texts]).encode()
        draws = random.Random(hashlib.sha256(named).digest())
        length = draws.gauss(0, 1)
        slow = 0.8 * length + 0.6 * draws.gauss(0, 1)
        return Spent(0.08 * math.exp(spread * slow), draws.randint(8, 12), round(20 * math.exp(0.5 * length)) + 1)

    return law


class Case(NamedTuple):
    """What is planned and run."""

    name: str
    spread: float
    limit: int
    words: tuple[str, ...]


class Planned(NamedTuple):
    """What a pilot said, and what the run took."""

    minutes: float
    cost_low: float
    cost_high: float
    seconds: float
    cost: float


def planned(case: Case, home: Path, seed: int) -> Planned:
    """One seed, in a folder of its own."""
    folder = home / f"seed-{seed}"
    folder.mkdir()
    with ToyServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder / "site"))
        toys = Toys(partial(run_command, folder, LAB_KEY=KEY), server, folder)
        server.law = law_of(seed, case.spread)
        more = ("--limit", str(case.limit), "--max-tokens", "500", *case.words)
        done = toys.cli(*toys.words("plan", case.name, "--json", "--pilot", "30", *more))
        assert done.code == 0, done.err
        ((pilot,),) = (run["pilot"]["estimates"] for run in json.loads(done.out)["runs"])
        server.times.clear()
        assert toys.run(case.name, *more).code == 0
        seconds = max(end for _, end in server.times) - min(came for came, _ in server.times)
        cost = sum(line["cost"] for line in toys.lines())
        low, high = pilot["cost"]["ci95"]
        return Planned(pilot["minutes"]["estimate"], low, high, seconds, cost)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("case", "beside"),
    [
        (Case("sums", 0.5, 330, ("--concurrency", "8")), BESIDE),
        (Case("sums", 0.3, 90, ("--concurrency", "64")), BUSY),
        (Case("sums", 0.3, 90, ("--concurrency", "64", "--rpm", "6000000")), BUSY),
        (Case("sums", 0.5, 130, ("--concurrency", "64", "--rpm", "3000")), BESIDE),
        (Case("doubts", 0.5, 100, ("--concurrency", "16")), BESIDE),
    ],
    ids=["calls in flight", "growing", "all at once", "requests a minute", "conversations"],
)
def test_time_and_cost_after_a_pilot_of_thirty_are_those_of_the_run(case: Case, beside: int, tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(beside) as processes:
        runs = processes.map(partial(planned, case, tmp_path), range(SEEDS), chunksize=1)
    in_time = sum(1 / FACTOR <= 60 * run.minutes / run.seconds <= FACTOR for run in runs)
    in_cost = sum(run.cost_low <= run.cost <= run.cost_high for run in runs)
    told = [
        f"{60 * run.minutes:.2f} s for {run.seconds:.2f}; {run.cost_low:.1f} to {run.cost_high:.1f} for {run.cost:.1f}"
        for run in runs
    ]
    print(f"{case.name}: time {in_time}, cost {in_cost} of {SEEDS}", *told, sep="\n")
    assert in_time >= LEAST and in_cost >= LEAST, told
