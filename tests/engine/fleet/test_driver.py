"""Calls carried by workers: each ends once, whatever dies."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from chat_server import COST, MODEL, PRICE, ChatServer, settings_for, status
from loopback_fleet import LoopbackFleet, loopback_fleet

import millstream as ms

__all__ = ["loopback_fleet"]


def scenario(check: Callable[[ChatServer], Awaitable[None]], server: ChatServer) -> None:
    async def main() -> None:
        async with server:
            await check(server)

    asyncio.run(asyncio.wait_for(main(), 60))


def engine_on(server: ChatServer, folder: Path, *, workers: int = 2, concurrency: int = 8) -> ms.Engine:
    lane = ms.Lane(MODEL, concurrency=concurrency)
    return ms.Engine(settings=settings_for(server.base_url, folder, lane, cluster="local", workers=workers))


def calls(count: int) -> list[ms.Call]:
    return [ms.Call(MODEL, f"prompt {number}", max_tokens=20, tag=number) for number in range(count)]


def test_a_run_over_workers_has_every_outcome_once(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path, workers=3) as engine:
            outcomes = [outcome async for outcome in engine.run(calls(500))]
        assert sorted(outcome.call.tag for outcome in outcomes) == list(range(500))
        assert {(outcome.status, outcome.attempts, outcome.maybe_billed) for outcome in outcomes} == {("ok", 1, 0)}
        assert set(server.counts().values()) == {1}

    scenario(check, ChatServer())


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_workers_die_and_each_call_still_ends_once(
    seed: int, nodes: int, loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    loopback_fleet.delay_s, loopback_fleet.nodes = 0.002, nodes
    chance = Random(seed)

    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path, workers=3) as engine:
            fleet = loopback_fleet.latest
            outcomes = []
            async for outcome in engine.run(calls(400)):
                outcomes.append(outcome)
                if chance.random() < 0.02:
                    alive = [link for link in fleet.links if not link.is_closed]
                    if alive:
                        await chance.choice(alive).kill()
            deaths = len(fleet.links) - 3
        assert deaths > 2
        assert sorted(outcome.call.tag for outcome in outcomes) == list(range(400))
        assert {outcome.status for outcome in outcomes} == {"ok"}
        again = [prompt for prompt, times in server.counts().items() if times > 1]
        maybe = {outcome.call.input for outcome in outcomes if outcome.maybe_billed}
        assert set(again) <= maybe

    scenario(check, ChatServer(latency_s=0.002))


def test_a_dead_key_stops_all_workers(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            with pytest.raises(ms.Stopped) as stopped:
                [outcome async for outcome in engine.run(calls(300))]
        assert [stop.reason for stop in stopped.value.stops] == ["dead_key"]
        assert sum(server.counts().values()) < 40

    scenario(check, ChatServer(lambda asked: status(401)))


def test_a_halt_ends_what_waits_and_keeps_what_is_in_flight(
    loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            outcomes = []
            with pytest.raises(ms.Stopped):
                async for outcome in engine.run(calls(1000)):
                    outcomes.append(outcome)
                    if len(outcomes) == 20:
                        engine.halt("interrupted", "enough")
        counts = Counter(server.counts())
        assert len(outcomes) == len(counts) < 1000

    scenario(check, ChatServer(latency_s=0.01))


def test_without_workers_the_run_stops_and_says_so(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    loopback_fleet.revives_most = 0

    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            with pytest.raises(ms.LocalFault, match="no worker is left"):
                async for _ in engine.run(calls(1000)):
                    for link in loopback_fleet.latest.links:
                        if not link.is_closed:
                            await link.kill()

    scenario(check, ChatServer(latency_s=0.01))


def test_a_single_call_is_carried_too(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            heard: list[str | None] = []
            outcome = await engine.ask(ms.Call(MODEL, "hello", max_tokens=20), hear=heard.append)
            assert outcome.reply is not None and heard == [None, outcome.reply.text]

    scenario(check, ChatServer())


@pytest.mark.parametrize("deaths", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(4))
def test_a_cap_holds_over_workers_and_their_deaths(
    seed: int, deaths: float, loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    loopback_fleet.delay_s = 0.002
    chance, cap = Random(seed), 150 * COST

    async def check(server: ChatServer) -> None:
        settings = settings_for(
            server.base_url,
            tmp_path,
            ms.Lane(MODEL, concurrency=6),
            cluster="local",
            workers=3,
            max_cost=cap,
            prices={MODEL: PRICE},
        )
        outcomes: list[ms.Outcome] = []
        async with ms.Engine(settings=settings) as engine:
            with pytest.raises(ms.Stopped) as stopped:
                async for outcome in engine.run(calls(1000)):
                    outcomes.append(outcome)
                    if chance.random() < deaths:
                        alive = [link for link in loopback_fleet.latest.links if not link.is_closed]
                        if alive:
                            await chance.choice(alive).kill()
            budget = engine.budget
        assert [stop.reason for stop in stopped.value.stops] == ["budget"]
        billed = COST * sum(server.counts().values())
        assert billed <= cap + 1e-9
        assert budget.spent <= cap + 1e-9
        assert sum(outcome.cost or 0.0 for outcome in outcomes) <= budget.spent + 1e-9
        if not deaths:
            # The next call, at its worst, did not fit.
            said = re.search(r"may cost \$([\d.]+); \$([\d.]+) of --max-cost", stopped.value.stops[0].detail)
            assert said is not None
            assert budget.spent == pytest.approx(billed) == float(said[2]) and billed + float(said[1]) > cap

    scenario(check, ChatServer(latency_s=0.001))


def test_calls_that_end_every_worker_end_the_run(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:

            async def kill_all() -> None:
                while True:
                    await asyncio.sleep(0.02)
                    for link in loopback_fleet.latest.links:
                        if not link.is_closed:
                            await link.kill()

            killer = asyncio.create_task(kill_all())
            with pytest.raises(ms.LocalFault, match=r"1\d workers have ended one after the other"):
                [outcome async for outcome in engine.run(calls(20))]
            killer.cancel()

    scenario(check, ChatServer(latency_s=60.0))
