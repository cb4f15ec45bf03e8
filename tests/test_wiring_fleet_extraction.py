"""Pages of a fleet: their texts are found by workers, or by the driver where none is left."""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from typing import Any

import pytest

from millstream.engine.call import PageResponse
from millstream.engine.fault import LocalFault
from millstream.engine.fleet.batches import WorkerDied
from millstream.engine.fleet.given import FleetWorker
from millstream.providers.pages.extraction import Extraction
from millstream.wiring import fleet_worker
from millstream.wiring.fleet_extraction import FleetExtraction

pytestmark = pytest.mark.process

SENTENCE = "The council decided on Tuesday that the bridge is to be closed for repairs until the end of next year. "
HTML = f"<html><body><article><h1>The bridge</h1><p>{SENTENCE * 8}</p></article></body></html>".encode()
PAGE = PageResponse(200, "text/html", "", None, HTML)


class WorkerLink:
    """The way to a worker in this process."""

    node = "here"

    def __init__(self, name: str, *, dies: bool = False) -> None:
        self.name, self.dies = name, dies
        self.worker = fleet_worker.FleetWorker(lambda **_: pytest.fail("no call is carried"))
        self.asked = Counter[str]()

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        self.asked[method] += 1
        if self.dies:
            raise WorkerDied("killed")
        try:
            return await getattr(self.worker, method)(*arguments, **options)
        except LocalFault as fault:
            raise LocalFault(f"{self.name} {fault}") from None

    def send(self, given: bytes) -> None:
        raise AssertionError(given)

    async def receive(self) -> bytes:
        raise AssertionError

    async def close(self) -> None:
        await self.worker.close(forgets=False)


async def text_of(links: list[WorkerLink], pages: int = 1) -> list[str]:
    extraction = FleetExtraction([FleetWorker(link) for link in links])
    try:
        found = await asyncio.gather(*(extraction.extract(PAGE) for _ in range(pages)))
    finally:
        await extraction.close()
        await asyncio.gather(*(link.close() for link in links))
    return [each.text for each in found]


async def plain_text() -> str:
    extraction = Extraction()
    try:
        return (await extraction.extract(PAGE)).text
    finally:
        await extraction.close()


def test_workers_share_the_pages_and_find_the_text_that_the_driver_finds() -> None:
    async def main() -> None:
        links = [WorkerLink("worker 1"), WorkerLink("worker 2")]
        plain = await plain_text()
        assert SENTENCE.strip() in plain
        assert await text_of(links, pages=6) == [plain] * 6
        assert [link.asked["extract"] for link in links] == [3, 3]

    asyncio.run(main())


def test_a_page_of_a_worker_that_dies_is_read_by_another_or_by_the_driver() -> None:
    async def main() -> None:
        plain, links = await plain_text(), [WorkerLink("worker 1", dies=True), WorkerLink("worker 2")]
        assert await text_of(links, pages=2) == [plain] * 2
        dead = [WorkerLink(f"worker {number}", dies=True) for number in range(3)]
        assert await text_of(dead) == [plain]
        assert sum(link.asked["extract"] for link in dead) == 2
        assert await text_of([]) == [plain]

    asyncio.run(main())


def test_a_worker_with_other_parsers_is_named_in_one_line() -> None:
    async def main() -> None:
        extraction, link = FleetExtraction([]), WorkerLink("worker 1")
        extraction.version = "another"
        extraction._readers.append(FleetWorker(link))
        with pytest.raises(
            LocalFault, match=r"^worker 1 on \S+ can't read pages: it has the parsers .* the driver another"
        ):
            await extraction.extract(PAGE)
        await link.close()

    asyncio.run(main())


def test_a_worker_whose_machine_can_not_read_pages_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Extraction, fetched: PageResponse) -> None:
        raise LocalFault(f"no parser for {fetched.content_type}")

    async def main() -> None:
        link = WorkerLink("worker 1")
        with monkeypatch.context() as patch, pytest.raises(LocalFault) as fault:
            patch.setattr(Extraction, "extract", broken)
            await link.ask("extract", PAGE, Extraction().version)
        assert str(fault.value) == f"worker 1 on {platform.node()} can't read pages: no parser for text/html"
        await link.close()

    asyncio.run(main())
