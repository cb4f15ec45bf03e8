"""One run of an engine: opens it, lets a signal drain it, notes how sending ended, and closes it.

Owns the exit code of every verb that sends. Knows no benchmark, no file and no screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from ..engine.attempts.budget_file import Amounts
from ..engine.exit_codes import DONE, LOCAL_FAULT, RESUMABLE, SIGNAL, WITH_FAILURES
from ..engine.fault import LocalFault, Stop, Stopped
from ..engine.remarks import remark
from .signals import DRAIN_S, Interruption

if TYPE_CHECKING:
    from .engine import Engine


class RunEnd(Struct):
    """How a run ended: the stops that left calls pending, and the signal or the fault of our own machine that ended it
    early. `max_cost`: the limit in dollars that held then (None: there was none); `maybe_billed`: attempts for calls
    without an outcome that may have been billed; `lost_keys`: API keys that stopped while others took over, which a
    person should repair. Of a run in a folder also `in_flight_at_kills`, the most calls that were in flight when it was
    killed, `money`, the dollars spent (None without a limit), and `has_failures`: a retry asks for some items once
    more, of which a live run has stored the calls that did not fail."""

    stops: Sequence[Stop] = ()
    signal: int | None = None
    fault: LocalFault | None = None
    max_cost: float | None = None
    maybe_billed: int = 0
    lost_keys: Sequence[tuple[str, Stop]] = ()
    in_flight_at_kills: int = 0
    money: Amounts | None = None
    has_failures: bool = False

    def exit_code(self, *, is_pending: bool, has_failures: bool) -> int:
        """Returns the exit code. `is_pending`: the same command has something left to send; `has_failures`: a call
        failed, or something could not be measured."""
        if self.signal is not None:
            return SIGNAL + self.signal
        if self.fault is not None:
            return LOCAL_FAULT
        if is_pending:
            return RESUMABLE
        return WITH_FAILURES if has_failures else DONE


@asynccontextmanager
async def running(
    engine: Engine, drain: Callable[[str], None] | None = None, drop: Callable[[], object] | None = None
) -> AsyncIterator[RunEnd]:
    """Opens the engine for a block that sends, and yields how the run ended: complete once the block is left.

    `drain` is called with the first signal's name (None: nothing more is sent), `drop` at a second signal or after
    DRAIN_S seconds (None: the block is cancelled). Stops and faults of our own machine end the block and are noted; the
    fault that the engine can't be opened is raised.
    """
    task = asyncio.current_task()
    assert task is not None

    def halt(name: str) -> None:
        engine.halt("interrupted", f"interrupted by {name}")
        remark(f"{name}: waiting up to {DRAIN_S:.0f} s for calls in flight; once more drops them")

    end = RunEnd()
    async with engine:
        interruption = Interruption(drain or halt, drop or task.cancel)
        try:
            with interruption:
                try:
                    yield end
                except Stopped as stopped:
                    end.stops = (*stopped.stops, *end.stops)
                except LocalFault as fault:
                    end.fault = fault
                except asyncio.CancelledError:
                    if interruption.number is None:
                        raise
                    task.uncancel()
        finally:
            end.signal, end.max_cost = interruption.number, engine.budget.limit
            # The last outcomes may have met a fault that no later call could report.
            end.fault = engine.close_sink() or end.fault
            end.maybe_billed = engine.scheduler.maybe_billed_pending
            lanes = [route.lane for route in engine.scheduler.routes.lasting.values()]
            end.lost_keys = [lost for lane in lanes if lane.stopped is None for lost in lane.stopped_keys]
        if not end.stops and end.signal is None and end.fault is None and not end.has_failures:
            engine.forget_run()
