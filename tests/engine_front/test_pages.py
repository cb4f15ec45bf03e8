"""Pages of many hosts among the calls of a run: each host has its own pace, and none holds up or ends the run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from chat_server import MODEL, QUICK, ChatServer, settings_for, until
from raw_server import RawServer, Visit, http
from virtual_time import run_with_sockets

import millstream as ms


class Fetched(NamedTuple):
    """One request for a page."""

    host: str
    path: str
    at: float


class Sites(RawServer):
    """All hosts `*.test`. `answers` gives the response for a page; None: a sound one. A page whose path begins with
    `/slow` is answered after that many seconds."""

    def __init__(self, answers: Callable[[Fetched], bytes | None] = lambda page: None) -> None:
        super().__init__(self._visited)
        self.answers = answers
        self.asked: list[Fetched] = []
        self.in_flight: dict[str, int] = defaultdict(int)
        self.peak: dict[str, int] = defaultdict(int)

    def settings(self, folder: Path, hosts: int, base_url: str = "http://127.0.0.1:1/v1", **more: Any) -> ms.Settings:
        """Settings of an engine that finds so many hosts here, and models elsewhere."""
        allowed = tuple(f"host-{number}.test=127.0.0.1:{self.port}" for number in range(hosts))
        return settings_for(base_url, folder, allow_hosts=allowed, **more)

    async def _visited(self, visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            lines = request.decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            page = Fetched(headers["host"], lines[0].split(" ")[1], asyncio.get_running_loop().time())
            self.asked.append(page)
            self.in_flight[page.host] += 1
            self.peak[page.host] = max(self.peak[page.host], self.in_flight[page.host])
            try:
                if page.path.startswith("/slow"):
                    await asyncio.sleep(float(page.path.split("/")[2]))
                await visit.send(self.answers(page) or http(f"<p>{page.host}{page.path}</p>".encode()))
            finally:
                self.in_flight[page.host] -= 1


def pages(hosts: int, each: int, path: str = "") -> Iterator[ms.Call]:
    """Every host's first page, then every host's second."""
    return (
        ms.Call("web", f"http://host-{host}.test{path}/{number}") for number in range(each) for host in range(hosts)
    )


def with_sites(
    sites: Sites, folder: Path, check: Callable[[ms.Engine], Awaitable[None]], hosts: int = 10, **more: Any
) -> None:
    async def main() -> None:
        async with sites, ms.Engine(settings=sites.settings(folder, hosts, **more)) as engine:
            await check(engine)
            assert engine.statistics().in_flight == 0

    run_with_sockets(main())


def test_each_host_has_its_pace_and_all_of_them_together_take_no_longer(tmp_path: Path) -> None:
    sites = Sites()

    async def check(engine: ms.Engine) -> None:
        outcomes = [outcome async for outcome in engine.run(pages(10, 5, "/slow/1.5"))]
        assert [outcome.status for outcome in outcomes] == ["ok"] * 50
        assert asyncio.get_running_loop().time() < 20

    with_sites(sites, tmp_path, check)
    starts = defaultdict(list)
    for page in sites.asked:
        starts[page.host].append(page.at)
    assert len(starts) == 10 and max(sites.peak.values()) == 2
    assert min(later - earlier for each in starts.values() for earlier, later in pairwise(each)) >= 0.9


def test_a_host_that_fails_fails_its_pages_and_nothing_else(tmp_path: Path) -> None:
    busy = http(b"later", status="503 Busy")
    sites = Sites(lambda page: busy if page.host == "host-3.test" else None)

    async def check(engine: ms.Engine) -> None:
        outcomes = [outcome async for outcome in engine.run(pages(5, 4))]
        failed = [outcome for outcome in outcomes if outcome.status != "ok"]
        assert len(outcomes) == 20 and len(failed) == 4
        assert {str(outcome.call.input).split("/")[2] for outcome in failed} == {"host-3.test"}

    with_sites(sites, tmp_path, check)
    # At most one repeat of each.
    assert sum(page.host == "host-3.test" for page in sites.asked) <= 8


def test_a_page_that_is_missing_stays_so_for_its_run_and_is_asked_for_by_the_next(tmp_path: Path) -> None:
    gone = http(b"no", status="404 Gone")
    (call,) = pages(1, 1)
    sends = 0
    for started, is_cached in ((1_000_000_000.0, False), (1_000_000_000.0, True), (None, False)):
        sites = Sites(lambda page: gone)

        async def check(engine: ms.Engine, is_cached: bool = is_cached) -> None:
            outcome = await engine.ask(call)
            assert (outcome.status, outcome.cached) == ("rejected", is_cached)

        with_sites(sites, tmp_path, check, run_started=started)
        sends += len(sites.asked)
    assert sends == 2


def test_models_and_pages_share_a_run(tmp_path: Path) -> None:
    sites = Sites()

    async def main() -> None:
        async with sites, ChatServer(latency_s=0.1) as server:
            made = sites.settings(tmp_path, 4, server.base_url, policy=QUICK)
            async with ms.Engine(settings=made) as engine:
                models = (ms.Call(MODEL, f"call {number}") for number in range(8))
                mixed = [call for pair in zip(pages(4, 2), models, strict=True) for call in pair]
                outcomes = [outcome async for outcome in engine.run(mixed)]
            assert {outcome.status for outcome in outcomes} == {"ok"} and len(outcomes) == 16
            # No model waits for a page's pace.
            assert {outcome.call.model for outcome in outcomes[:8]} >= {MODEL} and len(server.asked) == 8

    run_with_sockets(main())


def test_more_hosts_than_are_remembered_end_all_their_pages(tmp_path: Path) -> None:
    sites = Sites()

    async def check(engine: ms.Engine) -> None:
        outcomes = [outcome async for outcome in engine.run(pages(1_200, 1))]
        assert len({str(outcome.call.input) for outcome in outcomes if outcome.status == "ok"}) == 1_200
        assert engine.statistics().hosts <= 1_000

    with_sites(sites, tmp_path, check, hosts=1_200)


def test_who_leaves_a_page_frees_its_host(tmp_path: Path) -> None:
    sites = Sites()

    async def check(engine: ms.Engine) -> None:
        slow = ms.Call("web", "http://host-0.test/slow/15")
        for _ in range(3):
            task = asyncio.create_task(engine.ask(slow))
            await until(lambda: sites.in_flight["host-0.test"] > 0, within_s=9)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert engine.statistics().in_flight == 0
        async with aclosing(engine.run([*pages(1, 1), slow, slow])) as outcomes:
            assert (await anext(outcomes)).status == "ok"

    with_sites(sites, tmp_path, check)


def test_the_same_page_is_fetched_once_for_all_who_ask(tmp_path: Path) -> None:
    sites = Sites()

    async def check(engine: ms.Engine) -> None:
        (call,) = pages(1, 1, "/slow/1")
        outcomes = await asyncio.gather(*(engine.ask(call) for _ in range(20)))
        assert sum(not outcome.cached for outcome in outcomes) == 1
        assert (await engine.ask(call)).cached

    with_sites(sites, tmp_path, check)
    assert len(sites.asked) == 1


def test_a_halt_leaves_pages_pending(tmp_path: Path) -> None:
    sites = Sites()

    async def check(engine: ms.Engine) -> None:
        asyncio.get_running_loop().call_later(2.5, engine.halt, "interrupted", "enough")
        seen = []
        try:
            async for outcome in engine.run(pages(2, 50)):
                seen.append(outcome.status)
        except ms.Stopped as stopped:
            assert [stop.reason for stop in stopped.stops] == ["interrupted"]
        else:
            raise AssertionError("pages are left, and nobody says so")
        assert set(seen) == {"ok"} and 4 <= len(seen) <= 8

    with_sites(sites, tmp_path, check)
