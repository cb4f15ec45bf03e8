"""A fleet whose workers are engines in the test's own process: all that a cluster does but processes and a network.

A worker that dies answers nothing more: its calls end as if its process had gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from millstream.engine.attempts.money import CostBudget
from millstream.engine.fault import LocalFault
from millstream.engine.fleet.batches import CallLink, WorkerDied
from millstream.engine.fleet.driver import FleetScheduler
from millstream.engine.fleet.given import FleetWorker as CallWorker
from millstream.engine.shared.owner import Exchange
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
    no_room: Exception = LocalFault("no room for another worker")
    quota_owner: Exchange | None = None
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
            **parts, budget=budget, is_shared=self.settings.server is not None, revive=self._revive
        )
        return self._scheduler

    @property
    def workers(self) -> list[CallWorker]:
        return self._scheduler.workers

    async def open(self) -> None:
        for _ in range(self.count):
            self._scheduler.add(await self._start())

    async def _revive(self) -> CallLink:
        if len(self.links) >= self.count + self.revives_most:
            raise self.no_room
        return await self._start()

    async def close(self) -> None:
        assert all(link.is_closed for link in self.links)

    async def _start(self) -> LoopbackLink:
        number = len(self.links)
        node = f"node {number % self.nodes}"
        folder = (self.settings.cache or Path()) / node
        worker = FleetWorker(self.build)
        plain = settings_of_one(self.settings, self.count, self.quota_owner)
        settings = structs.replace(plain, cache=folder, environment=self.settings.environment)
        await worker.open(settings, VERSION)
        link = LoopbackLink(self, worker, f"worker {number} on {node}", node)
        self.links.append(link)
        return link


class LoopbackLink:
    def __init__(self, fleet: LoopbackFleet, worker: FleetWorker, name: str, node: str) -> None:
        self.fleet, self.worker, self.name, self.node = fleet, worker, name, node
        self.is_closed = False
        self._died = False
        self._given: asyncio.Queue[bytes] = asyncio.Queue()
        self._steps: set[asyncio.Task[Any]] = {asyncio.ensure_future(self._deliver())}

    def send(self, given: bytes) -> None:
        self._given.put_nowait(given)

    async def _deliver(self) -> None:
        while True:
            given = await self._given.get()
            await self._pass()
            await self.worker.carrier.receive(given)

    async def receive(self) -> bytes:
        taken: bytes = await self._alive(self.worker.carrier.taken())
        await self._pass()
        if self._died:
            raise WorkerDied("killed")
        return taken

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        await self._pass()
        return await self._alive(getattr(self.worker, method)(*arguments, **options))

    async def _pass(self) -> None:
        await asyncio.sleep(self.fleet.random.random() * self.fleet.delay_s)

    async def _alive(self, steps: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.ensure_future(steps)
        self._steps.add(task)
        if self._died:
            task.cancel()
        await asyncio.wait((task,))
        self._steps.discard(task)
        if self._died:
            raise WorkerDied("killed")
        return task.result()

    async def close(self) -> None:
        self.is_closed = True
        for task in self._steps:
            task.cancel()
        await asyncio.gather(*self._steps, return_exceptions=True)
        await self.worker.close(forgets=self.fleet.forgets)

    async def kill(self) -> None:
        self._died = True
        await self.close()


@pytest.fixture
def loopback_fleet(monkeypatch: pytest.MonkeyPatch) -> type[LoopbackFleet]:
    from millstream.wiring import fleet

    class Fresh(LoopbackFleet):
        pass

    monkeypatch.setattr(fleet, "Fleet", Fresh)
    return Fresh
