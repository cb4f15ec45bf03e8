"""A fleet on a Ray cluster: its workers, started as actors, each in a process of its own, and the links to them.

Owns how many there are and where. The one module that imports Ray, and only when a fleet is opened.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from msgspec import structs

from ..engine.attempts.money import CostBudget
from ..engine.fault import LocalFault
from ..engine.fleet.batches import Link, WorkerDied
from ..engine.fleet.driver import FleetScheduler
from ..engine.lane import Lane
from ..engine.missing import missing_text
from ..engine.remarks import remark
from ..engine.version import VERSION
from .fleet_worker import CarryingEngine, FleetWorker, Hello
from .settings import Settings

LOCAL = "local"
# A worker waits for answers most of its time, and the driver needs a core too.
_CORES_EACH = 0.9
# Two exchanges at once, one of them waiting, and some that are late.
_EXCHANGES_AT_ONCE = 16
# A cluster that has room starts a worker within some 10 s.
_START_S = 120.0
_REACHED_S = 5.0
# So long a worker may take to end what it sends, and to store it.
_END_S = 60.0


class Fleet:
    """The workers of one engine, each of which has one that `build` makes. `address`: a cluster's, or `local` for one
    on this machine that ends with the engine; `count` None: a worker for each core of the cluster. `forgets`: the run
    is complete, so that workers drop what they kept for it."""

    def __init__(
        self, address: str, count: int | None, settings: Settings, build: Callable[..., CarryingEngine]
    ) -> None:
        self._address = address
        self._count = count or 0
        self._settings = settings
        self._build = build
        self.ray: Any = None
        self.forgets = False
        self._is_ours = False
        self._number = 0
        self._joining: set[asyncio.Future[RayLink]] = set()
        # Why workers could not start before any other could.
        self._faults: list[BaseException] = []

    def __repr__(self) -> str:
        return f"<Fleet {self._address} [{self._number} workers begun]>"

    def scheduler(self, budget: CostBudget, parts: dict[str, Any]) -> FleetScheduler:
        """Returns the scheduler whose calls the workers carry; `parts` as of an ordinary one."""
        self._scheduler = FleetScheduler(
            **parts, budget=budget, is_shared=self._settings.server is not None, revive=self.revive
        )
        return self._scheduler

    async def open(self) -> None:
        """Connects to the cluster and starts the workers; returns when the first can carry calls, while the others join
        as they come. Raises LocalFault if there is no cluster, or none of its machines can carry calls."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
            os.environ.setdefault("RAY_AUTH_MODE", "token")  # else Ray ignores the token; it looks when it is imported
        try:
            import ray
        except ImportError as error:
            raise LocalFault(f"a cluster can't be used: {missing_text(error)}") from error
        self.ray = ray
        if not ray.is_initialized():
            await asyncio.to_thread(self._connect)
            self._is_ours = True
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        cores = int(resources.get("CPU", 1))
        self._count = self._count or max(1, cores)
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        machines = len({node["NodeManagerHostname"] for node in nodes if node["Alive"]})
        if machines > 1 and self._settings.server is None:
            raise LocalFault(
                f"the cluster {self._address} has {machines} machines, which need one place for answers and quotas: "
                f"give a server with --cache redis://HOST"
            )
        remark(f"the Ray cluster {self._address}: {self._count:,} workers carry the calls (machines: {machines:,})")
        await self._join(self._count)

    def _connect(self) -> None:
        # Ray prints on stdout what it thinks of each process that died; we say it in a line of our own.
        worker: Any = import_module("ray._private.worker")
        if hasattr(worker, "print_to_stdstream"):
            worker.print_to_stdstream = lambda *_, **__: None
        place = {} if self._address == LOCAL else {"address": self._address}
        try:
            if self._address != LOCAL:
                # Ray itself tries an address where nobody listens for minutes.
                host, _, port = self._address.rpartition(":")
                socket.create_connection((host.strip("[]"), int(port)), _REACHED_S).close()
            self.ray.init(include_dashboard=False, log_to_driver=False, logging_level="error", **place)
        except (OSError, RuntimeError, ValueError) as error:
            raise LocalFault(f"the Ray cluster {self._address} can't be used ({_first_line(error)})") from error

    async def _join(self, count: int) -> None:
        for _ in range(count):
            start = asyncio.ensure_future(self._start())
            self._joining.add(start)
            start.add_done_callback(self._add)
        while self._joining and not self._scheduler.workers:
            await asyncio.wait(self._joining, return_when=asyncio.FIRST_COMPLETED)
        if not self._scheduler.workers:
            raise self._faults[0]
        for fault in self._faults:
            remark(str(fault))

    def _add(self, start: asyncio.Future[RayLink]) -> None:
        self._joining.discard(start)
        if start.cancelled():
            return
        if (error := start.exception()) is None:
            self._scheduler.add(start.result())
        elif not self._scheduler.workers:
            self._faults.append(error)
        else:
            remark(str(error))

    async def revive(self, link: Link) -> Link | None:
        """Starts a worker in place of one that died. Raises LocalFault if there is no room for it."""
        return await self._start()

    async def close(self) -> None:
        for start in self._joining:
            start.cancel()
        await asyncio.gather(*self._joining, return_exceptions=True)
        if self._is_ours:
            await asyncio.to_thread(self.ray.shutdown)

    async def _start(self) -> RayLink:
        self._number += 1
        number, ray = self._number, self.ray
        options = {"num_cpus": _CORES_EACH, "max_concurrency": _EXCHANGES_AT_ONCE, "scheduling_strategy": "SPREAD"}
        actor = ray.remote(**options)(FleetWorker).remote(self._build)
        settings = settings_of_one(self._settings, self._count)
        try:
            hello: Hello = await asyncio.wait_for(actor.open.remote(settings, VERSION), _START_S)
        except (ray.exceptions.RayError, TimeoutError) as error:
            ray.kill(actor)
            raise LocalFault(
                f"worker {number} did not start within {_START_S:.0f} s ({_first_line(error)}): "
                f"is a core of the cluster {self._address} free, and millstream installed there?"
            ) from error
        link = RayLink(self, number, actor, hello)
        if hello.fault:
            ray.kill(actor)
            raise LocalFault(f"{link.name}: {hello.fault}")
        return link


class RayLink:
    """The way to one actor."""

    def __init__(self, fleet: Fleet, number: int, actor: Any, hello: Hello) -> None:
        self.node = hello.node
        self.name = f"worker {number} on {hello.node}"
        self._fleet = fleet
        self._actor = actor
        self._ray = fleet.ray

    def __repr__(self) -> str:
        return f"<RayLink {self.name}>"

    async def exchange(self, given: bytes) -> bytes:
        try:
            taken: bytes = await self._actor.exchange.remote(given)
        except self._ray.exceptions.RayError as error:
            # One that can't be reached may be alive; it must not go on with calls that others get.
            self._ray.kill(self._actor)
            raise WorkerDied(_first_line(error)) from error
        return taken

    async def close(self) -> None:
        with suppress(self._ray.exceptions.RayError, TimeoutError):
            await asyncio.wait_for(self._actor.close.remote(forgets=self._fleet.forgets), _END_S)
        self._ray.kill(self._actor)


def settings_of_one(settings: Settings, count: int) -> Settings:
    """Returns the settings of one worker of so many: calls in flight are shared out, money is granted by the driver,
    and API keys are those of its machine."""

    def shared(lane: Lane) -> Lane:
        return structs.replace(lane, concurrency=-(-lane.concurrency // count))

    return structs.replace(
        settings,
        lanes=tuple(map(shared, settings.lanes)),
        default_lane=shared(settings.default_lane or Lane("any/model")),
        cluster=None,
        environment=None,
        sink=None,
        budget=None,
        spent=0.0,
    )


def _first_line(error: BaseException) -> str:
    """Returns what an error of Ray says, which may take many lines."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
