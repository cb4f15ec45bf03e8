"""One page costs no more than its limits, and the loop nothing: bombs, deep documents, fuzzed pages, all in workers."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from multiprocessing import active_children
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from fuzzed_pages import fuzzed
from loops import run_on
from msgspec import structs
from page_hosts import PAGE
from torture import record, times

from millstream.engine.call import PageResponse
from millstream.providers.pages.extraction import Extraction
from millstream.providers.pages.page import PageText
from millstream.providers.pages.robots_rules import RobotsVerdict
from millstream.providers.pages.workers import MEMORY_MAX, WorkerFault

# The program's own workers.
pytestmark = pytest.mark.process

T = TypeVar("T")
FUZZED = times(25, 500)
PAGE_S = 20.0


def page(body: bytes, content_type: str = "text/html", encoding: str = "") -> PageResponse:
    return PageResponse(200, content_type, encoding, None, body)


# In a small process of its own: a child counts as large as whoever began it, before it is anything else.
ALONE = """
import asyncio, resource, sys
import msgspec
from millstream.engine.call import PageResponse
from millstream.providers.pages.extraction import Extraction

async def work():
    hostile, sound = msgspec.json.decode(sys.stdin.buffer.read(), type=list[PageResponse])
    at = Extraction(1, timeout_s=3.0)
    try:
        return [await at.extract(hostile), await at.extract(sound)]
    finally:
        await at.close()

found = asyncio.run(work())
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(msgspec.json.encode([found, used if sys.platform == "darwin" else used << 10]).decode())
"""


def extracted_alone(hostile: PageResponse) -> tuple[PageText, PageText, int]:
    """What came of it and of a sound page behind it, and the most memory in bytes that any worker used."""
    given = msgspec.json.encode([hostile, page(PAGE)])
    done = subprocess.run([sys.executable, "-P", "-c", ALONE], input=given, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    (first, second), used = msgspec.json.decode(done.stdout, type=tuple[list[PageText], int])
    return first, second, used


@asynccontextmanager
async def extraction(workers: int = 2, timeout_s: float = 8.0) -> AsyncIterator[Extraction]:
    opened = Extraction(workers, timeout_s=timeout_s)
    try:
        yield opened
    finally:
        await opened.close()


def extracted(fetched: PageResponse, timeout_s: float = 8.0) -> PageText:
    async def work() -> PageText:
        async with extraction(1, timeout_s) as at:
            began = time.monotonic()
            found = await at.extract(fetched)
            assert time.monotonic() - began < PAGE_S
            # The next page is read as if nothing had been.
            assert (await at.extract(page(PAGE))).status == "ok"
            return found

    return run_on("asyncio", work(), within_s=100)


async def beside(work: Awaitable[T]) -> tuple[T, float]:
    """What came of it, and the longest that the loop stood still meanwhile."""
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            worst = max(worst, loop.time() - before - 0.005)

    watching = asyncio.create_task(watch())
    try:
        return await work, worst
    finally:
        watching.cancel()


# Large pages are made by whoever reads one, not by every process that reads this module.
def attributes() -> bytes:
    return b"<html><body><p " + b" ".join(b"a%d=1" % number for number in range(150_000)) + b">x</p></body></html>"


def links() -> bytes:
    return b"<html><body><article>" + b"<a href='/x'>a link</a> " * 200_000 + b"</article></body></html>"


def bomb() -> bytes:
    return gzip.compress(bytes(200 << 20))


HOSTILE: dict[str, tuple[Callable[[], PageResponse], set[str]]] = {
    "attributes": (lambda: page(attributes()), {"timeout"}),
    "unclosed": (lambda: page(b"<html><body>" + b"<div>" * 900_000 + b"the end"), {"ok", "timeout"}),
    "links": (lambda: page(links()), {"ok", "too_large", "timeout"}),
    "rows": (
        lambda: page(b"<html><body><table>" + b"<tr><td>a cell<td>another" * 180_000 + b"</table></body></html>"),
        {"ok", "too_large", "timeout"},
    ),
    "bomb": (lambda: page(bomb(), encoding="gzip"), {"too_large"}),
    "bomb-in-bomb": (lambda: page(gzip.compress(bomb()), encoding="gzip"), {"too_large"}),
    "bold": (lambda: page(b"<html>" + b"<b>" * 1_500_000), {"empty", "timeout"}),
    "ampersands": (lambda: page(b"&" * (5 << 20)), {"ok", "timeout", "too_large"}),
    "comments": (lambda: page(b"<!--" * (1 << 20)), {"empty", "ok", "timeout"}),
    "pdf": (lambda: page(b"%PDF-1.7\n" + os.urandom(1 << 20)), {"not_text"}),
}


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_ends_within_its_limits(name: str) -> None:
    made, statuses = HOSTILE[name]
    hostile = made()
    began = time.monotonic()
    found, next_one, used = extracted_alone(hostile)
    assert time.monotonic() - began < PAGE_S
    assert found.status in statuses, found.status
    assert bool(found.text) == (found.status == "ok") and (found.text or found.detail)
    assert next_one.status == "ok"
    assert used <= MEMORY_MAX


def test_what_is_not_done_in_time_says_so() -> None:
    found = extracted(page(attributes()), timeout_s=1.0)
    assert found == PageText("timeout", detail="its text was not found within 1 s")


def test_a_process_that_is_ended_from_outside_decides_nothing_about_its_page() -> None:
    async def work() -> PageText:
        before = set(active_children())
        async with extraction(1, 20.0) as at:
            await at.start()
            (process,) = set(active_children()) - before
            body = b"<html><body>" + b"<p>Some words of a long text.</p>" * 20_000 + b"</body></html>"
            task = asyncio.create_task(at.extract(page(body)))
            await asyncio.sleep(0.2)
            process.kill()
            return await task

    assert run_on("asyncio", work(), within_s=60).status == "ok"


@pytest.mark.long
@pytest.mark.parametrize("name", ["lxml_html_clean", "trafilatura", "pypdfium2", "justext", "lxml"])
def test_an_environment_without_a_parser_has_no_verdict_about_any_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('hidden by the test', name={name!r})")
    monkeypatch.syspath_prepend(str(tmp_path))

    async def work() -> None:
        async with extraction(1) as at:
            await at.extract(page(PAGE))

    wanted = f"no process that reads pages can be started: {name} is missing: pip install {name}, or install Millstream"
    with pytest.raises(WorkerFault, match=re.escape(wanted)):
        run_on("asyncio", work())


def test_what_needs_too_much_memory_says_so() -> None:
    async def work() -> PageText:
        at = Extraction(1, memory_max=96 << 20)
        try:
            return await at.extract(page(links()))
        finally:
            await at.close()

    found = run_on("asyncio", work(), within_s=60)
    assert found == PageText("too_large", detail="to find its text: it needs more than 96 MiB")


def test_no_fuzzed_page_is_fatal_slow_or_large_and_the_loop_goes_on() -> None:
    async def work() -> tuple[dict[str, int], float, float]:
        counts: dict[str, int] = {}
        slowest = 0.0
        pages = iter([(seed, page(*fuzzed(seed))) for seed in range(FUZZED)])
        async with extraction() as at:

            async def some() -> None:
                nonlocal slowest
                for seed, one in pages:
                    began = time.monotonic()
                    found = await at.extract(one)
                    slowest = max(slowest, time.monotonic() - began)
                    assert (found.status == "ok") == bool(found.text) and (found.text or found.detail), seed
                    counts[found.status] = counts.get(found.status, 0) + 1

            # Warm first: what is measured is pages, not the start of processes.
            await at.extract(page(PAGE))
            _, lag = await beside(asyncio.wait_for(asyncio.gather(some(), some()), 110))
        return counts, slowest, lag

    counts, slowest, lag = run_on("asyncio", work(), within_s=FUZZED * 5 + 60)
    print(f"\n{FUZZED} fuzzed pages: {counts}, the slowest {slowest:.2f} s")
    print(f"the loop stood still for {lag * 1000:.0f} ms at most")
    assert sum(counts.values()) == FUZZED and counts.get("ok", 0) > FUZZED // 4
    assert slowest < PAGE_S
    assert lag < 0.5
    record(
        "13",
        FUZZED,
        FUZZED,
        f"slowest page {slowest:.2f} s, the loop stood still for {lag * 1000:.0f} ms",
        f"0-{FUZZED - 1}",
    )


@pytest.mark.long
def test_large_pages_do_not_hold_up_the_loop() -> None:
    async def work() -> float:
        async with extraction(timeout_s=30.0) as at:
            await asyncio.gather(at.extract(page(PAGE)), at.extract(page(PAGE)))
            body = b"<html><body>" + b"<p>Some words of a long text.</p>" * 30_000 + b"</body></html>"
            padded = [page(body + b"<!--" + bytes(4 << 20) + b"%d-->" % number) for number in range(4)]
            found, lag = await beside(asyncio.gather(*(at.extract(one) for one in padded)))
            assert [one.status for one in found] == ["ok"] * 4
            return lag

    lag = run_on("asyncio", work(), within_s=90)
    print(f"loop lag {lag * 1000:.0f} ms")
    assert lag < 0.5


def test_rules_for_robots_are_read() -> None:
    cases = (
        (b"User-agent: *\nDisallow: /no", "/no/x", RobotsVerdict(False)),
        (b"User-agent: *\nDisallow: /no", "/yes", RobotsVerdict(True)),
        (b"User-agent: *\nDisallow: /\nAllow: /open", "/open/x", RobotsVerdict(True)),
        (b"User-agent: millstream\nDisallow:\n\nUser-agent: *\nDisallow: /", "/x", RobotsVerdict(True)),
        (b"User-agent: Millstream\nDisallow: /\n\nUser-agent: *\nAllow: /", "/x", RobotsVerdict(False)),
        (b"User-agent: millstone\nDisallow: /", "/x", RobotsVerdict(True)),
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /*.pdf$", "/a.pdf", RobotsVerdict(False)),
        (b"User-agent: *\nDisallow: /*.pdf$", "/a.pdf?x", RobotsVerdict(True)),
        (b"User-agent: *\nCrawl-delay: 4.5\n", "/", RobotsVerdict(True, 4.5)),
        (b"<html>Not found, but 200</html>", "/", RobotsVerdict(True)),
        (b"\xff\xfe\0\x01", "/", RobotsVerdict(True)),
        (gzip.compress(b"User-agent: *\nDisallow: /", mtime=0), "/", RobotsVerdict(True)),
        (b"#" * (600 << 10) + b"\nUser-agent: *\nDisallow: /", "/", RobotsVerdict(True)),
    )

    async def work() -> list[RobotsVerdict]:
        async with extraction(1) as at:
            return [
                await at.judge(page(robots, "text/plain"), f"https://example.com{path}") for robots, path, _ in cases
            ]

    found = run_on("asyncio", work())
    assert all(0 < verdict.took_s < 2.0 for verdict in found)
    told = [
        (robots[:80], path, structs.replace(one, took_s=0.0))
        for (robots, path, _), one in zip(cases, found, strict=True)
    ]
    assert told == [(robots[:80], path, verdict) for robots, path, verdict in cases]


def test_rules_that_are_compressed_are_read_and_hostile_ones_forbid_everything_and_say_why() -> None:
    hostile = b"".join(b"User-agent: a%d\n" % number for number in range(20_000)) + b"Disallow: /x\n" * 15_000

    async def work() -> tuple[RobotsVerdict, RobotsVerdict]:
        async with extraction(1) as at:
            told = gzip.compress(b"User-agent: *\nDisallow: /no")
            first = await at.judge(PageResponse(200, "text/plain", "gzip", None, told), "https://example.com/no")
            return structs.replace(first, took_s=0.0), await at.judge(page(hostile), "https://example.com/")

    lack = "to be parsed: not done within 2 s"
    assert run_on("asyncio", work()) == (RobotsVerdict(False), RobotsVerdict(False, lack=lack))
