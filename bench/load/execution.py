"""Carries out a load test, from the lock on its folder to the figures on disk.

Owns the order, and what a signal does. `session` decides when calls are sent and
`figures` computes the results. Prints nothing: what shows the test is passed in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from msgspec import Struct, field, structs

from ...configuration.errors import LOCAL_FAULT
from ...engine.attempts.budget_file import BUDGET, BudgetPlace
from ...engine.fault import LocalFault
from ...engine.prices import Price
from ...engine.remarks import remark
from ...metrics.load.load_json import LoadFigures
from ...wiring.engine import Engine
from ...wiring.event_loop import run_in_loop
from ...wiring.running import RunEnd, running
from ...wiring.signals import DRAIN_S
from .budget import LoadEnd
from .figures import load_of
from .folder import LoadFolder
from .session import LoadSession
from .spec import LoadSpec

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
        session, end = run_in_loop(_sent(spec, prices, folder, showing))
        ending = session.ending or LoadEnd("error")
        load = load_of(
            spec,
            session.wholes,
            ending,
            prices,
            began=began,
            left_out=session.left_out,
            unsure=session.money.unsure,
        )
        folder.conclude(load)
        end.fault = end.fault or folder.fault
        return LoadOutcome(load=load, end=end)


async def _sent(
    spec: LoadSpec, prices: Mapping[str, Price | None], folder: LoadFolder, showing: Showing
) -> tuple[LoadSession, RunEnd]:
    """Runs the test and returns its session and how it ended."""
    # The session begins no call that may exceed the limit; the engine enforces it for each attempt, and over a kill.
    limit = spec.plan.limits.max_cost
    engine = Engine(settings=structs.replace(spec.settings, max_cost=limit, budget=BudgetPlace(spec.out / BUDGET)))
    session = LoadSession(spec, engine.ask, prices, folder.note_call)
    loop = asyncio.get_running_loop()

    def drain(name: str) -> None:
        session.end("interrupted", f"interrupted by {name}")
        wait_s = min(DRAIN_S, spec.plan.limits.drain_s)
        remark(f"{name}: waiting up to {wait_s:.0f} s for calls in flight; once more drops them")

    def tell(fault: LocalFault) -> None:
        loop.call_soon_threadsafe(session.end, "fault", str(fault))

    folder.on_fault = tell
    async with running(engine, drain, session.drop) as end:
        with showing(session):
            await session.run()
    return session, end
