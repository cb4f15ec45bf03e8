"""Finds the texts of pages in the workers of a fleet, where the cores are; robots.txt is judged by the driver."""

from __future__ import annotations

from collections import Counter

from ..engine.call import PageResponse
from ..engine.fleet.batches import Link, WorkerDied
from ..engine.fleet.given import FleetWorker
from ..providers.pages.extraction import Extraction
from ..providers.pages.page import PageText

# A page whose workers die is read by the driver itself.
_WORKERS_TRIED = 2


class FleetExtraction(Extraction):
    """Extraction by `workers`, a list that changes as they die and join: the one with the fewest pages takes the
    next."""

    def __init__(self, workers: list[FleetWorker]) -> None:
        super().__init__()
        self._readers = workers
        self._pages = Counter[Link]()

    async def extract(self, fetched: PageResponse) -> PageText:
        """Does what `Extraction.extract` says."""
        for _ in range(_WORKERS_TRIED):
            links = [worker.link for worker in self._readers if worker.is_alive]
            if not links:
                break
            link = min(links, key=self._pages.__getitem__)
            self._pages[link] += 1
            try:
                text: PageText = await link.ask("extract", fetched, self.version)
            except WorkerDied:
                continue
            finally:
                self._pages[link] -= 1
            return text
        return await super().extract(fetched)
