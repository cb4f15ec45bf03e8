"""The engine used from within what it calls: inputs, sinks, listeners and consumers that ask it again, or stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from chat_server import MODEL, ChatServer, Script, held, settings_for, until

import millstream as ms


def calls(count: int, word: str = "call") -> Iterator[ms.Call]:
    return (ms.Call(MODEL, f"{word} {number}", max_tokens=20, tag=number) for number in range(count))


def scenario(
    folder: Path,
    check: Callable[[ms.Engine, ChatServer], Awaitable[None]],
    script: Script = lambda asked: None,
    **more: Any,
) -> None:
    """Checks an engine whose lane has one place, so that who keeps it while it waits stands still."""

    async def main() -> None:
        tasks = asyncio.all_tasks()
        async with ChatServer(script) as server:
            made = settings_for(server.base_url, folder, ms.Lane(MODEL, concurrency=1), **more)
            async with ms.Engine(settings=made) as engine:
                await check(engine, server)
                assert (engine.statistics().in_flight, engine.statistics().lanes[0].queued) == (0, 0)
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks

    asyncio.run(asyncio.wait_for(main(), 15))


class Rows:
    """A sink that calls something with each outcome, or when it is flushed."""

    fault: ms.LocalFault | None = None

    def __init__(
        self,
        write: Callable[[ms.Outcome], object] = lambda outcome: None,
        flush: Callable[[], object] = lambda: None,
    ) -> None:
        self.write_hook, self.flush_hook = write, flush

    def write(self, outcome: ms.Outcome) -> None:
        self.write_hook(outcome)

    def flush(self) -> None:
        self.flush_hook()


# Asking again


def test_an_input_may_ask_the_engine_for_its_next_call(tmp_path: Path) -> None:
    async def following(engine: ms.Engine) -> AsyncIterator[ms.Call]:
        text = "begin"
        for number in range(10):
            outcome = await engine.ask(ms.Call(MODEL, f"after {text} {number}"))
            assert outcome.reply is not None
            text = outcome.reply.text[-8:]
            yield ms.Call(MODEL, text, tag=number)

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        assert [outcome.call.tag async for outcome in engine.run(following(engine))] == [*range(10)]
        assert len(server.asked) == 20

    scenario(tmp_path, check)


def test_a_consumer_may_ask_and_run_in_its_loop(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        async for outcome in engine.run(calls(5)):
            assert (await engine.ask(ms.Call(MODEL, f"more of {outcome.call.tag}"))).status == "ok"
            assert len([inner async for inner in engine.run(calls(3, f"inner {outcome.call.tag}"))]) == 3
        assert len(server.asked) == 5 * 5

    scenario(tmp_path, check)


def test_a_sink_and_a_listener_may_begin_calls(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        begun: list[asyncio.Task[ms.Outcome]] = []

        def begin(word: str) -> None:
            if len(begun) < 10:
                begun.append(asyncio.ensure_future(engine.ask(ms.Call(MODEL, f"{word} {len(begun)}"))))

        end = engine.events.subscribe(lambda event: begin("event") if event.kind == "answered" else None)
        sink = Rows(lambda outcome: begin("write"), lambda: begin("flush"))
        assert len([outcome async for outcome in engine.run(calls(5), sink)]) == 5
        assert {outcome.status for outcome in await asyncio.gather(*begun)} == {"ok"} and len(begun) == 10
        end()

    scenario(tmp_path, check)


def test_a_run_that_nobody_reads_holds_up_no_other(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        async with aclosing(engine.run(calls(100_000, "unread"))) as unread:
            await anext(unread)
            assert len([outcome async for outcome in engine.run(calls(20))]) == 20
            assert (await engine.ask(ms.Call(MODEL, "asked"))).status == "ok"

    scenario(tmp_path, check)


# Stopping


@pytest.mark.parametrize("place", ["answered", "sent", "spent"])
def test_a_listener_may_halt_the_engine(place: str, tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        def halt(event: ms.Event) -> None:
            if event.kind == place and len(server.asked) >= 3:
                engine.halt("interrupted", "a listener said so")

        engine.events.subscribe(halt)
        seen = []
        with pytest.raises(ms.Stopped, match="a listener said so"):
            async for outcome in engine.run(calls(50)):
                seen.append(outcome.status)
        # What was out is finished.
        assert set(seen) == {"ok"} and len(seen) == len(server.asked) <= 5

    price = ms.Price(1e5, 1e5)
    scenario(tmp_path, check, prices={MODEL: price}, max_cost=1e6)


def test_a_listener_that_leaves_in_mid_stream_leaves_nothing(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        tasks: list[asyncio.Task[ms.Outcome]] = []

        def hear(piece: str | None) -> None:
            tasks[0].cancel()

        tasks.append(asyncio.create_task(engine.ask(ms.Call(MODEL, "call", stream=True), hear=hear)))
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        assert (await engine.ask(ms.Call(MODEL, "next"))).status == "ok"

    scenario(tmp_path, check)


# Time limits and groups


def test_a_flush_that_raises_ends_its_run_after_what_was_sent(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        count = 0

        def flush() -> None:
            nonlocal count
            count += 1
            if count == 4:
                raise OSError("no room")

        with pytest.raises(OSError, match="no room"):
            async for _ in engine.run(calls(50), Rows(flush=flush)):
                pass
        sent = len(server.asked)
        assert sent < 50 and engine.statistics().in_flight == 0
        again = [outcome async for outcome in engine.run(calls(50))]
        # What was sent was paid for, and is stored.
        assert sum(outcome.cached for outcome in again) == sent and len(server.asked) == 50

    scenario(tmp_path, check)


def test_who_asks_in_the_instant_in_which_the_last_waiter_leaves_has_its_answer(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        first = asyncio.create_task(engine.ask(ms.Call(MODEL, "same")))
        await until(lambda: server.in_flight == 1)
        first.cancel()
        second = asyncio.create_task(engine.ask(ms.Call(MODEL, "same")))  # nobody cancels this one
        await asyncio.wait([first, second])
        assert first.cancelled() and second.result().status == "ok"

    scenario(tmp_path, check, lambda asked: held(release) if asked.number == 1 else None)
