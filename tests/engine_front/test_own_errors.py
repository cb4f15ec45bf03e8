"""What goes wrong on this side: a full disk, a sink, the caller's own code, a closed engine. No answer that was
paid for is lost, and none is asked for again."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from chat_gateway import chat_gateway
from chat_server import COST, MODEL, PRICE, QUICK, ChatServer, held, settings_for, status, until
from gateways import files_of_at_most
from msgspec import structs

import millstream as ms

COUNT = 30


def calls(count: int = COUNT) -> Iterator[ms.Call]:
    return (ms.Call(MODEL, f"call {number}", max_tokens=20, tag=number) for number in range(count))


class Rows:
    """A sink. `refuse` is called with each outcome before it is taken; what was flushed is in `safe`."""

    def __init__(self, refuse: Callable[[ms.Outcome], None] = lambda outcome: None) -> None:
        self.fault: ms.LocalFault | None = None
        self.taken: list[int] = []
        self.safe: list[int] = []
        self._refuse = refuse

    def write(self, outcome: ms.Outcome) -> None:
        self._refuse(outcome)
        self.taken.append(outcome.call.tag)

    def flush(self) -> None:
        self.safe = list(self.taken)


class Fails:
    """Raises at an outcome of that number."""

    def __init__(self, number: int, error: BaseException) -> None:
        self._number = number
        self._error = error

    def __call__(self, outcome: ms.Outcome) -> None:
        if outcome.call.tag == self._number:
            raise self._error


async def check_whole(server: ChatServer, folder: Path, answered: set[int]) -> None:
    """A next engine has all calls answered, and asks none again that was answered."""
    before = server.counts()
    async with ms.Engine(settings=settings_for(server.base_url, folder)) as engine:
        outcomes = [outcome async for outcome in engine.run(calls())]
    assert {outcome.status for outcome in outcomes} == {"ok"} and len(outcomes) == COUNT
    asked_again = {int(prompt.split()[1]) for prompt in server.counts() - before}
    assert not asked_again & answered


def nothing_left(engine: ms.Engine) -> bool:
    statistics = engine.statistics()
    return (statistics.in_flight, statistics.reserved) == (0, 0.0)


# Sinks


@pytest.mark.parametrize("concurrency", [1, 8])
def test_each_outcome_is_safe_before_it_is_seen(concurrency: int, tmp_path: Path) -> None:
    async def main() -> None:
        sink = Rows()
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=concurrency))
            # At first they are sent, then they come from the store.
            for _ in range(2):
                async with ms.Engine(settings=made) as engine:
                    async for outcome in engine.run(calls(), sink):
                        assert outcome.call.tag in sink.safe
            assert sorted(sink.safe) == sorted([*range(COUNT)] * 2) and len(server.asked) == COUNT

    asyncio.run(asyncio.wait_for(main(), 20))


def test_failures_are_written_too(tmp_path: Path) -> None:
    async def main() -> None:
        sink = Rows()
        async with ChatServer(lambda asked: status(422) if asked.prompt == "call 3" else None) as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:
                outcomes = {outcome.call.tag: outcome.status async for outcome in engine.run(calls(6), sink)}
        assert outcomes == {number: "rejected" if number == 3 else "ok" for number in range(6)}
        assert sorted(sink.safe) == [*range(6)]

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_sink_that_raises_ends_its_run_and_no_answer_is_lost(is_stored: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=4), prices={MODEL: PRICE})
            async with ms.Engine(settings=made) as engine:
                if is_stored:
                    assert len([outcome async for outcome in engine.run(calls())]) == COUNT
                sink, seen = Rows(Fails(7, ValueError("no row"))), set[int]()
                with pytest.raises(ValueError, match="no row"):
                    async for outcome in engine.run(calls(), sink):
                        seen.add(outcome.call.tag)
                assert seen <= set(sink.safe) and 7 not in sink.taken
                await until(lambda: nothing_left(engine))
                # What was sent was finished and stored.
                sent = {int(prompt.split()[1]) for prompt in server.counts()}
                assert engine.statistics().spent == len(sent) * COST
                assert (await engine.ask(ms.Call(MODEL, "next"))).status == "ok"
            await check_whole(server, tmp_path, sent)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_sink_that_raises_takes_no_answer_from_another_run(tmp_path: Path) -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with ChatServer(lambda asked: held(release)) as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:

                async def ran(sink: Rows) -> list[int]:
                    return [outcome.call.tag async for outcome in engine.run(calls(5), sink)]

                bad, good = Rows(Fails(2, OSError("gone"))), Rows()
                tasks = [asyncio.create_task(ran(sink)) for sink in (bad, good)]
                await until(lambda: server.in_flight == 5)
                release.set()
                with pytest.raises(OSError, match="gone"):
                    await tasks[0]
                assert sorted(await tasks[1]) == sorted(good.safe) == [*range(5)]
                assert len(server.asked) == 5

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_sink_that_is_full_stops_sending_and_raises_its_fault(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=2))
            async with ms.Engine(settings=made) as engine:

                def fill(outcome: ms.Outcome) -> None:
                    if len(sink.taken) == 9:
                        sink.fault = ms.LocalFault("the disk is full: make room")

                sink = Rows(fill)
                with pytest.raises(ms.LocalFault, match="the disk is full"):
                    async for _ in engine.run(calls(), sink):
                        pass
                assert nothing_left(engine)
                sent = {int(prompt.split()[1]) for prompt in server.counts()}
                assert 9 <= len(sent) <= 9 + 2 + 1
                # Nothing more is sent, and the reason is told.
                with pytest.raises((ms.LocalFault, ms.Stopped), match="the disk is full"):
                    async for _ in engine.run(calls()):
                        pass
                assert len(server.asked) == len(sent)
            await check_whole(server, tmp_path, sent)

    asyncio.run(asyncio.wait_for(main(), 20))


# The store


def test_an_answer_that_can_not_be_stored_reaches_its_caller_and_the_sink(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=1))
            async with ms.Engine(settings=made) as engine:
                await engine.ask(ms.Call(MODEL, "before"))
                sink, seen = Rows(), []
                with files_of_at_most(8192), pytest.raises(ms.LocalFault, match="can't be written"):
                    async for outcome in engine.run(calls(), sink):
                        seen.append(outcome.call.tag)
                assert seen == sink.safe == [*range(len(server.asked) - 1)] and 1 <= len(seen) <= 2
                assert nothing_left(engine)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_who_asked_has_an_answer_that_can_not_be_stored(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer() as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:
                await engine.ask(ms.Call(MODEL, "before"))
                with files_of_at_most(8192):
                    assert (await engine.ask(ms.Call(MODEL, "call"))).status == "ok"
                    with pytest.raises(ms.Stopped, match="can't be written"):
                        await engine.ask(ms.Call(MODEL, "next"))
                assert nothing_left(engine) and server.counts() == {"before": 1, "call": 1}

    asyncio.run(asyncio.wait_for(main(), 20))


# Answers before they are stored


def test_a_gateways_answer_is_in_the_store_when_it_is_closed(tmp_path: Path) -> None:
    """A client has its answer before it is stored; closing waits for that, and the same asked meanwhile is not sent."""

    async def main() -> None:
        async with chat_gateway(tmp_path) as at:
            first = await at.ask("call")
            again = await asyncio.gather(*(at.ask("call") for _ in range(20)))
            assert not first.is_cached and all(answer.is_cached for answer in again)
            assert at.server.counts() == {"call": 1}
            assert (await at.ask("last")).status == 200
        async with chat_gateway(tmp_path) as at:
            assert (await at.ask("call")).is_cached and (await at.ask("last")).is_cached
            assert at.server.asked == []

    asyncio.run(asyncio.wait_for(main(), 20))


# The caller's own code


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("number", [0, 12])
def test_an_input_that_raises_is_raised_after_what_was_sent_before_it(
    number: int, is_async: bool, tmp_path: Path
) -> None:
    def broken() -> Iterator[ms.Call]:
        for call in calls():
            if call.tag == number:
                raise KeyError("no such row")
            yield call

    async def asynchronous() -> AsyncIterator[ms.Call]:
        for call in broken():
            yield call

    async def main() -> None:
        async with ChatServer(latency_s=0.005) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=4))
            async with ms.Engine(settings=made) as engine:
                seen, sink = [], Rows()
                with pytest.raises(KeyError, match="no such row"):
                    async for outcome in engine.run(asynchronous() if is_async else broken(), sink):
                        seen.append(outcome.call.tag)
                assert sorted(seen) == sorted(sink.safe) == [*range(number)] and len(server.asked) == number
                assert nothing_left(engine)
                assert (await engine.ask(ms.Call(MODEL, "next"))).status == "ok"
            await check_whole(server, tmp_path, set(range(number)))

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_consumer_that_raises_leaves_nothing_in_flight(is_closed: bool, tmp_path: Path) -> None:
    async def main() -> None:
        tasks, release = asyncio.all_tasks(), asyncio.Event()
        async with ChatServer(lambda asked: None if asked.prompt == "call 0" else held(release)) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=4))
            async with ms.Engine(settings=made) as engine:

                async def consume() -> None:
                    async with aclosing(engine.run(calls())) as outcomes:
                        async for _ in outcomes:
                            await until(lambda: server.in_flight == 4)
                            raise ZeroDivisionError

                async def careless() -> None:
                    async for _ in engine.run(calls()):
                        await until(lambda: server.in_flight == 4)
                        raise ZeroDivisionError

                with pytest.raises(ZeroDivisionError):
                    await (consume() if is_closed else careless())
                gc.collect()
                await until(lambda: server.in_flight == 0 and nothing_left(engine), within_s=1.0)
                release.set()
                assert len([outcome async for outcome in engine.run(calls())]) == COUNT
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks

    asyncio.run(asyncio.wait_for(main(), 20))


# A closed engine


def test_an_engine_closed_during_calls_tells_all_who_wait(tmp_path: Path) -> None:
    async def main() -> None:
        tasks = asyncio.all_tasks()
        async with ChatServer(lambda asked: held(asyncio.Event())) as server:
            engine = ms.Engine(settings=settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=2)))
            await engine.__aenter__()
            # Two are out, the others wait for a place.
            waiting = [asyncio.create_task(engine.ask(call)) for call in calls(5)]
            outcomes = engine.run(calls(10))
            running = asyncio.ensure_future(anext(outcomes))
            await until(lambda: server.in_flight == 2)
            await engine.__aexit__(None, None, None)
            for task in (*waiting, running):
                with pytest.raises(RuntimeError, match="the engine was closed"):
                    await task
            await until(lambda: server.in_flight == 0, within_s=1.0)
            with pytest.raises(RuntimeError, match="the engine is closed"):
                await engine.ask(ms.Call(MODEL, "next"))
        await asyncio.sleep(0)
        assert asyncio.all_tasks() - tasks == set()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_what_was_answered_before_it_was_closed_is_stored(tmp_path: Path) -> None:
    async def main() -> None:
        never = asyncio.Event()
        async with ChatServer(lambda asked: held(never) if asked.prompt == "call 9" else None) as server:
            engine = ms.Engine(settings=settings_for(server.base_url, tmp_path))
            await engine.__aenter__()
            answered = list[ms.Event]()
            engine.events.subscribe(lambda event: answered.append(event) if event.kind == "answered" else None)
            outcomes = engine.run(calls(10))
            # Nobody takes the other outcomes.
            await anext(outcomes)
            await until(lambda: len(answered) == 9 and server.in_flight == 1)
            await engine.__aexit__(None, None, None)
            with pytest.raises(RuntimeError, match="the engine was closed during a run"):
                async for _ in outcomes:
                    pass
            never.set()
            before = server.counts()
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path)) as other:
                again = [outcome async for outcome in other.run(calls(10))]
            assert len(again) == 10 and server.counts() - before == {"call 9": 1}

    asyncio.run(asyncio.wait_for(main(), 20))


def test_an_engine_is_closed_while_calls_back_off_or_wait_for_quota(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer(lambda asked: status(500)) as server:
            policy = structs.replace(QUICK, wait_min_s=60.0, wait_max_s=60.0, patience_s=600.0)
            engine = ms.Engine(settings=settings_for(server.base_url, tmp_path, ms.Lane(MODEL, rpm=1), policy=policy))
            await engine.__aenter__()
            waiting = [asyncio.create_task(engine.ask(call)) for call in calls(3)]
            await until(lambda: len(server.asked) == 1)
            await asyncio.sleep(0.05)
            await asyncio.wait_for(engine.__aexit__(None, None, None), 1)
            for task in waiting:
                with pytest.raises(RuntimeError, match="the engine was closed"):
                    await task

    asyncio.run(asyncio.wait_for(main(), 20))
