"""The engine inside somebody's program: in any loop, beside anyone, leaving nothing behind and nothing changed."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import random
from collections.abc import Awaitable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from command_line import Provider
from loops import FACTORIES, on_each_loop, run_on
from recorder import recording

import millstream as ms
from millstream.fixtures.provider import ModelProvider, Options, parse_latency
from millstream.providers.transport.transport import KEEPALIVE_S

M = "openai/open"
CHAT = (
    b'{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
    b'{"role":"assistant","content":"A"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)


def calls(count: int, word: str = "") -> Iterator[ms.Call]:
    return (ms.Call(M, f"Is {number} prime?{word}", tag=number) for number in range(count))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))


# Loops


@on_each_loop
def test_it_works_in_any_loop_beside_other_sessions_of_aiohttp_and_leaves_no_task(
    loop: str, provider: Provider, tmp_path: Path
) -> None:
    async def main() -> None:
        tasks = asyncio.all_tasks()
        async with aiohttp.ClientSession() as session, ms.Engine(base_url=provider.base_url, cache=tmp_path) as engine:

            async def other() -> int:
                async with session.get(f"{provider.base_url}/models") as answer:
                    await answer.read()
                    return answer.status

            async def ours() -> int:
                return len([outcome async for outcome in engine.run(calls(200)) if outcome.status == "ok"])

            done, *statuses = await asyncio.gather(ours(), *(other() for _ in range(50)))
            assert done == 200 and set(statuses) == {200}
        assert asyncio.all_tasks() == tasks

    run_on(loop, main())


@pytest.mark.skipif(not hasattr(asyncio, "eager_task_factory"), reason="eager tasks came with Python 3.12")
@on_each_loop
def test_it_works_where_tasks_begin_at_once(loop: str, provider: Provider, tmp_path: Path) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(cast(Any, asyncio).eager_task_factory)
        async with ms.Engine(base_url=provider.base_url, cache=tmp_path) as engine:
            asked = asyncio.gather(*(engine.ask(call) for call in calls(50)))
            assert len([outcome async for outcome in engine.run(calls(300, " Now?"))]) == 300
            assert {outcome.status for outcome in await asked} == {"ok"}

    run_on(loop, main())


CELLS = (
    "import millstream as ms\nengine = await ms.Engine(base_url=base_url, cache=cache).__aenter__()",
    "outcome = await engine.ask(ms.Call('openai/open', 'A or B?'))\noutcome.status",
    "found = [outcome.status async for outcome in engine.run(ms.Call('openai/open', f'{n}?') for n in range(20))]",
    "with ms.SyncEngine(base_url=base_url, cache=cache) as blocking:\n    again = blocking.ask(outcome.call).cached",
    "await engine.__aexit__(None, None, None)",
    "async with ms.Engine(base_url=base_url, cache=cache) as it:\n    last = (await it.ask(outcome.call)).cached",
)


@on_each_loop
def test_it_works_in_the_cells_of_a_notebook(loop: str, provider: Provider, tmp_path: Path) -> None:
    """As notebooks do it: each cell is compiled with await allowed at its top, and run in the one loop there is."""
    names: dict[str, Any] = {"base_url": provider.base_url, "cache": tmp_path}

    async def notebook() -> None:
        for cell in CELLS:
            code = compile(cell, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            # Between two cells the loop does other things.
            await asyncio.sleep(0.01)
            ended = eval(code, names)
            if inspect.iscoroutine(ended):
                await asyncio.get_running_loop().create_task(ended)

    run_on(loop, notebook())
    assert (names["found"], names["again"], names["last"]) == (["ok"] * 20, True, True)


# Several engines


@on_each_loop
def test_three_engines_at_once_share_a_cache_or_have_their_own(loop: str, provider: Provider, tmp_path: Path) -> None:
    async def all_of(engine: ms.Engine) -> int:
        return len([outcome async for outcome in engine.run(calls(200)) if outcome.status == "ok"])

    async def main(*folders: str) -> int:
        made = [ms.Engine(base_url=provider.base_url, cache=tmp_path / folder) for folder in folders]
        one, two, three = made
        async with one, two, three:
            assert await asyncio.gather(*map(all_of, made)) == [200] * 3
            cached = [(await engine.ask(next(calls(1)))).cached for engine in made]
        assert cached == [True] * 3
        return provider.calls()

    run_on(loop, main("a", "b", "c"))
    assert provider.calls() == 600
    provider.reset()
    run_on(loop, main("same", "same", "same"))
    # What two engines of one process ask at the same moment is sent by both.
    assert 200 <= provider.calls() <= 600
    provider.reset()
    run_on(loop, main("same", "same", "same"))
    assert provider.calls() == 0


def test_an_engine_is_closed_and_opened_again_in_another_loop(provider: Provider, tmp_path: Path) -> None:
    engine = ms.Engine(base_url=provider.base_url, cache=tmp_path)

    async def main(word: str) -> list[bool]:
        async with engine:
            return [outcome.cached async for outcome in engine.run(calls(20, word))]

    found = [run_on(loop, main(word)) for word in ("", " Now?") for loop in sorted(FACTORIES)]
    assert found == [[False] * 20, [True] * 20] * 2


def test_engines_with_other_keys_and_addresses_do_not_mix(tmp_path: Path) -> None:
    async def main(*made: ms.Engine) -> None:
        one, other = made
        async with one, other:
            await asyncio.gather(*(engine.ask(call) for call in calls(20) for engine in (one, other)))

    with recording(CHAT) as first, recording(CHAT) as second:
        made = [
            ms.Engine(
                settings=ms.Settings(
                    base_url=server.base_url, cache=tmp_path, environment={"OPENAI_API_KEY": f"sk-{name}-0123456789"}
                )
            )
            for name, server in (("one", first), ("two", second))
        ]
        asyncio.run(main(*made))
        keys = [{sent.headers["authorization"] for sent in server.sent} for server in (first, second)]
        assert keys == [{"Bearer sk-one-0123456789"}, {"Bearer sk-two-0123456789"}]
        assert [len(server.sent) for server in (first, second)] == [20, 20]


# Backpressure, leaving, cancelling


@on_each_loop
def test_two_thousand_cancels_at_random_moments_leave_every_slot_and_file_as_it_was(loop: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    cut = 0

    async def cancelled(work: Awaitable[object], after_s: float) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.sleep(after_s)
        task.cancel()
        await asyncio.wait([task])
        nonlocal cut
        cut += task.cancelled()
        # Or it was quicker.
        assert task.cancelled() or task.exception() is None

    async def taken(engine: ms.Engine, number: int) -> None:
        async with aclosing(engine.run(calls(50, f" {number}"))) as outcomes:
            async for _ in outcomes:
                pass

    async def main() -> None:
        tasks = asyncio.all_tasks()
        options = Options(latency=parse_latency("uniform:0.0,0.02"))
        async with ModelProvider(options) as server:
            lane = ms.Lane(M, concurrency=32)
            async with ms.Engine(lane, base_url=server.base_url, cache=tmp_path) as engine:
                # So many that all its files are open.
                assert len([outcome async for outcome in engine.run(calls(200, " Warm?"))]) == 200
                await asyncio.sleep(KEEPALIVE_S + 0.5)
                before = descriptors()
                for round_number in range(10):
                    asks = (
                        cancelled(engine.ask(ms.Call(M, f"{chance.randrange(10_000)}?")), chance.uniform(0, 0.15))
                        for _ in range(190)
                    )
                    runs = (cancelled(taken(engine, number), chance.uniform(0, 0.15)) for number in range(10))
                    await asyncio.gather(*asks, *runs)
                    (found,) = engine.statistics().lanes
                    assert (found.in_flight, found.queued) == (0, 0), round_number
                # All slots are there again: as many as ever are taken at once.
                assert len([outcome async for outcome in engine.run(calls(200, " All?"))]) == 200
                # Idle connections are kept for the next call, on both sides of them, since the server lives here too.
                assert descriptors() <= before + 2 * 32
            await asyncio.sleep(0.1)
            assert descriptors() <= before
        assert asyncio.all_tasks() == tasks

    run_on(loop, main(), within_s=90)
    assert cut > 500
