"""Whether plans hold: a pilot of thirty and then the run, before a server whose latencies and lengths follow a law."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable

import pytest
from toy_outside import Asked, Spent, Toys, ToyServer

SEEDS = 20
# How many of them must hold: an interval of 95% fails one in twenty, and the factor may be missed once.
LEAST = 18
FACTOR = 1.5


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


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "spread", "limit", "words"),
    [
        ("sums", 0.5, 330, ("--concurrency", "8")),
        ("sums", 0.3, 90, ("--concurrency", "64")),
        ("sums", 0.3, 90, ("--concurrency", "64", "--rpm", "6000000")),
        ("sums", 0.5, 130, ("--concurrency", "64", "--rpm", "3000")),
        ("doubts", 0.5, 100, ("--concurrency", "16")),
    ],
    ids=["calls in flight", "growing", "all at once", "requests a minute", "conversations"],
)
def test_time_and_cost_after_a_pilot_of_thirty_are_those_of_the_run(
    toys: Toys, server: ToyServer, name: str, spread: float, limit: int, words: tuple[str, ...]
) -> None:
    in_time = in_cost = 0
    told: list[str] = []
    for seed in range(SEEDS):
        server.law = law_of(seed, spread)
        more = ("--limit", str(limit), "--max-tokens", "500", "--cache", f"cache-{seed}", *words)
        done = toys.cli(*toys.words("plan", name, "--json", "--pilot", "30", *more))
        assert done.code == 0, done.err
        ((pilot,),) = (run["pilot"]["estimates"] for run in json.loads(done.out)["runs"])
        server.times.clear()
        out = f"run-{seed}"
        assert toys.run(name, *more, out=out).code == 0
        seconds = max(end for _, end in server.times) - min(came for came, _ in server.times)
        cost = sum(line["cost"] for line in toys.lines(out=out))
        low, high = pilot["cost"]["ci95"]
        planned = 60 * pilot["minutes"]["estimate"]
        in_time += 1 / FACTOR <= planned / seconds <= FACTOR
        in_cost += low <= cost <= high
        told.append(f"{planned:.2f} s for {seconds:.2f}; {low:.1f} to {high:.1f} for {cost:.1f}")
    print(f"{name}: time {in_time}, cost {in_cost} of {SEEDS}", *told, sep="\n")
    assert in_time >= LEAST and in_cost >= LEAST, told
