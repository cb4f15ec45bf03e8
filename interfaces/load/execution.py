"""A load test from its folder's lock to its figures on disk, whatever happens on the way.

Owns the life of the engine, of the files and of the display, and what signals do. What is sent when is the course's;
what the figures are, the figures'.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from msgspec import Struct, structs

from ...bench.load.budget import Ending
from ...bench.load.plan import Plan
from ...bench.load.run import Measured
from ...bench.load.timing import Timed
from ...engine.budget_file import BUDGET, BudgetPlace
from ...engine.collector import calm_collector
from ...engine.fault import LocalFault
from ...engine.money import Price
from ...metrics.load.file import Load
from ...wiring import Engine
from .. import refusal
from ..event_loop import loop_factory
from ..refusal import UsageError
from ..signals import DRAIN_S, Interruption
from .course import Course, Witness
from .display import Display
from .figures import load_of
from .order import Order
from .writing import LoadFolder, refuse_used


class Carried(Struct, frozen=True, kw_only=True):
    """What a load test came to. `fault`: what can't be used on our own side; the figures stand all the same."""

    load: Load
    signal: int | None = None
    fault: LocalFault | None = None

    @property
    def exit_code(self) -> int:
        """What it measured is no failure of the test's, nor is its own limit on cost; a test without an answer is."""
        if self.signal is not None:
            return refusal.SIGNAL + self.signal
        if self.fault is not None or self.load.ending == "fault":
            return refusal.LOCAL_FAULT
        if self.load.ending == "stopped":
            return refusal.RESUMABLE
        return refusal.WITH_FAILURES if self.load.unmeasured else refusal.DONE


def carry_out(order: Order) -> Carried:
    """Send, measure and write. Raises UsageError or LocalFault where nothing can be sent at all."""
    prices = prices_of(order)
    refuse_used(order.out)
    with LoadFolder(order.out) as folder:
        began = time.time()
        with calm_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
            course, number = runner.run(_sent(order, prices, folder))
        ending = course.ending or Ending("error")
        load = load_of(
            order,
            course.wholes,
            ending,
            prices,
            began=began,
            left_out=course.left_out,
            unsure=course.purse.unsure,
        )
        folder.conclude(load)
        return Carried(load=load, signal=number, fault=folder.fault)


def prices_of(order: Order) -> Mapping[str, Price | None]:
    """Raises UsageError where a limit on cost can't be kept."""
    table, limit = order.settings.price_table(), order.plan.limits.max_cost
    prices = {model: table.get(model) for model in order.models}
    for model, price in prices.items():
        if limit is not None and price is None:
            raise UsageError(
                f"model {model!r} has no price, so --max-cost ${limit:g} can't be kept: give it one under "
                f"[prices.{model!r}], or leave --max-cost out and limit --calls"
            )
    return prices


class _Scribe:
    """Has each call written down."""

    def __init__(self, folder: LoadFolder) -> None:
        self._folder = folder

    def run_opened(self, plan: Plan, models: Mapping[str, Measured], begins_s: float) -> None:
        pass

    def call_began(self, model: str) -> None:
        pass

    def call_ended(self, model: str, timed: Timed, step: int, begins_s: float, cost: float, *, measured: bool) -> None:
        self._folder.note_call(model, timed, step, begins_s, measured=measured)


async def _sent(order: Order, prices: Mapping[str, Price | None], folder: LoadFolder) -> tuple[Course, int | None]:
    """The test, and the number of the signal that ended it, if one did."""
    # The course begins no call that does not fit; the engine holds the limit for each attempt, and over a kill.
    limit = order.plan.limits.max_cost
    settings = structs.replace(order.settings, max_cost=limit, budget=BudgetPlace(order.out / BUDGET))
    loop = asyncio.get_running_loop()
    # A process started with stderr closed has none.
    stream: TextIO | None = sys.stderr
    async with Engine(settings=settings) as engine:
        display = Display(stream if order.show_progress else None)
        witnesses: tuple[Witness, ...] = (_Scribe(folder), display)
        course = Course(order, engine.ask, prices, witnesses)

        def drain(name: str) -> None:
            course.end("interrupted", f"interrupted by {name}")
            wait_s = min(DRAIN_S, order.plan.limits.drain_s)
            display.say(f"millstream: {name}: waiting up to {wait_s:.0f} s for calls in flight; once more drops them")

        def end(fault: LocalFault) -> None:
            course.end("fault", str(fault))

        def tell(fault: LocalFault) -> None:
            loop.call_soon_threadsafe(end, fault)

        folder.on_fault = tell
        with Interruption(drain, course.drop) as interruption, display.showing(course):
            await course.run()
        return course, interruption.number
