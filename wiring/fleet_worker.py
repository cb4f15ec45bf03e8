"""One worker of a fleet: a process of the cluster that opens an ordinary engine and carries a driver's calls.

Imports nothing of the cluster's library: that starts it and calls its methods. Keys come from the environment of its
own machine; only their names travel.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from msgspec import Struct, structs

from ..engine.attempts.money import CostBudget
from ..engine.fault import LocalFault
from ..engine.fleet.carrier import Carrier
from ..engine.fleet.grants import Grants
from ..engine.scheduler import Scheduler
from ..engine.version import VERSION
from ..providers.access import ConfigurationError
from .settings import Settings


class Hello(Struct):
    """What a worker says of itself once it was asked to open its engine. `fault`: why it can't carry calls; empty: it
    can."""

    node: str
    process: int
    fault: str = ""


class CarryingEngine(Protocol):
    """An engine, as a worker uses it."""

    @property
    def scheduler(self) -> Scheduler: ...

    budget: CostBudget

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def forget_run(self) -> None: ...


class FleetWorker:
    """The process. `build` makes its engine of settings; `open` comes first, `close` last."""

    def __init__(self, build: Callable[..., CarryingEngine]) -> None:
        self._build = build
        self._engine: CarryingEngine | None = None
        self._carrier: Carrier | None = None

    async def open(self, settings: Settings, version: str) -> Hello:
        """Opens the engine, if this machine has the driver's version and its keys."""
        hello = Hello(platform.node(), os.getpid())
        if version != VERSION:
            return structs.replace(hello, fault=f"has millstream {VERSION}, the driver {version}: install the same")
        try:
            self._engine = self._build(settings=settings)
            grants = None
            if settings.max_cost is not None:
                self._engine.budget.attach(grants := Grants())
            await self._engine.__aenter__()
        except (LocalFault, ConfigurationError) as error:
            self._engine = None
            return structs.replace(hello, fault=str(error))
        self._carrier = Carrier(self._engine.scheduler, self._engine.budget, grants)
        return hello

    async def exchange(self, given: bytes) -> bytes:
        assert self._carrier is not None
        return await self._carrier.exchange(given)

    async def close(self, *, forgets: bool) -> None:
        """Closes the engine. `forgets`: the run is complete, and what it kept in order to resume goes."""
        engine, self._engine = self._engine, None
        if engine is not None:
            if forgets:
                engine.forget_run()
            await engine.__aexit__(None, None, None)
