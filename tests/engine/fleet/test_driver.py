"""Calls carried by workers: each ends once, whatever dies."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import shared_owner
from chat_server import COST, MODEL, PRICE, ChatServer, settings_for, status
from loopback_fleet import LoopbackFleet, LoopbackLink, loopback_fleet
from virtual_time import run_with_sockets

import millstream as ms
from millstream.engine.fleet.batches import CallLink
from millstream.engine.fleet.driver import FleetScheduler
from millstream.engine.fleet.grants import Purse

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


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
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


@pytest.mark.parametrize("seed", range(24))
def test_workers_die_at_any_moment_and_no_more_is_sent_again_than_they_had_in_flight(
    seed: int, loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    """In virtual time: a death comes where nothing else happens too, in the start of another worker among others."""
    chance = Random(seed)
    loopback_fleet.delay_s = chance.choice((0.0, 0.5))

    killed: list[LoopbackLink] = []

    async def kill(fleet: LoopbackFleet) -> None:
        while True:
            await asyncio.sleep(chance.expovariate(0.3))
            if alive := [link for link in fleet.links if not link.is_closed]:
                dying = chance.sample(alive, chance.randint(1, len(alive)))
                killed.extend(dying)
                await asyncio.gather(*(link.kill() for link in dying))

    async def main() -> None:
        async with (
            ChatServer(latency_s=1.0) as server,
            engine_on(server, tmp_path, workers=3, concurrency=6) as engine,
        ):
            killer = asyncio.create_task(kill(loopback_fleet.latest))
            async with asyncio.timeout(300.0):
                outcomes = [outcome async for outcome in engine.run(calls(60))]
            killer.cancel()
            await asyncio.gather(killer, return_exceptions=True)
            again = sum(server.counts().values()) - 60
        assert sorted(outcome.call.tag for outcome in outcomes) == list(range(60))
        assert {outcome.status for outcome in outcomes} == {"ok"}
        assert killed and again <= min(2 * len(killed), sum(outcome.maybe_billed for outcome in outcomes))

    run_with_sockets(main())


def test_a_call_that_can_not_travel_ends_with_the_error(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
                await engine.ask(ms.Call(MODEL, "hello", max_tokens=20, tag=lambda: None))
            assert (await engine.ask(ms.Call(MODEL, "hello", max_tokens=20))).reply is not None

    scenario(check, ChatServer())


def test_a_worker_that_has_died_is_given_no_calls(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    """Else they would wait with the worker that is started in its place, which never gets them."""

    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path, workers=1) as engine:
            scheduler, buried = engine.scheduler, asyncio.Event()
            assert isinstance(scheduler, FleetScheduler)
            revive = scheduler.revive

            async def late() -> CallLink:
                scheduler._give_all()
                buried.set()
                return await revive()

            scheduler.revive = late
            outcomes = []
            async for outcome in engine.run(calls(60)):
                outcomes.append(outcome)
                if len(outcomes) == 10:
                    await loopback_fleet.latest.links[0].kill()
        assert buried.is_set() and len(outcomes) == 60

    scenario(check, ChatServer(latency_s=0.01))


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


@pytest.mark.parametrize("no_room", [ms.LocalFault("no room"), RuntimeError("the cluster is gone")])
def test_without_workers_the_run_stops_and_says_so(
    no_room: Exception, loopback_fleet: type[LoopbackFleet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback_fleet.revives_most = 0
    monkeypatch.setattr(loopback_fleet, "no_room", no_room)

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


@pytest.mark.slow
@pytest.mark.parametrize("deaths", [0.0, 0.05])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
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


def test_workers_with_a_folder_each_keep_one_quota(loopback_fleet: type[LoopbackFleet], tmp_path: Path) -> None:
    loopback_fleet.nodes = 3
    loopback_fleet.quota_owner = shared_owner.Link(shared_owner.MemoryOwner(), Random(3), lambda: 0.001)

    async def check(server: ChatServer) -> None:
        lane = ms.Lane(MODEL, concurrency=9, rpm=120)
        settings = settings_for(server.base_url, tmp_path, lane, cluster="local", workers=3)
        async with ms.Engine(settings=settings) as engine:
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    async for _ in engine.run(calls(100)):
                        pass
        # Two a second, and one at once.
        assert 4 <= sum(server.counts().values()) <= 12

    scenario(check, ChatServer())


def test_an_engine_that_is_closed_ends_the_calls_that_workers_have(
    loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            asked = [asyncio.ensure_future(engine.ask(call)) for call in calls(40)]
            await asyncio.sleep(0.3)
            assert isinstance(engine.scheduler, FleetScheduler) and "calls under way" in repr(engine.scheduler)
            assert engine.scheduler.under_way == 40
        await asyncio.wait(asked, timeout=5)
        ends = await asyncio.gather(*asked, return_exceptions=True)
        assert {str(end) for end in ends} == {"the engine was closed while this call was under way"}

    scenario(check, ChatServer(latency_s=2.0))


def test_a_call_to_a_lane_that_has_stopped_is_not_handed_to_a_worker(
    loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            with pytest.raises(ms.Stopped):
                await engine.ask(calls(1)[0])
            sent = len(server.asked)
            with pytest.raises(ms.Stopped):
                await engine.ask(ms.Call(MODEL, "another"))
            assert len(server.asked) == sent

    scenario(check, ChatServer(lambda _: status(402)))


def test_more_calls_than_a_batch_holds_are_handed_over_in_several(
    loopback_fleet: type[LoopbackFleet], tmp_path: Path
) -> None:
    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path, workers=1, concurrency=3000) as engine:
            outcomes = [outcome async for outcome in engine.run(calls(3000))]
        assert sorted(outcome.call.tag for outcome in outcomes) == list(range(3000))

    scenario(check, ChatServer())


def test_a_budget_that_can_not_be_written_ends_the_run_in_a_line(
    loopback_fleet: type[LoopbackFleet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise ms.LocalFault("the budget can't be written: free disk space")

    async def check(server: ChatServer) -> None:
        async with engine_on(server, tmp_path) as engine:
            with pytest.raises(ms.LocalFault, match="budget can't be written"):
                async for _ in engine.run(calls(500)):
                    monkeypatch.setattr(Purse, "grant", full)

    scenario(check, ChatServer(latency_s=0.01))
