"""A send counts when its request is written, however long its connection takes. In virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over, prompts, worst_minute
from torture import SEED, record, times
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call
from millstream.engine.lane import Lane
from millstream.engine.limits import Tokens
from millstream.engine.prices import Price
from millstream.engine.run import run_calls

M = "script/m"
RPM = 120


class Connecting:
    """How long each connection takes, by the time at which it is begun."""

    def __init__(self, seconds: Callable[[float, random.Random], float], seed: int) -> None:
        self.seconds, self.chance = seconds, random.Random(seed)

    def __call__(self) -> float:
        return self.seconds(asyncio.get_running_loop().time(), self.chance)


STALLS: dict[str, Callable[[float, random.Random], float]] = {
    "the first 12 s held": lambda now, chance: max(0.05, 12 - now),
    "held together every two minutes": lambda now, chance: max(0.05, 20 - now % 120),
    "each takes 1 s": lambda now, chance: 1.0,
    "one of five addresses is silent": lambda now, chance: 10.0 if chance.random() < 0.2 else 0.05,
    "names that are slow to resolve": lambda now, chance: chance.choice((0.05, 0.05, 5.0)),
}


def arrivals(seconds: Callable[[float, random.Random], float], folder: Path, seed: int, minutes: int) -> list[float]:
    provider = ScriptedProvider(latency_s=0.5, connecting_s=Connecting(seconds, seed))

    async def main() -> None:
        async with engine_over({M: provider}, folder, Lane(M, rpm=RPM, concurrency=512), seed=seed) as bench:
            async for _ in run_calls(bench.scheduler, prompts(RPM * minutes)):
                pass

    run_virtually(main())
    return [at for at, _ in provider.arrivals]


@pytest.mark.parametrize("stall", STALLS)
def test_no_minute_of_writes_exceeds_the_quota_however_long_connecting_takes(stall: str, tmp_path: Path) -> None:
    tries, worst = times(1, 20), 0
    for seed in range(SEED, SEED + tries):
        sent = arrivals(STALLS[stall], tmp_path / str(seed), seed, minutes=4)
        worst = max(worst, worst_minute([(at, 1) for at in sent]))
        assert worst <= RPM
        if stall in ("the first 12 s held", "each takes 1 s"):
            # The quiet minutes: after the start, before the last calls.
            quiet = [at for at in sent if 90 <= at < 210]
            assert len(quiet) >= 0.95 * 2 * RPM
    record("8", tries, tries, f"{stall}: the fullest minute had {worst} of {RPM} writes", f"{SEED}..{SEED + tries - 1}")


def test_a_hosts_pace_holds_between_writes(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.1, connecting_s=Connecting(STALLS["the first 12 s held"], 1))
    host = f"{WEB}/host.example"

    async def main() -> None:
        async with engine_over({WEB: provider}, tmp_path, Lane(host, concurrency=8, spacing_s=1.0)) as bench:
            calls = (Call(WEB, f"http://host.example/{n}") for n in range(30))
            async for _ in run_calls(bench.scheduler, calls):
                pass

    run_virtually(main())
    sent = [at for at, _ in provider.arrivals]
    assert len(sent) == 30 and min(b - a for a, b in pairwise(sent)) >= 0.9


def test_a_call_that_is_left_while_it_connects_was_not_sent_and_costs_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider(connecting_s=10.0)

    async def main() -> None:
        price = Price(1_000.0, 1_000.0)
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=60, tpm=1e6), max_cost=9.0, price=price) as bench:
            leaving = asyncio.create_task(bench.scheduler.ask(Call(M, "left", max_tokens=1_000)))
            await asyncio.sleep(1.0)
            assert bench.budget.reserved > 0
            leaving.cancel()
            await asyncio.wait([leaving])
            assert (bench.budget.reserved, bench.budget.spent, bench.scheduler.maybe_billed_pending) == (0, 0, 0)
            assert bench.lane(M).used(asyncio.get_running_loop().time()) == (0, Tokens())
            assert bench.lane(M).in_flight == 0

    run_virtually(main())
    assert not provider.arrivals
