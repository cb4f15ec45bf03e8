"""A fleet whose workers are engines in the test's own process: all that a cluster does but processes and a network.

A worker that dies answers nothing more: its calls end as if its process had gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from millstream.engine.attempts.money import CostBudget
from millstream.engine.fault import LocalFault
from millstream.engine.fleet.batches import Link, WorkerDied
from millstream.engine.fleet.driver import FleetScheduler
from millstream.engine.version import VERSION
from millstream.wiring.fleet import settings_of_one
from millstream.wiring.fleet_worker import CarryingEngine, FleetWorker
from millstream.wiring.settings import Settings


class LoopbackFleet:
    """Takes the place of `wiring.fleet.Fleet`. Workers have their folders by node: worker N lies on node N modulo
    `nodes`. `revives_most`: how many are started in place of dead ones."""

    nodes = 1
    delay_s = 0.0
    revives_most = 1000
    latest: LoopbackFleet

    def __init__(
        self, address: str, count: int | None, settings: Settings, build: Callable[..., CarryingEngine]
    ) -> None:
        self.build = build
        self.settings = settings
        self.count = count or 2
        self.links: list[LoopbackLink] = []
        self.forgets = False
        self.random = Random(7)
        type(self).latest = self

    def scheduler(self, budget: CostBudget, parts: dict[str, Any]) -> FleetScheduler:
        self._scheduler = FleetScheduler(
            **parts, budget=budget, is_shared=self.settings.server is not None, revive=self.revive
        )
        return self._scheduler

    async def open(self) -> None:
        for _ in range(self.count):
            self._scheduler.add(await self._start())

    async def revive(self, link: Link) -> Link | None:
        if len(self.links) >= self.count + self.revives_most:
            return None
        return await self._start()

    async def close(self) -> None:
        assert all(link.is_closed for link in self.links)

    async def _start(self) -> LoopbackLink:
        number = len(self.links)
        node = f"node {number % self.nodes}"
        folder = (self.settings.cache or Path()) / node
        worker = FleetWorker(self.build)
        plain = settings_of_one(self.settings, self.count)
        settings = structs.replace(plain, cache=folder, environment=self.settings.environment)
        hello = await worker.open(settings, VERSION)
        if hello.fault:
            raise LocalFault(hello.fault)
        link = LoopbackLink(self, worker, f"worker {number} on {node}", node)
        self.links.append(link)
        return link


class LoopbackLink:
    def __init__(self, fleet: LoopbackFleet, worker: FleetWorker, name: str, node: str) -> None:
        self.fleet, self.worker, self.name, self.node = fleet, worker, name, node
        self.is_closed = False
        self._died = False
        self._exchanges: set[asyncio.Task[bytes]] = set()

    async def exchange(self, given: bytes) -> bytes:
        if not self._died:
            await asyncio.sleep(self.fleet.random.random() * self.fleet.delay_s)
        if self._died:
            raise WorkerDied("killed")
        task = asyncio.ensure_future(self.worker.exchange(given))
        self._exchanges.add(task)
        await asyncio.wait((task,))
        self._exchanges.discard(task)
        if self._died:
            raise WorkerDied("killed")
        return task.result()

    async def close(self) -> None:
        self.is_closed = True
        await self.worker.close(forgets=self.fleet.forgets)

    async def kill(self) -> None:
        self._died = True
        for task in self._exchanges:
            task.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        await self.close()


@pytest.fixture
def loopback_fleet(monkeypatch: pytest.MonkeyPatch) -> type[LoopbackFleet]:
    from millstream.wiring import fleet

    class Fresh(LoopbackFleet):
        pass

    monkeypatch.setattr(fleet, "Fleet", Fresh)
    return Fresh
