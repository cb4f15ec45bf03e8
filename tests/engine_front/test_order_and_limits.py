"""How many calls are out at once and in a minute, who goes first, and how far the input is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chat_server import INPUT, MODEL, OUTPUT, Asked, ChatServer, Step, held, settings_for, sound, until
from virtual_time import run_with_sockets

import millstream as ms


def calls(count: int, word: str = "call", model: str = MODEL) -> Iterator[ms.Call]:
    return (ms.Call(model, f"{word} {number}", max_tokens=5, tag=number) for number in range(count))


def worst_minute(times: list[float]) -> int:
    """The most in any sliding window of 60 seconds."""
    return max(sum(at <= other < at + 60.0 for other in times) for at in times)


def sent_in_virtual_time(folder: Path, lane: ms.Lane, count: int, latency_s: Callable[[], float]) -> ChatServer:
    """The server after a run of so many calls."""

    async def late(asked: Asked) -> bool:
        await asyncio.sleep(latency_s())
        return await sound(asked)

    async def main() -> ChatServer:
        async with ChatServer(lambda asked: late) as server:
            async with ms.Engine(settings=settings_for(server.base_url, folder, lane)) as engine:
                outcomes = [outcome async for outcome in engine.run(calls(count))]
            assert [outcome.status for outcome in outcomes] == ["ok"] * count
            return server

    return run_with_sockets(main())


# Limits


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_no_more_calls_are_out_than_the_lane_admits_and_no_fewer(concurrency: int, tmp_path: Path) -> None:
    chance = Random(concurrency)
    server = sent_in_virtual_time(tmp_path, ms.Lane(MODEL, concurrency=concurrency), 100, lambda: chance.random())
    assert server.peak == concurrency


def test_runs_and_asks_share_the_places_of_a_lane(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer(latency_s=0.1) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=3))
            async with ms.Engine(settings=made) as engine:

                async def taken(word: str) -> int:
                    return len([outcome async for outcome in engine.run(calls(20, word))])

                asked = (engine.ask(call) for call in calls(20, "asked"))
                assert (await asyncio.gather(taken("one"), taken("two"), *asked))[:2] == [20, 20]
            assert server.peak == 3 and len(server.asked) == 60

    run_with_sockets(main())


@pytest.mark.parametrize("rpm", [10, 60, 120])
def test_no_minute_has_more_requests_than_the_quota_and_most_have_nearly_as_many(rpm: int, tmp_path: Path) -> None:
    chance = Random(rpm)
    lane = ms.Lane(MODEL, rpm=rpm, concurrency=8)
    server = sent_in_virtual_time(tmp_path, lane, 2 * rpm + 5, lambda: chance.uniform(0.0, 2.0))
    times = [asked.at for asked in server.asked]
    assert worst_minute(times) <= rpm
    assert 118 <= times[2 * rpm] - times[0] <= 126


def test_no_minute_has_more_tokens_than_the_quota(tmp_path: Path) -> None:
    tokens = INPUT + OUTPUT
    lane = ms.Lane(MODEL, tpm=20 * tokens, concurrency=8)
    server = sent_in_virtual_time(tmp_path, lane, 50, lambda: 0.5)
    # What a call is reckoned with before it is answered is less than it uses: the minute after bears the rest.
    times = [asked.at for asked in server.asked]
    assert worst_minute([at for at in times if at > 60.0]) * tokens <= 20 * tokens
    assert times[-1] >= 100


def test_calls_have_the_distance_that_is_asked_for(tmp_path: Path) -> None:
    server = sent_in_virtual_time(tmp_path, ms.Lane(MODEL, spacing_s=2.0), 12, lambda: 0.1)
    times = [asked.at for asked in server.asked]
    assert min(after - before for before, after in pairwise(times)) >= 1.9


def test_a_quota_outlives_its_engine(tmp_path: Path) -> None:
    async def main() -> list[float]:
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, rpm=12))
            for word in ("one", "two", "three"):
                async with ms.Engine(settings=made) as engine:
                    async for _ in engine.run(calls(6, word)):
                        pass
            return [asked.at for asked in server.asked]

    assert worst_minute(run_with_sockets(main())) <= 12


# Order


def test_who_comes_first_is_sent_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer(latency_s=0.01) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=1))
            async with ms.Engine(settings=made) as engine:
                tasks = []
                for call in calls(30):
                    tasks.append(asyncio.create_task(engine.ask(call)))
                    await asyncio.sleep(0)
                # Who leaves the queue moves nobody behind it.
                for task in tasks[10:20]:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            staying = [*range(10), *range(20, 30)]
            assert [asked.prompt for asked in server.asked] == [f"call {number}" for number in staying]

    run_with_sockets(main())


def test_a_lane_that_is_full_holds_up_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with ChatServer(lambda asked: held(release) if asked.prompt.startswith("slow") else None) as server:
            lanes = ms.Lane(MODEL, concurrency=2), ms.Lane("lab/quick", concurrency=2)
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path, *lanes)) as engine:
                both = zip(calls(50, "slow"), calls(50, "quick", "lab/quick"), strict=True)
                async with aclosing(engine.run(call for pair in both for call in pair)) as outcomes:
                    quick = [(await anext(outcomes)).call.model for _ in range(50)]
                    assert set(quick) == {"lab/quick"} and server.in_flight == 2
                    release.set()
                    assert len([outcome async for outcome in outcomes]) == 50

    run_with_sockets(main())


def test_calls_read_ahead_for_a_lane_that_is_full_are_bounded(tmp_path: Path) -> None:
    async def main() -> None:
        release, read = asyncio.Event(), 0

        def pairs() -> Iterator[ms.Call]:
            nonlocal read
            for slow, quick in zip(calls(1_000, "slow"), calls(1_000, "quick", "lab/quick"), strict=True):
                read += 2
                yield from (slow, quick)

        async with ChatServer(lambda asked: held(release) if asked.prompt.startswith("slow") else None) as server:
            lanes = ms.Lane(MODEL, concurrency=2), ms.Lane("lab/quick", concurrency=2)
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path, *lanes)) as engine:
                seen: list[ms.Outcome] = []

                async def take() -> None:
                    async for outcome in engine.run(pairs()):
                        seen.append(outcome)

                taking = asyncio.create_task(take())
                await asyncio.sleep(60.0)
                # The quick lane went on until the slow one's look-ahead was full.
                assert 100 <= len(seen) <= 300 and read <= 600
                release.set()
                await taking
                assert len(seen) == 2_000

    run_with_sockets(main())


# The input


def plain(read: list[int], count: int) -> Iterator[ms.Call]:
    for call in calls(count):
        read.append(call.tag)
        yield call


async def asynchronous(read: list[int], count: int) -> AsyncIterator[ms.Call]:
    for call in plain(read, count):
        await asyncio.sleep(0)
        yield call


@pytest.mark.parametrize("make", [plain, asynchronous])
def test_the_input_is_read_no_further_than_it_is_sent(make: Callable[[list[int], int], Any], tmp_path: Path) -> None:
    async def main() -> None:
        read, release = list[int](), asyncio.Event()
        async with ChatServer(lambda asked: held(release)) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=4))
            async with ms.Engine(settings=made) as engine:
                async with aclosing(engine.run(make(read, 1_000_000))) as outcomes:
                    first = asyncio.ensure_future(anext(outcomes))
                    await until(lambda: server.in_flight == 4)
                    await asyncio.sleep(0.1)
                    assert len(read) <= 2 * 4
                    release.set()
                    await first
                assert engine.statistics().in_flight == 0

    run_with_sockets(main())


@pytest.mark.parametrize("make", [plain, asynchronous])
def test_a_slow_consumer_stops_the_input(make: Callable[[list[int], int], Any], tmp_path: Path) -> None:
    async def main() -> None:
        read: list[int] = []
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=4))
            async with ms.Engine(settings=made) as engine, aclosing(engine.run(make(read, 1_000_000))) as outcomes:
                await anext(outcomes)
                await asyncio.sleep(60.0)
                before = len(read), len(server.asked)
                # What is finished and not taken is bounded, so is what is read for it.
                assert before[0] <= 300
                await asyncio.sleep(60.0)
                assert (len(read), len(server.asked)) == before
                # Each that is taken lets the input go on.
                taken = [await anext(outcomes) for _ in range(before[0])]
                assert len({outcome.call.tag for outcome in taken}) == len(taken)
                assert len(read) > before[0]

    run_with_sockets(main())


def test_a_source_that_is_slow_holds_up_no_outcome(tmp_path: Path) -> None:
    async def slow() -> AsyncIterator[ms.Call]:
        for call in calls(3):
            yield call
            await asyncio.sleep(100.0)

    async def main() -> None:
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:
                loop, times = asyncio.get_running_loop(), list[float]()
                async for _ in engine.run(slow()):
                    times.append(loop.time())
        assert times == pytest.approx([0.0, 100.0, 200.0], abs=2.0)

    run_with_sockets(main())


@pytest.mark.parametrize("make", [plain, asynchronous])
def test_stored_calls_send_nothing_and_need_no_place(make: Callable[[list[int], int], Any], tmp_path: Path) -> None:
    def step(asked: Asked) -> Step | None:
        return held(asyncio.Event()) if asked.prompt == "blocked" else None

    async def main() -> None:
        async with ChatServer(step) as server:
            lane = ms.Lane(MODEL, concurrency=1)
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path, lane)) as engine:
                async for _ in engine.run(calls(300)):
                    pass
                blocked = asyncio.create_task(engine.ask(ms.Call(MODEL, "blocked")))
                await until(lambda: server.in_flight == 1)
                outcomes = [outcome async for outcome in engine.run(make([], 300))]
                assert [outcome.call.tag for outcome in outcomes] == list(range(300))
                assert all(outcome.cached and outcome.attempts == 0 for outcome in outcomes)
                assert len(server.asked) == 301
                blocked.cancel()
                await asyncio.wait([blocked])

    asyncio.run(asyncio.wait_for(main(), 20))
