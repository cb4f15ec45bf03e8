"""The engine in worlds of faults, in virtual time: scheduler, lanes, retries, breakers, ledger, money, leases, commits.

One world again: MILLSTREAM_WORLD with its seed. Some hundreds here, thousands in `make torture`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs
from scripted import Bench
from torture import SEED, record, times
from virtual_time import run_virtually
from worlds import World

from millstream.engine.attempts.money import Price
from millstream.engine.lane import Lane

ONE = os.environ.get("MILLSTREAM_WORLD")
TOGETHER = 50
FIRST = SEED * 1_000_000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [int(ONE)] if ONE else range(FIRST, FIRST + times(200, 10_000), TOGETHER))
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
                if model.lane.concurrency > 1:
                    await bench.lane(model.lane.model).admit()
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
