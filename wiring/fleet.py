"""A fleet on a Ray cluster: its workers, started as actors, each in a process of its own, and the links to them.

Owns how many there are and where. Imports Ray only when a fleet is opened; beside what runs in the cluster
(`fleet_worker`, `fleet_quota`), no other module does.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from msgspec import structs

from ..engine.attempts.money import CostBudget
from ..engine.fault import LocalFault
from ..engine.fleet.batches import WorkerDied
from ..engine.fleet.driver import FleetScheduler
from ..engine.fleet.given import FleetWorker as CallWorker
from ..engine.lane import Lane
from ..engine.missing import missing_text
from ..engine.remarks import LOG, remark
from ..engine.shared.owner import Exchange, ExchangeLost
from ..engine.shared.quota import WINDOW_S
from ..engine.version import VERSION
from .fleet_stream import FrameStream
from .fleet_worker import CarryingEngine, FleetWorker
from .settings import Settings

LOCAL = "local"
# A worker waits for answers most of its time, and the driver needs a core too.
_CORES_EACH = 0.9
# Calls of a worker's methods at once.
_CALLS_AT_ONCE = 16
# A cluster that has room starts a worker within some 10 s.
_START_S = 120.0
_REACHED_S = 5.0
# A worker that dies while it starts is started again, so often in all.
_STARTS_MAX = 3
# So long a worker may take to end what it sends, and to store it.
_END_S = 60.0


class Fleet:
    """The workers of one engine, each of which has one that `build` makes. `address`: a cluster's, or `local` for one
    on this machine that ends with the engine; `count` None: a worker for each core of the cluster. `worker`: what runs
    in each process. `forgets`: the run is complete, so that workers drop what they kept for it."""

    def __init__(
        self,
        address: str,
        count: int | None,
        settings: Settings,
        build: Callable[..., CarryingEngine],
        worker: type[FleetWorker] = FleetWorker,
    ) -> None:
        self._address = address
        self._count = count or 0
        self._worker = worker
        self._settings = settings
        self._build = build
        self.ray: Any = None
        self.forgets = False
        self._is_ours = False
        # Whether quotas are kept in this machine's folder.
        self._keeps_quotas_here = settings.server is None and not settings.measures
        self._quota_owner: Exchange | None = None
        self._number = 0
        self._joining: list[asyncio.Task[Exception | None]] = []
        self._passed_on: set[str] = set()

    def __repr__(self) -> str:
        return f"<Fleet {self._address} [{self._number} workers begun]>"

    @property
    def workers(self) -> list[CallWorker]:
        """The workers now, a list that changes."""
        return self._scheduler.workers

    def scheduler(self, budget: CostBudget, parts: dict[str, Any]) -> FleetScheduler:
        """Returns the scheduler whose calls the workers carry; `parts` as of an ordinary one."""
        self._scheduler = FleetScheduler(
            **parts, budget=budget, is_shared=self._settings.server is not None, revive=self._start
        )
        return self._scheduler

    async def open(self) -> None:
        """Connects to the cluster and starts the workers; returns when the first can carry calls, while the others join
        as they come. Raises LocalFault if there is no cluster, or none of its machines can carry calls."""
        self._joining = [asyncio.create_task(self._join()) for _ in range(await self.connect())]
        faults = []
        for start in asyncio.as_completed(self._joining):
            if (fault := await start) is None:
                break
            faults.append(fault)
        else:
            raise faults[0]
        for fault in faults:
            remark(str(fault))

    async def _join(self) -> Exception | None:
        try:
            self._scheduler.add(await self._start())
        except Exception as error:  # noqa: BLE001 (raised by `open`, if no other worker starts)
            if self._scheduler.workers:
                remark(str(error))
            return error
        return None

    async def open_all(self) -> list[RayLink]:
        """Connects to the cluster, starts the workers, and returns them. Raises LocalFault if one can't be started."""
        return await asyncio.gather(*(self._start() for _ in range(await self.connect())))

    async def connect(self) -> int:
        """Connects to the cluster and returns how many workers it is to have."""
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
        machines = len({node["NodeManagerHostname"] for node in self.ray.nodes() if node["Alive"]})
        has_quota = any((lane.rpm, lane.tpm, lane.itpm, lane.otpm) != (None,) * 4 for lane in self._settings.lanes)
        remark(f"the Ray cluster {self._address}: {self._count:,} workers carry the calls (machines: {machines:,})")
        if machines > 1 and self._keeps_quotas_here:
            await self._share_quotas()
        elif machines > 1 and self._settings.server is None and has_quota:
            # What waits for a quota that was just begun would spoil the measurement.
            raise LocalFault(
                f"the cluster {self._address} has {machines} machines, which need one place for the quotas of a "
                f"measurement: give a server with --cache redis://HOST"
            )
        return self._count

    async def _share_quotas(self) -> None:
        """Lets all workers keep one quota, since their machines have no folder in common."""
        from .fleet_quota import ClusterLedgers

        self._quota_owner, self._keeps_quotas_here = (owner := ClusterLedgers()), False
        try:
            held = await owner.exchange("", 0, b"", b"")
        except ExchangeLost as error:
            raise LocalFault(f"no process of the cluster {self._address} can keep its quotas") from error
        if (wait_s := WINDOW_S - held.uptime_s) > 0:
            remark(
                f"the cluster's quota is kept from now on, and what was sent before is not counted: calls under a "
                f"quota wait {wait_s:.0f} s"
            )

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
        except Exception as error:
            raise LocalFault(f"the Ray cluster {self._address} can't be used ({_first_line(error)})") from error

    def pass_on(self, level: int, text: str) -> None:
        """Remarks what a worker has remarked; of a machine with several workers once."""
        if text not in self._passed_on:
            self._passed_on.add(text)
            LOG.log(level, "%s", text)

    async def close(self) -> None:
        for start in self._joining:
            start.cancel()
        await asyncio.gather(*self._joining, return_exceptions=True)
        if self._is_ours:
            await asyncio.to_thread(self.ray.shutdown)

    async def _start(self, starts: int = 1) -> RayLink:
        self._number += 1
        options = {"num_cpus": _CORES_EACH, "max_concurrency": _CALLS_AT_ONCE, "scheduling_strategy": "SPREAD"}
        actor = self.ray.remote(**options)(self._worker).remote(self._build)
        link = RayLink(self, f"worker {self._number}", actor)
        settings = settings_of_one(self._settings, self._count, self._quota_owner)
        try:
            link.node = await asyncio.wait_for(link.ask("open", settings, VERSION), _START_S)
            if self._keeps_quotas_here and link.node != platform.node():
                raise LocalFault(f"{link.name}: its machine joined later, and knows nothing of this run's quotas")
            if not self._settings.measures:
                await link.connect()
        except (LocalFault, WorkerDied, TimeoutError) as error:
            self.ray.kill(actor)
            if isinstance(error, LocalFault):
                raise
            if starts < _STARTS_MAX and isinstance(error, WorkerDied):
                return await self._start(starts + 1)
            if link.node:
                raise LocalFault(f"{link.name} has ended ({error}) before it could carry calls") from error
            raise LocalFault(
                f"{link.title} did not start within {_START_S:.0f} s ({_first_line(error)}): "
                f"is a core of the cluster {self._address} free, and millstream installed there?"
            ) from error
        return link


class RayLink:
    """The way to one actor. A LocalFault of the worker, which names its machine, is raised here under its `title`."""

    def __init__(self, fleet: Fleet, title: str, actor: Any) -> None:
        self.title, self.node = title, ""
        self._fleet = fleet
        self._actor = actor
        self._ray = fleet.ray
        self._stream: FrameStream | None = None
        self._life = asyncio.create_task(self._watch())

    def __repr__(self) -> str:
        return f"<RayLink {self.name}>"

    @property
    def name(self) -> str:
        return f"{self.title} on {self.node}"

    async def connect(self) -> None:
        """Opens the way of batches. Raises LocalFault if the worker can't be reached from here."""
        secret = secrets.token_bytes(32)
        host, port = await self.ask("listen", secret)
        try:
            self._stream = await FrameStream.open(host, port, secret)
        except OSError as error:
            raise LocalFault(
                f"{self.name} can't be reached from here at {host}:{port} ({error}): machines of a cluster need all "
                f"ports of each other"
            ) from error

    async def _watch(self) -> None:
        """Passes on what the worker remarks. Ends what is awaited once the cluster knows that the process has ended:
        its machine may say nothing more."""
        try:
            while True:
                self._fleet.pass_on(*await self.ask("live"))
        except WorkerDied as death:
            if self._stream is not None:
                self._stream.lose(death)

    def send(self, given: bytes) -> None:
        """Does what `CallLink.send` says."""
        assert self._stream is not None
        self._stream.send(given)

    async def receive(self) -> bytes:
        """Does what `CallLink.receive` says."""
        assert self._stream is not None
        try:
            return await self._stream.receive()
        except ConnectionError as error:
            # It may be alive; it must not go on with calls that others get.
            self._ray.kill(self._actor)
            raise WorkerDied(str(error)) from error

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Does what `Link.ask` says."""
        try:
            return await getattr(self._actor, method).remote(*arguments, **options)
        except self._ray.exceptions.RayError as error:
            if isinstance(cause := getattr(error, "cause", None), LocalFault):
                raise LocalFault(f"{self.title} {cause}") from None
            # One that can't be reached may be alive; it must not go on with calls that others get.
            self._ray.kill(self._actor)
            raise WorkerDied(_first_line(cause or error)) from error

    async def close(self) -> None:
        if self._stream is not None:
            self._stream.lose(WorkerDied("closed"))
        with suppress(self._ray.exceptions.RayError, TimeoutError):
            await asyncio.wait_for(self._actor.close.remote(forgets=self._fleet.forgets), _END_S)
        self._life.cancel()
        self._ray.kill(self._actor)


def settings_of_one(settings: Settings, count: int, quota_owner: Exchange | None = None) -> Settings:
    """Returns the settings of one worker of so many: calls in flight are shared out, money is granted by the driver (of
    a measurement, which has nobody who grants it, the cap is shared out), quotas by their owner, and API keys are those
    of its machine."""

    def shared(lane: Lane) -> Lane:
        return structs.replace(lane, concurrency=lane.concurrency and -(-lane.concurrency // count))

    return structs.replace(
        settings,
        lanes=tuple(map(shared, settings.lanes)),
        default_lane=shared(settings.default_lane or Lane("any/model")),
        # A worker's working folder is its node's.
        cache=settings.cache and settings.cache.absolute(),
        corpus=settings.corpus and settings.corpus.absolute(),
        cluster=None,
        max_cost=settings.max_cost and settings.max_cost / (count if settings.measures else 1),
        quota_owner=quota_owner,
        environment=None,
        sink=None,
        budget=None,
        spent=0.0,
    )


def _first_line(error: BaseException) -> str:
    """Returns what an error of Ray says, which may take many lines."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
