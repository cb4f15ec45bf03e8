"""What calls do while the server of a shared cache is slow, away, started anew, or lost: they wait, and no answer that
was paid for is lost."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from chat_server import until
from machines import MODEL, SlowProxy, machine
from scripted import ScriptedProvider
from shared_server import FORGETTING, KEEPING, SharedServer

from millstream.engine.call import Call, Outcome
from millstream.engine.events import Event
from millstream.engine.fault import LocalFault, Stopped
from millstream.engine.run import run_calls

SAME = Call(MODEL, "same")
OTHER = Call(MODEL, "other")


def run(work: object, within_s: float = 50.0) -> None:
    asyncio.run(asyncio.wait_for(work, within_s))  # type: ignore[arg-type]


@pytest.mark.alone
def test_with_a_slow_server_calls_wait_longer_and_are_sent_as_many_at_once_as_before(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.1)
    calls = [Call(MODEL, f"prompt {number}") for number in range(60)]

    async def work() -> None:
        loop = asyncio.get_running_loop()
        async with SlowProxy(server.port, 0.1) as proxy:
            async with machine(proxy.address, tmp_path / "one", provider, concurrency=4) as first:
                began = loop.time()
                outcomes = [outcome async for outcome in run_calls(first.bench.scheduler, calls)]
                took_s = loop.time() - began
            assert len([outcome for outcome in outcomes if outcome.reply is not None]) == 60
            # 15 at once of 0.1 s each; every look-up takes 0.2 s, and is made ahead.
            assert took_s < 3.0
            assert provider.peak == 4
            async with machine(proxy.address, tmp_path / "two", provider, concurrency=4) as second:
                assert all([outcome.cached async for outcome in run_calls(second.bench.scheduler, calls)])

    with SharedServer(tmp_path / "server") as server:
        run(work())
    assert len(provider.arrivals) == 60


@pytest.mark.parametrize("options", [KEEPING, FORGETTING])
def test_while_the_server_is_away_calls_wait_and_answers_stay_here_until_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: tuple[str, ...]
) -> None:
    provider = ScriptedProvider(latency_s=0.3)
    events: list[Event] = []

    async def work() -> None:
        async with (
            machine(server.address, tmp_path / "one", provider) as first,
            machine(server.address, tmp_path / "two", provider) as second,
        ):
            first.bench.events.subscribe(events.append)
            in_flight = asyncio.create_task(first.ask(SAME))
            await until(lambda: provider.in_flight == 1)
            server.kill()
            waiting = [asyncio.create_task(each.ask(OTHER)) for each in (first, second)]
            assert (await in_flight).reply is not None
            await asyncio.sleep(1.5)
            assert provider.counts() == {"same": 1}
            await asyncio.to_thread(server.start)
            assert all(outcome.reply for outcome in await asyncio.gather(*waiting))
            await until(lambda: len(server.keys("*answer*")) == 2)
            assert (await second.ask(SAME)).cached

    with SharedServer(tmp_path / "server", *options) as server, caplog.at_level(logging.ERROR, "millstream"):
        run(work())
    assert provider.counts() == {"same": 1, "other": 1}
    assert "shared cache" in {event.detail for event in events if event.kind == "waited"}
    assert len(caplog.records) == 2  # one line of each machine


def test_a_server_that_forgets_learns_again_which_calls_are_being_sent(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=2.0)

    async def work() -> None:
        async with (
            machine(server.address, tmp_path / "one", provider) as first,
            machine(server.address, tmp_path / "two", provider) as second,
        ):
            in_flight = asyncio.create_task(first.ask(SAME))
            await until(lambda: provider.in_flight == 1)
            server.kill()
            await asyncio.to_thread(server.start)
            await until(lambda: len(server.keys("*lease*")) == 1)
            assert (await second.ask(SAME)).cached
            assert (await in_flight).reply is not None

    with SharedServer(tmp_path / "server") as server:
        run(work())
    assert provider.counts() == {"same": 1}


def test_a_server_that_stays_away_ends_the_run_with_what_was_in_flight_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider = ScriptedProvider(latency_s=0.2)
    calls = [Call(MODEL, f"prompt {number}") for number in range(400)]
    answered: list[Outcome] = []

    async def work() -> None:
        async with machine(
            server.address, tmp_path / "one", provider, patience_s=1.0, close_s=0.2, ended_s=1.0
        ) as first:

            async def collect() -> None:
                async for outcome in run_calls(first.bench.scheduler, calls):
                    answered.append(outcome)

            task = asyncio.create_task(collect())
            await until(lambda: provider.in_flight == 16)
            server.kill()
            with pytest.raises(LocalFault, match=r"has not answered for \d s .*: start its server, then resume"):
                await task
            with pytest.raises(Stopped, match="has not answered for"):
                await first.ask(OTHER)

    with SharedServer(tmp_path / "server", *KEEPING) as server, caplog.at_level(logging.WARNING, "millstream"):
        run(work())
        sent = len(provider.arrivals)
        assert len(answered) == sent >= 16
        texts = [record.getMessage() for record in caplog.records]
        assert f"{sent} answers are in this machine's cache alone" in texts[-1]
        # The same command goes on: nothing that was answered is sent again.
        server.start()

        async def again() -> None:
            async with machine(server.address, tmp_path / "one", provider, ended_s=1.0) as second:
                assert len([outcome async for outcome in run_calls(second.bench.scheduler, calls)]) == 400

        run(again())
    assert set(provider.counts().values()) == {1}
    assert len(provider.arrivals) == 400


def test_an_engine_that_closes_puts_first_what_is_on_its_way(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.01)
    calls = [Call(MODEL, f"prompt {number}") for number in range(300)]

    async def work() -> None:
        async with (
            SlowProxy(server.port, 0.05) as proxy,
            machine(proxy.address, tmp_path / "one", provider, concurrency=300) as first,
        ):
            async for _ in run_calls(first.bench.scheduler, calls):
                pass
        assert len(server.keys("*answer*")) == 300
        assert server.keys("*lease*") == server.keys("*engine*") == set()

    with SharedServer(tmp_path / "server") as server:
        run(work())


def test_a_caller_who_leaves_while_the_server_is_away_is_let_go_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with machine(server.address, tmp_path / "one", close_s=0.1) as first:
            server.kill()
            task = asyncio.create_task(first.ask(SAME))
            await asyncio.sleep(0.1)
            assert "waiting for the shared cache" in repr(first.bench.scheduler)
            task.cancel()
            began = asyncio.get_running_loop().time()
            await asyncio.gather(task, return_exceptions=True)
            assert asyncio.get_running_loop().time() - began < 1.0

    with SharedServer(tmp_path / "server") as server:
        run(work())
