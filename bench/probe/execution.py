"""Runs a probe from its specification to its report: the engine, signals, the budget file, and how it ended.

`run` decides what to send; `lanes_file` what is written. Prints nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from msgspec import structs

from ...engine.remarks import remark
from ...wiring.budgets import attach_new_budget
from ...wiring.engine import Engine
from ...wiring.event_loop import run_in_loop
from ...wiring.running import running
from .calls import Watcher
from .lanes_file import Report
from .provider import EngineProvider
from .run import Probe
from .spec import ProbeSpec

Show = Callable[[Callable[[], tuple[int, float | None]]], Watcher]
"""Opens the display. Its argument returns the calls sent and the dollars spent so far (None: unknown)."""


def carry_out(spec: ProbeSpec, show: Show) -> Report:
    """Probes one model after the other and returns what was found, also after a signal or a local fault. Raises
    LocalFault if nothing could be sent."""
    return run_in_loop(_carry_out(spec, show))


async def _carry_out(spec: ProbeSpec, show: Show) -> Report:
    task = asyncio.current_task()
    assert task is not None
    engine = Engine(settings=spec.settings)
    is_priced = all(spec.costs.price(model) is not None for model in spec.models)

    def stop(name: str) -> None:
        display.close()
        remark(f"{name}: calls in flight are dropped")
        task.cancel()

    def spent() -> tuple[int, float | None]:
        return probe.calls, probe.cost if is_priced else None

    async with running(engine, stop) as end:
        # Known only here: the engine has raised the limit of open files.
        in_flight = min(map(spec.settings.concurrency_of, spec.models))
        bounds = structs.replace(spec.bounds, in_flight=min(spec.bounds.in_flight, in_flight))
        display = show(spent)
        probe = Probe(EngineProvider(engine, spec.costs, Random()), bounds, display)
        try:
            for left in attach_new_budget(probe.budget, spec.settings):
                remark(f"a probe that was killed after {left.written} may have spent up to ${left.granted:,.4f}")
            await probe.run(spec.models)
        finally:
            display.close()
            probe.budget.detach()
    if end.fault is not None and not probe.lanes:
        raise end.fault
    ended = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    calls, cost = spent()
    return Report(lanes=probe.lanes, calls=calls, cost=cost, ways=spec.ways, end=end, ended=ended)
