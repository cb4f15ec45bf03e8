"""The engine in worlds of faults, in virtual time: scheduler, lanes, retries, breakers, ledger, money, leases, commits.

One world again: MILLSTREAM_WORLD with its seed. Some hundreds here, thousands in `make torture`.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs
from permits import admit
from scripted import Bench, ScriptedProvider, engine_over
from torture import SEED, record, times
from virtual_time import run_virtually
from worlds import STOPPING, World

from millstream.engine.call import Call
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.prices import Price
from millstream.engine.run import run_calls

ONE = os.environ.get("MILLSTREAM_WORLD")
TOGETHER = 50
STOPS = times(10, 50)
FIRST = SEED * 1_000_000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [int(ONE)] if ONE else range(FIRST, FIRST + times(100, 10_000), TOGETHER))
def test_in_any_world_every_call_ends_once_within_its_quota_and_nothing_is_left(first: int, tmp_path: Path) -> None:
    lasted_s = 0.0
    for seed in range(first, first + (1 if ONE else TOGETHER)):
        world = World(seed, tmp_path / str(seed))
        try:
            run_virtually(world.live())
        except BaseException as error:
            error.add_note(f"that world again: MILLSTREAM_WORLD={seed}")
            raise
        lasted_s += world.lasted_s
    record("5", TOGETHER, TOGETHER, "every call ended once, within quota and budget, and nothing was left", f"{first}")
    print(f"{lasted_s / 3600:.0f} hours")


class QuotaTold(World):
    """The engine believes in twice the quota."""

    def lanes_told(self) -> list[Lane]:
        return [structs.replace(lane, rpm=lane.rpm and 2 * lane.rpm) for lane in super().lanes_told()]


class PriceTold(World):
    """The engine believes in a tenth of the price."""

    def price_told(self) -> Price | None:
        return self.price and Price(self.price.input / 10, self.price.output / 10, output_max=1)


class Rests(World):
    """The engine rests for longer than anything explains."""

    def lanes_told(self) -> list[Lane]:
        return [structs.replace(lane, spacing_s=200.0) for lane in super().lanes_told()]


class SlotKept(World):
    """Somebody never frees a slot."""

    @asynccontextmanager
    async def open(self, number: int) -> AsyncIterator[Bench]:
        async with super().open(number) as bench:
            for model in self.models.values():
                if model.lane.in_flight_most > 1:
                    await admit(bench.lane(model.lane.model))
            yield bench


class Strayed(World):
    """Answers go to the wrong calls."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        for model in self.models.values():
            model.script = lambda prompt, at: f"answer to {prompt[::-1]}"


class TaskLeft(World):
    """A task goes on after the end."""

    @asynccontextmanager
    async def open(self, number: int) -> AsyncIterator[Bench]:
        async with super().open(number) as bench:
            self.left = asyncio.create_task(asyncio.sleep(1e6))
            yield bench


@pytest.mark.parametrize(
    ("bug", "told"),
    [
        (QuotaTold, r"requests in a minute of"),
        (PriceTold, r"\$[\d.]+ of \$"),
        (Rests, "nothing was sent from"),
        (SlotKept, "slots were not freed"),
        (Strayed, "was answered with"),
        (TaskLeft, "sleep"),
    ],
)
def test_a_bug_in_a_world_is_found_within_some_worlds(bug: type[World], told: str, tmp_path: Path) -> None:
    for seed in range(FIRST, FIRST + 60):
        try:
            run_virtually(bug(seed, tmp_path / str(seed)).live())
        except AssertionError as error:
            assert re.search(told, str(error)), error
            return
    pytest.fail("60 worlds found nothing")


class Stopping(ScriptedProvider):
    """A model that from `at` on refuses everything with a fault that stops its lane (None: it never does), and notes
    the calls that arrive after the lane has stopped."""

    def __init__(self, chance: random.Random, fault: Fault | None, at: float) -> None:
        super().__init__(lambda prompt, now: fault if now >= at else None, lambda: chance.uniform(0.01, 3))
        self.bench: Bench | None = None
        self.late: list[float] = []

    async def send(self, request: Request, cleared: Cleared) -> Response:
        assert self.bench is not None
        if self.bench.lane("script/m").stopped is not None:
            self.late.append(asyncio.get_running_loop().time())
        return await super().send(request, cleared)

    def answered(self) -> set[str]:
        failed = {prompt for prompt, _ in self.faults}
        return {prompt for _, prompt in self.arrivals if prompt not in failed}


async def stop_and_go_on(seed: int, folder: Path) -> None:
    """A dead key, an empty account, a redirect or a reached budget at any moment of a run, then the same run again."""
    chance = random.Random(seed)
    fault = chance.choice((*STOPPING, None))
    lane = Lane("script/m", concurrency=chance.choice((1, 4, 32)), rpm=chance.choice((None, 600)))
    calls = [Call("script/m", f"{number:05} of {seed}", max_tokens=1) for number in range(400)]
    model = Stopping(chance, fault, chance.uniform(0, 8))
    price, most = (Price(1e5, 1e5, output_max=1), chance.uniform(5, 100)) if fault is None else (None, None)
    kept = set[str]()
    async with engine_over({"script/m": model}, folder, lane, seed=seed, price=price, max_cost=most) as bench:
        model.bench = bench
        with pytest.raises(Stopped):
            async for outcome in run_calls(bench.scheduler, iter(calls)):
                kept |= {str(outcome.call.input)} if outcome.reply is not None else set()
    assert not model.late, f"sent after the lane had stopped, at {model.late}"
    assert kept == model.answered(), "what was in flight is not kept"
    again = ScriptedProvider()
    async with engine_over({"script/m": again}, folder, seed=seed) as bench:
        found = [outcome async for outcome in run_calls(bench.scheduler, iter(calls))]
    assert all(outcome.reply is not None for outcome in found) and len(found) == len(calls)
    assert set(again.counts()) == {str(call.input) for call in calls} - kept, "answered twice, or never"


@pytest.mark.parametrize("first", range(FIRST, FIRST + times(10, 500), STOPS))
def test_a_lane_that_stopped_sends_nothing_more_and_loses_nothing(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + STOPS):
        try:
            run_virtually(stop_and_go_on(seed, tmp_path / str(seed)))
        except BaseException as error:
            error.add_note(f"the stop of seed {seed}")
            raise
    record("11", STOPS, STOPS, "nothing was sent after a stop, and what was in flight was kept", f"{first}")
