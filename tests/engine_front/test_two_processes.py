"""Two processes on one cache: who asks second waits for the first one's answer, and takes over where there is none."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import COST, MODEL, PRICE, QUICK, ChatServer, Step, held, settings_for, status, text_to, until
from dying_callers import killed, started
from msgspec import structs

import millstream as ms

pytestmark = pytest.mark.process

CALL = ms.Call(MODEL, "prompt 0", max_tokens=20)
OTHER = ms.Call(MODEL, "other", max_tokens=20)


class Second:
    """An engine here, whose call waits for that of the process `first`, which is answered after `release`."""

    def __init__(
        self, engine: ms.Engine, server: ChatServer, first: asyncio.subprocess.Process, release: asyncio.Event
    ) -> None:
        self.engine = engine
        self.server = server
        self.first = first
        self.release = release
        self.asked: asyncio.Task[ms.Outcome] = asyncio.create_task(engine.ask(CALL))


def scenario(folder: Path, check: Callable[[Second], Awaitable[None]], first: Step | None = None, **more: Any) -> None:
    async def main() -> None:
        async with ChatServer() as server:
            made = settings_for(server.base_url, folder / "cache", ms.Lane(MODEL, concurrency=1), **more)
            release = asyncio.Event()
            server.script = lambda asked: first or held(release) if asked == server.asked[0] else None
            process = await started(server, folder, "outside", 1, 1)
            try:
                await until(lambda: server.in_flight == 1, 20)
                async with ms.Engine(settings=made) as engine:
                    second = Second(engine, server, process, release)
                    await asyncio.sleep(0.1)
                    assert not second.asked.done() and server.counts() == {"prompt 0": 1}
                    await check(second)
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()

    asyncio.run(asyncio.wait_for(main(), 40))


def test_who_waits_holds_no_place_and_gets_what_the_other_paid_for(tmp_path: Path) -> None:
    async def check(second: Second) -> None:
        # The lane has one place; a call that waits for another process does not have it.
        assert (await asyncio.wait_for(second.engine.ask(OTHER), 5)).status == "ok"
        assert second.engine.statistics().spent == COST and second.engine.statistics().reserved == 0
        second.release.set()
        outcome = await second.asked
        assert outcome.reply is not None and outcome.reply.text == text_to("prompt 0")
        assert (outcome.cached, outcome.attempts, outcome.cost) == (True, 0, 0.0)
        assert await second.first.wait() == 0
        assert second.server.counts() == {"prompt 0": 1, "other": 1}

    scenario(tmp_path, check, prices={MODEL: PRICE}, max_cost=1e6)


def test_who_waits_takes_over_from_a_process_that_is_killed(tmp_path: Path) -> None:
    async def check(second: Second) -> None:
        second.first.kill()
        await killed(second.first)
        outcome = await asyncio.wait_for(second.asked, 2)
        assert (outcome.status, outcome.cached, outcome.attempts) == ("ok", False, 1)
        assert second.server.counts() == {"prompt 0": 2} and second.server.lost == ["prompt 0"]

    scenario(tmp_path, check)


def test_who_waits_asks_itself_where_the_first_one_failed(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def refused(asked: Any) -> bool:
        await entered.wait()
        return await status(422)(asked)

    async def check(second: Second) -> None:
        entered.set()
        outcome = await asyncio.wait_for(second.asked, 5)
        assert (outcome.status, outcome.cached) == ("ok", False)
        assert second.server.counts() == {"prompt 0": 2}

    scenario(tmp_path, check, refused)


def test_a_process_that_stands_still_is_waited_for_no_longer_than_patience(tmp_path: Path) -> None:
    async def check(second: Second) -> None:
        second.first.send_signal(signal.SIGSTOP)
        try:
            outcome = await asyncio.wait_for(second.asked, 5)
        finally:
            second.first.send_signal(signal.SIGCONT)
        assert (outcome.status, outcome.cached) == ("ok", False)
        # It goes on, and its caller has an answer too.
        second.release.set()
        assert await asyncio.wait_for(second.first.wait(), 10) == 0
        assert (tmp_path / "lines").read_text() == "prompt 0\n"

    scenario(tmp_path, check, policy=structs.replace(QUICK, patience_s=0.5))


def test_who_waits_may_leave_and_the_other_goes_on(tmp_path: Path) -> None:
    async def check(second: Second) -> None:
        second.asked.cancel()
        await asyncio.wait([second.asked])
        assert second.asked.cancelled()
        second.release.set()
        assert await asyncio.wait_for(second.first.wait(), 10) == 0
        assert (await second.engine.ask(CALL)).cached and second.server.counts() == {"prompt 0": 1}

    scenario(tmp_path, check)


def test_two_that_run_the_same_calls_send_each_once(tmp_path: Path) -> None:
    prompts = [f"prompt {number}" for number in range(40)]

    async def main() -> None:
        async with ChatServer(latency_s=0.01) as server:
            process = await started(server, tmp_path, "outside", len(prompts), 2)
            await until(lambda: server.counts().total() > 2, 20)
            lane = ms.Lane(MODEL, concurrency=2)
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path / "cache", lane)) as engine:
                # From the other end: they meet in the middle.
                calls = [ms.Call(MODEL, prompt, max_tokens=20) for prompt in reversed(prompts)]
                found = [outcome async for outcome in engine.run(calls)]
            assert await asyncio.wait_for(process.wait(), 20) == 0
            assert Counter(str(outcome.call.input) for outcome in found) == Counter(prompts)
            assert {outcome.status for outcome in found} == {"ok"} and server.counts() == Counter(prompts)
            assert Counter((tmp_path / "lines").read_text().splitlines()) == Counter(prompts)

    asyncio.run(asyncio.wait_for(main(), 40))
