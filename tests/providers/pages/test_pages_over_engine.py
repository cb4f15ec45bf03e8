"""Pages through a whole engine and real sockets: lanes, cache, retries and workers together."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest
from loops import on_each_loop, run_on
from page_hosts import PAGE, http, serving
from raw_server import RawServer, Visit

import millstream as ms
from millstream.providers.pages.page import Page
from millstream.wiring import Settings

# The program's own workers.
pytestmark = pytest.mark.process

HTML = "Content-Type: text/html; charset=utf-8"


def settings(folder: Path, port: int, *lanes: ms.Lane) -> Settings:
    return Settings(cache=folder, lanes=lanes, allow_hosts=(f"*.example=127.0.0.1:{port}",))


@on_each_loop
def test_a_page_is_read_once_and_its_text_found_once(loop: str, tmp_path: Path) -> None:
    asked: list[str] = []
    pages = {
        "a.example/robots.txt": http(b"User-agent: *\nDisallow: /no\n"),
        "a.example/old": http(b"", "Location: http://b.example/new", status=301),
        "b.example/new": http(PAGE, HTML),
    }

    async def work() -> tuple[Page, Page, Page]:
        server = RawServer(serving(pages, asked))
        async with server, ms.Engine(settings=settings(tmp_path, server.port)) as engine:
            first = await engine.read("http://a.example/old")
            second = await engine.read("http://a.example/old")
            return first, second, await engine.read("http://a.example/no/x")

    first, second, forbidden = run_on(loop, work())
    assert (first.status, first.title, first.final_url) == ("ok", "A title", "http://b.example/new")
    assert first.text.startswith("Heading\n") and not first.cached and second.cached
    assert (second.text, second.keys, second.hash) == (first.text, first.keys, first.hash)
    assert len(set(first.keys)) == 4
    assert forbidden.status == "disallowed"
    assert asked == ["a.example/robots.txt", "a.example/old", "b.example/robots.txt", "b.example/new"]


def test_a_host_that_fails_once_is_asked_twice_and_one_that_goes_on_failing_no_more(tmp_path: Path) -> None:
    asked: list[str] = []
    broken = {"a.example/x", "b.example/x", "c.example/x"}
    pages = {"d.example/x": http(b"", "Retry-After: 500", status=503), "e.example/x": http(b"", status=500)}

    async def handle(visit: Visit) -> None:
        request = await visit.request()
        if request is None:
            return
        lines = request.decode().split("\r\n")
        place = lines[1][6:] + lines[0].split(" ")[1]
        asked.append(place)
        if place in broken:
            broken.remove(place)
            if place.startswith("a"):
                await visit.send(http(b"", status=502))
            elif place.startswith("b"):
                await visit.send(http(b"", "Retry-After: 1", status=429))
            return
        await visit.send(pages.get(place, http(PAGE, HTML) if place.endswith("/x") else http(status=404)))

    async def work() -> list[Page]:
        async with RawServer(handle) as server, ms.Engine(settings=settings(tmp_path, server.port)) as engine:
            return await asyncio.gather(*(engine.read(f"http://{host}.example/x") for host in "abcde"))

    pages_read = run_on("asyncio", work(), within_s=60)
    assert [page.status for page in pages_read] == ["ok", "ok", "ok", "blocked", "unreachable"]
    assert [asked.count(f"{host}.example/x") for host in "abcde"] == [2, 2, 2, 1, 2]


def test_the_pause_that_a_host_asks_for_is_kept_between_its_pages(tmp_path: Path) -> None:
    came: list[float] = []

    async def handle(visit: Visit) -> None:
        request = await visit.request()
        if request is None:
            return
        if request.startswith(b"GET /robots.txt "):
            await visit.send(http(b"User-agent: *\nCrawl-delay: 2\n"))
            return
        came.append(time.monotonic())
        await visit.send(http(PAGE + bytes(len(came)), HTML))

    async def work() -> list[Page]:
        async with RawServer(handle) as server:
            # A lane that would let everything go at once.
            lane = ms.Lane("web/a.example", rpm=6_000, concurrency=8)
            async with ms.Engine(settings=settings(tmp_path, server.port, lane)) as engine:
                return await asyncio.gather(*(engine.read(f"http://a.example/{number}") for number in range(3)))

    pages = run_on("asyncio", work(), within_s=60)
    assert [page.status for page in pages] == ["ok"] * 3 and len(came) == 3
    assert all(later - earlier > 1.9 for earlier, later in pairwise(came)), came


def test_the_lane_of_the_web_holds_the_pages_of_all_hosts_together(tmp_path: Path) -> None:
    present: set[Visit] = set()
    most = 0

    async def handle(visit: Visit) -> None:
        nonlocal most
        request = await visit.request()
        if request is None:
            return
        present.add(visit)
        most = max(most, len(present))
        await asyncio.sleep(0.1)
        present.remove(visit)
        await visit.send(http(PAGE, HTML) if request.startswith(b"GET /x ") else http(status=404))

    async def work() -> list[Page]:
        async with RawServer(handle) as server:
            lane = ms.Lane("web", concurrency=2)
            async with ms.Engine(settings=settings(tmp_path, server.port, lane)) as engine:
                return await asyncio.gather(*(engine.read(f"http://{host}.example/x") for host in "abcdef"))

    pages = run_on("asyncio", work(), within_s=60)
    assert [page.status for page in pages] == ["ok"] * 6 and most == 2
