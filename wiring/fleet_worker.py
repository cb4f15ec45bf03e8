"""One worker of a fleet: a process of the cluster that opens an ordinary engine and carries a driver's calls.

The cluster's library starts it and calls its methods; batches come over a connection of its own (`fleet_stream`).
Keys come from the environment of its own machine; only their names travel.
"""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from ..engine.attempts.money import CostBudget
from ..engine.call import PageResponse
from ..engine.collector import calm_collector
from ..engine.fault import LocalFault
from ..engine.fleet.carrier import Carrier
from ..engine.fleet.grants import Grants
from ..engine.remarks import LOG
from ..engine.scheduler import Scheduler
from ..engine.version import VERSION
from ..providers.access import ConfigurationError
from .fleet_stream import FrameStream, serve
from .settings import Settings

if TYPE_CHECKING:
    from ..providers.pages.extraction import Extraction
    from ..providers.pages.page import PageText


class CarryingEngine(AbstractAsyncContextManager[object], Protocol):
    """An engine, as a worker uses it."""

    @property
    def scheduler(self) -> Scheduler: ...

    budget: CostBudget

    def forget_run(self) -> None: ...


class _Remarks(logging.Handler):
    """What is remarked, in any thread, until the driver takes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.lines = asyncio.Queue[tuple[int, str]]()

    def emit(self, record: logging.LogRecord) -> None:
        line = record.levelno, f"on {platform.node()}: {record.getMessage()}"
        self._loop.call_soon_threadsafe(self.lines.put_nowait, line)


class FleetWorker:
    """The process. `build` makes its engine of settings; `open` comes first, `close` last."""

    def __init__(self, build: Callable[..., CarryingEngine]) -> None:
        self._build = build
        self._engine: CarryingEngine | None = None
        self._server: asyncio.Server | None = None
        self._extraction: Extraction | None = None
        self._remarks: _Remarks | None = None

    async def open(self, settings: Settings, version: str) -> str:
        """Opens the engine, and returns the name of its machine. Raises LocalFault with that name first, if this has
        another version than the driver, or lacks a key."""
        node = platform.node()
        if version != VERSION:
            raise LocalFault(f"on {node}: has millstream {VERSION}, the driver {version}: install the same")
        try:
            self._engine = self._build(settings=settings)
            grants = Grants(self._engine.budget)
            if settings.max_cost is not None:
                self._engine.budget.attach(grants)
            await self._engine.__aenter__()
        except (LocalFault, ConfigurationError) as error:
            self._engine = None
            raise LocalFault(f"on {node}: {error}") from None
        self.begin(self._engine, grants)
        return node

    def begin(self, engine: CarryingEngine, grants: Grants) -> None:
        """Called once the engine is open. `grants`: what it may spend, if its budget has a limit."""
        self.carrier = Carrier(engine.scheduler, grants)

    async def listen(self, secret: bytes) -> tuple[str, int]:
        """Returns where the driver that has the secret can hand over calls from now on."""
        host: str = import_module("ray").util.get_node_ip_address()
        self._server = await serve(host, secret, self._carry)
        port: int = self._server.sockets[0].getsockname()[1]
        return host, port

    async def _carry(self, stream: FrameStream) -> None:
        """Carries calls until the connection ends."""

        async def receive() -> None:
            while True:
                await self.carrier.receive(await stream.receive())

        async def send() -> None:
            while True:
                stream.send(await self.carrier.taken())

        tasks = [asyncio.create_task(receive()), asyncio.create_task(send())]
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        ended.pop().result()

    async def live(self) -> tuple[int, str]:
        """Waits until something is remarked in this process, and returns it with its level. The cluster tells whoever
        awaits it when the process has ended."""
        if self._remarks is None:
            self._remarks = _Remarks(asyncio.get_running_loop())
            LOG.addHandler(self._remarks)
        with calm_collector():
            return await self._remarks.lines.get()

    async def extract(self, fetched: PageResponse, version: str) -> PageText:
        """Returns the text of a page. Raises LocalFault if this machine can't find what the driver's own parsers
        would."""
        from ..providers.pages.extraction import Extraction

        if self._extraction is None:
            self._extraction = Extraction()
        try:
            if self._extraction.version != version:
                raise LocalFault(
                    f"it has the parsers {self._extraction.version}, the driver {version}: install the same"
                )
            return await self._extraction.extract(fetched)
        except LocalFault as fault:
            raise LocalFault(f"on {platform.node()} can't read pages: {fault}") from None

    async def close(self, *, forgets: bool) -> None:
        """Closes the engine. `forgets`: the run is complete, and what it kept in order to resume goes."""
        if self._server is not None:
            self._server.close()
        if self._extraction is not None:
            await self._extraction.close()
        engine, self._engine = self._engine, None
        if engine is not None:
            if forgets:
                engine.forget_run()
            await engine.__aexit__(None, None, None)
