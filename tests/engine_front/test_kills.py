"""A process that is killed, wherever its calls are: the next one pays for nothing again but what was in flight."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from chat_server import MODEL, ChatServer, held, settings_for, until
from dying_callers import killed, started

import millstream as ms

pytestmark = pytest.mark.process

COUNT = 12
PROMPTS = [f"prompt {number}" for number in range(COUNT)]


async def asked_again(server: ChatServer, folder: Path, prompts: list[str] = PROMPTS) -> list[ms.Outcome]:
    """The outcomes of the same calls in another process's engine, this one's."""
    async with ms.Engine(settings=settings_for(server.base_url, folder / "cache")) as engine:
        calls = [ms.Call(MODEL, prompt, max_tokens=20) for prompt in prompts]
        return [outcome async for outcome in engine.run(calls)]


def lines(folder: Path) -> list[str]:
    path = folder / "lines"
    return path.read_text().splitlines() if path.exists() else []


def scenario(check: Callable[[ChatServer], Awaitable[None]], server: ChatServer) -> None:
    async def main() -> None:
        async with server:
            await check(server)

    asyncio.run(asyncio.wait_for(main(), 40))


@pytest.mark.parametrize(
    ("place", "lost", "concurrency"),
    [
        # Only an answer that had come and was not stored is paid for again.
        ("paid", 1, 1),
        ("paid", 1, 4),
        ("write", 0, 1),
        ("write", 0, 4),
        ("flush", 0, 1),
        ("seen", 0, 4),
    ],
)
def test_what_was_stored_is_not_paid_for_again(place: str, lost: int, concurrency: int, tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        await killed(await started(server, tmp_path, place, COUNT, concurrency))
        sent, written = server.counts(), lines(tmp_path)
        assert len(set(written)) == len(written)
        if place == "seen":
            assert len(written) >= 3
        found = await asked_again(server, tmp_path)
        assert Counter(str(outcome.call.input) for outcome in found) == Counter(PROMPTS)
        assert {outcome.status for outcome in found} == {"ok"}
        # What a line says was answered is in the cache: the line is written after the commit.
        cached = {str(outcome.call.input) for outcome in found if outcome.cached}
        assert set(written) <= cached
        again = [prompt for prompt, times in server.counts().items() if times > 1]
        assert set(again) <= set(sent) - cached and max(server.counts().values()) <= 2
        # Of those in flight each may be asked again, and with one at a time no other.
        assert len(again) <= concurrency if concurrency > 1 else len(again) == lost

    scenario(check, ChatServer(latency_s=0.002))


def test_what_was_in_flight_is_asked_again_and_all_else_once(tmp_path: Path) -> None:
    never = asyncio.Event()
    stuck = ("prompt 3", "prompt 5")

    async def check(server: ChatServer) -> None:
        process = await started(server, tmp_path, "outside", COUNT, 4)
        await until(lambda: server.counts().total() == COUNT and server.in_flight == 2, 20)
        await until(lambda: len(lines(tmp_path)) == COUNT - 2)
        process.kill()
        await killed(process)
        await until(lambda: sorted(server.lost) == [*stuck], within_s=1.0)
        found = await asked_again(server, tmp_path)
        assert {str(outcome.call.input) for outcome in found if not outcome.cached} == set(stuck)
        assert server.counts() == {prompt: 2 if prompt in stuck else 1 for prompt in PROMPTS}

    scenario(check, ChatServer(lambda asked: held(never) if asked.prompt in stuck and asked.number == 1 else None))


def test_what_waited_for_its_quota_was_never_sent(tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        process = await started(server, tmp_path, "quota", COUNT, 4)
        await until(lambda: len(lines(tmp_path)) >= 1, 20)
        await asyncio.sleep(0.2)
        process.kill()
        await killed(process)
        sent = server.counts()
        assert sent.total() == len(lines(tmp_path)) < COUNT
        # The pace of the killed one still holds, so nothing is sent here.
        async with ms.Engine(settings=settings_for(server.base_url, tmp_path / "cache", mode="strict")) as engine:
            calls = [ms.Call(MODEL, prompt, max_tokens=20) for prompt in PROMPTS]
            found = {str(outcome.call.input): outcome.status async for outcome in engine.run(calls)}
        assert found == {prompt: "ok" if prompt in sent else "not_cached" for prompt in PROMPTS}

    scenario(check, ChatServer())


def test_a_process_killed_before_it_sends_leaves_nothing_that_anybody_waits_for(tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        server.ear.clear()  # connected, and what it writes is not read
        process = await started(server, tmp_path, "outside", COUNT, 4)
        await until(lambda: server.connections >= 1, 20)
        process.kill()
        await killed(process)
        server.ear.set()
        await until(lambda: server.open == 0)
        # What lay in the connections' buffers was written, and nobody can know that it is not worked on.
        before = server.counts()
        found = await asyncio.wait_for(asked_again(server, tmp_path), 10)
        assert [outcome.cached for outcome in found] == [False] * COUNT
        assert before.total() <= 4 and server.counts() - before == Counter(PROMPTS)

    scenario(check, ChatServer())


def test_a_third_process_goes_on_where_two_were_killed(tmp_path: Path) -> None:
    async def check(server: ChatServer) -> None:
        for place in ("write", "paid"):
            await killed(await started(server, tmp_path, place, COUNT, 1))
        found = await asked_again(server, tmp_path)
        assert len(found) == COUNT and {outcome.status for outcome in found} == {"ok"}
        # One answer had come and was not stored.
        assert sorted(server.counts().values()) == [1] * (COUNT - 1) + [2]

    scenario(check, ChatServer())
