"""Carries out a load test, from the lock on its folder to the figures on disk.

Owns the order, and what a signal does. `session` decides when calls are sent and
`figures` computes the results. Prints nothing: what shows the test is passed in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager

from msgspec import Struct, field, structs

from ...configuration.errors import LOCAL_FAULT
from ...engine.attempts.budget_file import BUDGET, BudgetPlace
from ...engine.fault import LocalFault
from ...engine.prices import Price
from ...engine.remarks import remark
from ...metrics.load.load_json import LoadClient, LoadFigures
from ...wiring import Settings
from ...wiring.engine import Engine
from ...wiring.event_loop import run_in_loop
from ...wiring.fleet import Fleet, RayLink
from ...wiring.running import RunEnd, running
from ...wiring.signals import DRAIN_S
from .budget import LoadEnd
from .figures import load_of
from .fleet import LoadFleet
from .folder import LoadFolder
from .session import LoadSession
from .spec import LoadSpec
from .worker import LoadWorker

Showing = Callable[[LoadSession], AbstractContextManager[object]]
"""Returns a context that shows a test, from its first call to its last."""


class LoadOutcome(Struct, frozen=True, kw_only=True):
    """The result of a load test, and how it ended (`end`). Its figures are valid even after a fault of our own
    machine."""

    load: LoadFigures
    end: RunEnd = field(default_factory=RunEnd)

    @property
    def exit_code(self) -> int:
        """The exit code. Bad figures and the test's own cost limit are no failure; a test without an answer is."""
        if self.end.signal is None and self.load.ending == "fault":
            return LOCAL_FAULT
        return self.end.exit_code(is_pending=self.load.ending == "stopped", has_failures=bool(self.load.unmeasured))


def carry_out(spec: LoadSpec, showing: Showing) -> LoadOutcome:
    """Sends the calls, measures, writes the files and returns the result. Raises UsageError or LocalFault if nothing
    can be sent at all."""
    table = spec.settings.price_table()
    prices = {model: table.get(model) for model in spec.models}
    with LoadFolder(spec.out) as folder:
        began = time.time()
        session, end, workers = run_in_loop(_sent(spec, prices, folder, showing))
        ending = session.ending or LoadEnd("error")
        load = load_of(
            spec,
            session.wholes,
            ending,
            prices,
            began=began,
            left_out=session.left_out,
            unsure=session.money.unsure,
            workers=workers,
        )
        folder.conclude(load)
        end.fault = end.fault or folder.fault
        return LoadOutcome(load=load, end=end)


async def _sent(
    spec: LoadSpec, prices: Mapping[str, Price | None], folder: LoadFolder, showing: Showing
) -> tuple[LoadSession, RunEnd, tuple[LoadClient, ...]]:
    """Runs the test and returns its session, how it ended, and the workers that sent its calls."""
    # The session begins no call that may exceed the limit; the engine enforces it for each attempt, and over a kill.
    capped = structs.replace(spec.settings, max_cost=spec.plan.limits.max_cost)
    async with _workers(spec, capped, prices) as fleet:
        # An engine that sends nothing needs no file of its money.
        settings = structs.replace(capped, budget=BudgetPlace(spec.out / BUDGET)) if fleet is None else spec.settings
        engine = Engine(settings=settings)
        session = LoadSession(spec, engine.ask, prices, folder.note_call, fleet=fleet)
        end = await _run(session, engine, folder, showing)
        return session, end, () if fleet is None else fleet.figures


@asynccontextmanager
async def _workers(
    spec: LoadSpec, settings: Settings, prices: Mapping[str, Price | None]
) -> AsyncIterator[LoadFleet | None]:
    """Starts the workers of a test that has any, and ends them."""
    if spec.cluster is None:
        yield None
        return
    fleet = Fleet(spec.cluster, spec.workers, settings, Engine, LoadWorker)
    links: list[RayLink] = []
    try:
        links = await fleet.open_all()
        bare = structs.replace(spec, settings=Settings(measures=True))  # no key leaves this process
        for number, link in enumerate(links):
            await link.ask("prepare", bare, prices, number, len(links))
        yield LoadFleet(links)
    finally:
        await asyncio.gather(*(link.close() for link in links))
        await fleet.close()


async def _run(session: LoadSession, engine: Engine, folder: LoadFolder, showing: Showing) -> RunEnd:
    loop = asyncio.get_running_loop()

    def drain(name: str) -> None:
        session.end("interrupted", f"interrupted by {name}")
        wait_s = min(DRAIN_S, session.spec.plan.limits.drain_s)
        remark(f"{name}: waiting up to {wait_s:.0f} s for calls in flight; once more drops them")

    def tell(fault: LocalFault) -> None:
        loop.call_soon_threadsafe(session.end, "fault", str(fault))

    folder.on_fault = tell
    async with running(engine, drain, session.drop) as end:
        with showing(session):
            await session.run()
    return end
