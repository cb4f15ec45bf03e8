"""One worker of a load test: a process of a cluster that sends its share of the calls when they are due.

Its session is an ordinary one, by its own clock, that reports to the driver as it goes on. What is run, and when it
begins, the driver says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import cast

import msgspec
from msgspec import structs

from ...engine.fleet.grants import Grant, Grants
from ...engine.prices import Price
from ...wiring.engine import Engine
from ...wiring.fleet_worker import CarryingEngine, FleetWorker
from .budget import LoadEnd
from .fleet import Progress
from .plan import LoadPlan
from .run import LoadResult
from .session import LoadSession
from .spec import LoadSpec
from .timing import CallTimes, Clock


class LoadWorker(FleetWorker):
    """The process. After `open` comes `prepare`, once; then `run` for each part of the test, and `report` meanwhile."""

    def __init__(
        self,
        build: Callable[..., CarryingEngine],
        clock: Clock = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        super().__init__(build)
        self._clock = clock
        self._cpu = cpu
        self._calls: list[tuple[str, CallTimes, int, bool]] = []

    def begin(self, engine: CarryingEngine, grants: Grants) -> None:
        self._ask = cast("Engine", engine).ask
        grants.receive(Grant(engine.budget.limit or 0.0, is_last=True))

    async def prepare(self, spec: LoadSpec, prices: Mapping[str, Price | None], number: int, of: int) -> None:
        """Takes the test, of which this is one of several workers."""
        share = structs.replace(spec, plan=spec.plan.shared(number, of))
        self._share = number, of
        self._session = LoadSession(share, self._ask, prices, self._note_end, clock=self._clock, cpu=self._cpu)

    async def now(self) -> float:
        """Returns the second of this machine's clock."""
        return self._clock()

    async def run(
        self, plan: LoadPlan, models: tuple[str, ...], number: int, step: int | None, zero: float, begins_s: float
    ) -> LoadResult:
        """Runs this worker's share. `zero` is the second of this machine's clock from which all times count."""
        self._session.zero = zero
        return await self._session.run_part(plan.shared(*self._share), models, number, step, begins_s)

    def _note_end(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None:
        # The driver has no use for the gaps, which are in the histograms.
        self._calls.append((model, structs.replace(timed, gaps=()), step, measured))

    async def report(self, ending: LoadEnd | None, *, drops: bool) -> bytes:
        """Returns the progress. `ending`: why the whole test has ended, so that nothing more begins and calls in flight
        are waited for; `drops`: they are not."""
        session = self._session
        if ending is not None:
            session.end(ending.reason, ending.detail)
        if drops:
            session.drop()
        progress = Progress(spent=session.money.spent, unsure=session.money.unsure)
        for model, run in session.under_way.items():
            progress.models[model] = run.models[model].begun, run.verdict(model)
            progress.ending = progress.ending or run.budget.ending
        progress.calls, self._calls = self._calls, []
        return msgspec.msgpack.encode(progress)
