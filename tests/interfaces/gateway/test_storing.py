"""What lies between an answer and its commit: clients do not wait for the disk, and nothing is lost or asked twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateways import Both, files_of_at_most, gateway, post, question, until

from millstream.engine.store.cache import Cache


@contextmanager
def busy_disk(cache: Cache) -> Iterator[None]:
    """Nothing is committed while it lasts: somebody else is writing."""
    is_held, is_over = threading.Event(), threading.Event()

    def pieces() -> Iterator[tuple[bytes, bytes, bytes]]:
        is_held.set()
        is_over.wait(20)
        yield from ()

    other = threading.Thread(target=lambda: cache.add(pieces()))
    other.start()
    try:
        assert is_held.wait(20)
        yield
    finally:
        is_over.set()
        other.join()


def cache_of(both: Both) -> Cache:
    return both.running.engine.scheduler.cache


def test_an_answer_goes_out_before_it_is_stored_and_closing_waits_for_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            with busy_disk(cache_of(both)):
                answers = [await post(both.port, question(str(number))) for number in range(3)]
                assert [answer.status for answer in answers] == [200] * 3
                assert both.running.engine.scheduler.under_way == 3
            assert not any(answer.is_cached for answer in answers)
        async with gateway(tmp_path) as both:
            again = [await post(both.port, question(str(number))) for number in range(3)]
            assert all(answer.is_cached for answer in again) and both.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_who_asks_between_an_answer_and_its_commit_gets_the_same(tmp_path: Path, is_streamed: bool) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            with busy_disk(cache_of(both)):
                first = await post(both.port, question(), X_Millstream_Trial="0")
                body = question(stream=is_streamed)
                second = await post(both.port, body, X_Millstream_Trial="0")
                assert (first.is_cached, second.is_cached, both.calls) == (False, True, 1)
                assert first.headers["x-millstream-key"] == second.headers["x-millstream-key"]
                if not is_streamed:
                    said = [answer.json["choices"] for answer in (first, second)]
                    assert said[0] == said[1] and second.headers["x-millstream-cost"] == "0"
            await until(lambda: both.running.engine.scheduler.under_way == 0)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_an_answer_that_can_not_be_stored_still_stops_what_would_be_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            with files_of_at_most(8_192):
                assert (await post(both.port, question("first"))).status == 200
                await until(lambda: both.running.engine.scheduler.routes.halted is not None)
                refused = await post(both.port, question("second"))
                assert (refused.status, both.calls) == (500, 1)
                assert "can't be written" in refused.json["error"]["message"]

    asyncio.run(asyncio.wait_for(scenario(), 30))
