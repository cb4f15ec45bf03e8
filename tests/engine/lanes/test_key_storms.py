"""Storms over several keys of one model: whatever fails and when, every run ends and no call is lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over, worst_minute
from virtual_time import run_virtually

from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls

M = "script/m"
UNTOLD = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
TOLD = Fault("rate_limited", "429", "throttle", 429, retry_after_s=30.0)
DEAD = Fault("rejected", "401: no such key", "confirm", 401)
EMPTY = Fault("rate_limited", "the account can't pay", "stop", 429)
REJECTED = Fault("rejected", "400", "never", 400)
SERVER_ERROR = Fault("server_error", "500", "retry", 500)


async def weather(seed: int, folder: Path) -> None:
    """One run over keys that fail each in its own way, with everything that must hold afterwards."""
    chance = random.Random(seed)
    kinds = [UNTOLD, TOLD, REJECTED, SERVER_ERROR, DEAD, EMPTY, None, None]

    emptied_at: dict[int, float] = {}

    def moods(number: int) -> Callable[[str, float], Fault | None]:
        mine, share, ends_at = chance.sample(kinds, 3), chance.choice([0.1, 0.7, 1.0]), chance.choice([5.0, 200.0])

        def mood(prompt: str, at: float) -> Fault | None:
            fault = chance.choice(mine) if at < ends_at and chance.random() < share else None
            if fault is EMPTY:
                emptied_at.setdefault(number, at)
            return fault

        return mood

    count = chance.choice([2, 3, 7])
    keys = [ScriptedProvider(moods(number), lambda: chance.uniform(0.01, 2)) for number in range(count)]
    lane = Lane(M, chance.choice([None, 60]), chance.choice([None, 20_000]), chance.choice([1, 4]))
    seen: list[Outcome] = []
    async with engine_over({M: keys}, folder, lane, seed=seed) as bench:
        calls = [Call(M, f"prompt {chance.randrange(60)}", tag=number) for number in range(80)]
        with contextlib.suppress(Stopped):
            async for outcome in run_calls(bench.scheduler, calls):
                seen.append(outcome)
                if chance.random() < 0.1:
                    await asyncio.sleep(chance.uniform(0, 5))
        group = bench.lane(M)
        assert group.in_flight == 0 and all(key.in_flight == 0 for key in group.keys)
        assert (group.stopped is not None) == (len(group.stopped_keys) == len(keys))
    assert len(asyncio.all_tasks()) == 1
    tags = [outcome.call.tag for outcome in seen]
    assert len(tags) == len(set(tags))
    if group.stopped is None:
        assert len(tags) == 80
    for key, provider in zip(group.keys, keys, strict=True):
        if key.stopped is not None and key.stopped.reason == "empty_account":
            # Nothing is sent once the first such answer has come, two seconds after it was asked for at the latest.
            assert provider.arrivals[-1][0] <= emptied_at[key.number] + 2.0
        if lane.rpm is not None:
            assert worst_minute([(at, 1) for at, _ in provider.arrivals]) <= lane.rpm


@pytest.mark.parametrize("first_seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (25, 50, 75))])
def test_in_any_storm_over_several_keys_every_run_ends_and_no_call_is_lost_or_doubled(
    first_seed: int, tmp_path: Path
) -> None:
    for seed in range(first_seed, first_seed + 25):
        try:
            run_virtually(weather(seed, tmp_path / str(seed)))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
