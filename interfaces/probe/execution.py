"""A probe from its settings to what it found: the engine, the caps, signals, and how it ended.

Owns the order and the exit code. What is asked decides the bench room; what is printed and written: writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import TextIO

from msgspec import Struct, structs

from ...bench.load.probe.result import Probed
from ...bench.load.probe.run import Bounds, Probe
from ...engine.fault import LocalFault
from ...wiring import Engine, Settings, attach_new_budget
from .. import refusal
from ..event_loop import loop_factory
from ..output import note
from ..signals import Interruption
from .display import Display
from .outside import Costs, Reached
from .writing import Way


class Asked(Struct, frozen=True, kw_only=True):
    """What is probed, by which ways, and how far. `settings` measure."""

    models: tuple[str, ...]
    settings: Settings
    bounds: Bounds
    costs: Costs
    ways: Mapping[str, Way]


class Ended(Struct, kw_only=True):
    """What is known, and why no more. `signal`: its number; `untold`: models whose answers name no usage; `at_once`:
    the most calls of each that were admitted together."""

    probed: Probed
    signal: int | None = None
    fault: LocalFault | None = None
    untold: tuple[str, ...] = ()
    at_once: Mapping[str, int] = {}

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return refusal.SIGNAL + self.signal
        if self.fault is not None:
            return refusal.LOCAL_FAULT
        return refusal.RESUMABLE if any(found.ended for found in self.probed.lanes.values()) else refusal.DONE


def carry_out(asked: Asked, stream: TextIO | None) -> Ended:
    """Probe one model after the other. Raises LocalFault where no engine could be opened: then nothing was sent."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_carry_out(asked, stream))


async def _carry_out(asked: Asked, stream: TextIO | None) -> Ended:
    task = asyncio.current_task()
    assert task is not None
    async with Engine(settings=asked.settings) as engine:
        # Known only now that the limit of files is raised.
        in_flight = min(asked.settings.whole_lane_of(model).concurrency for model in asked.models)
        bounds = structs.replace(asked.bounds, in_flight=min(asked.bounds.in_flight, in_flight))

        def spent() -> tuple[int, float | None]:
            is_known = all(asked.costs.price(model) is not None for model in asked.models)
            return probe.calls, probe.cost if is_known else None

        display = Display(stream, spent)
        probe = Probe(Reached(engine, asked.costs, Random()), bounds, display)
        ended = Ended(probed=probe.probed())
        for left in attach_new_budget(probe.purse, asked.settings):
            note(f"millstream: a probe that was killed after {left.written} may have spent up to ${left.granted:,.4f}")

        def stop(name: str) -> None:
            display.close()
            note(f"millstream: {name}: calls in flight are dropped")
            cancel()

        def cancel() -> None:
            task.cancel()

        with Interruption(stop, cancel) as interruption:
            try:
                await probe.run(asked.models)
            except LocalFault as fault:
                ended.fault = fault
            except asyncio.CancelledError:
                if interruption.number is None:
                    raise
                task.uncancel()
            finally:
                display.close()
                probe.purse.detach()
        ended.probed, ended.signal = probe.probed(), interruption.number
        ended.untold, ended.at_once = tuple(probe.untold_usage), display.at_once
    return ended
