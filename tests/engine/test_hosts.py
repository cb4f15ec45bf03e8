"""Pages queue by their hosts: each host's pace is its own, none stops a run, and hosts that rest are forgotten."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs
from scripted import Bench, ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call, Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.routes import FORGIVEN_S, HOSTS_KEPT
from millstream.engine.run import LOOK_AHEAD, PAGES_MAX, run_calls

BUSY = Fault("rate_limited", "429: a pause of 60 s", "throttle", 429, retry_after_s=60.0)


def host_of(url: str) -> str:
    return url.split("/")[2]


def pages(hosts: int, each: int) -> Iterator[Call]:
    """Every host's first page, then every host's second."""
    return (Call(WEB, f"http://host-{host}.example/{number}") for number in range(each) for host in range(hosts))


async def all_of(bench: Bench, calls: Iterator[Call] | AsyncIterator[Call]) -> list[Outcome]:
    return [outcome async for outcome in run_calls(bench.scheduler, calls)]


def starts_of(provider: ScriptedProvider) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for at, url in provider.arrivals:
        found[host_of(url)].append(at)
    return found


class HalfACharacter(ScriptedProvider):
    """What it answers can't be encoded, nor what it fails with."""

    async def send(self, request: Request, cleared: Cleared) -> Response:
        return structs.replace(await super().send(request, cleared), headers={"content-type": "text/\udcff"})


def test_what_can_not_be_stored_ends_no_run_and_is_asked_for_again(tmp_path: Path) -> None:
    refusing = Fault("rejected", "no \udcff page", "never", 404)
    provider = HalfACharacter(lambda prompt, _: refusing if prompt.endswith("/1") else None)

    async def main() -> list[Outcome]:
        async with engine_over({WEB: provider}, tmp_path) as bench:
            calls = [Call(WEB, f"http://a.example/{number}") for number in (0, 1, 0)]
            return [await bench.scheduler.ask(call) for call in calls]

    found = run_virtually(main())
    assert [outcome.status for outcome in found] == ["ok", "rejected", "ok"]
    assert len(provider.arrivals) == 3


# A pace each


def test_a_slow_host_with_many_pages_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.2)
    slow = [Call(WEB, f"http://slow.example/{number}") for number in range(LOOK_AHEAD - 1)]
    mixed = [*slow, *pages(500, 1)]

    async def main() -> None:
        async with engine_over({WEB: provider}, tmp_path) as bench:
            await all_of(bench, iter(mixed))

    run_virtually(main())
    others = [at for at, url in provider.arrivals if "slow" not in url]
    assert len(others) == 500 and max(others) < 2.0


def test_pages_of_many_hosts_are_read_ahead_up_to_a_number(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=1000.0)
    read = 0

    def counted() -> Iterator[Call]:
        nonlocal read
        for call in pages(2 * PAGES_MAX, 1):
            read += 1
            yield call

    async def main() -> None:
        async with engine_over({WEB: provider}, tmp_path) as bench:
            results = run_calls(bench.scheduler, counted())
            first = asyncio.create_task(anext(results))
            await asyncio.sleep(900)
            assert read == len(provider.arrivals) == PAGES_MAX
            await first
            await results.aclose()

    run_virtually(main())
    assert read <= 2 * PAGES_MAX


# No host stops a run


def test_a_host_that_was_given_up_is_tried_again_after_a_while(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda url, at: BUSY if at < 100 else None)

    async def main() -> list[str]:
        async with engine_over({WEB: provider}, tmp_path) as bench:
            said = []
            for number in range(8):
                said.append((await bench.scheduler.ask(Call(WEB, f"http://h.example/{number}"))).status)
                await asyncio.sleep(FORGIVEN_S / 4)
            return said

    assert run_virtually(main()) == ["rate_limited"] * 4 + ["ok"] * 4


# Hosts that rest are forgotten


def test_hosts_are_kept_up_to_a_number_and_a_pace_is_never_forgotten_too_soon(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.1)

    async def main() -> int:
        async with engine_over({WEB: provider}, tmp_path) as bench:
            most = 0
            for begin in range(0, 3 * HOSTS_KEPT, 250):
                urls = [f"http://h{n}.example/{k}" for n in range(begin, begin + 250) for k in (1, 2)]
                await asyncio.gather(*(bench.scheduler.ask(Call(WEB, url)) for url in urls))
                most = max(most, len(bench.scheduler.routes.hosts))
            return most

    assert run_virtually(main()) <= HOSTS_KEPT + 250, "those in use may stand beside"
    assert min(b - a for starts in starts_of(provider).values() for a, b in pairwise(starts)) >= 0.94


class Forgetful(ScriptedProvider):
    """Keeps no arrivals: their list would be the memory that is measured."""

    def __init__(self) -> None:
        super().__init__(latency_s=0.3)
        self.arrivals = deque(maxlen=1)  # type: ignore[assignment]


def held_after_a_run(folder: Path, hosts: int) -> int:
    """Bytes that a run over so many hosts leaves with an engine that stays open. (Not the most it ever held: virtual
    time runs on while a real disk commits, so that depends on the disk.)"""

    async def main() -> int:
        async with engine_over({WEB: Forgetful()}, folder) as bench:
            tracemalloc.start()
            count = 0
            async for _ in run_calls(bench.scheduler, pages(hosts, 1)):
                count += 1
            assert count == hosts
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return held

    return run_virtually(main())


@pytest.mark.long
def test_many_hosts_need_no_more_memory_than_few(tmp_path: Path) -> None:
    few, many = held_after_a_run(tmp_path / "few", 1_200), held_after_a_run(tmp_path / "many", 2_400)
    assert many < 1.25 * few, "twice the hosts"
