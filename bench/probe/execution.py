"""Runs a probe from its specification to its outcome: the engine, the caps, signals, and how it ended.

Owns the order and the exit code. `run` decides what to send; `lanes_file` what is written. Prints nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from signal import Signals
from typing import Protocol

from msgspec import Struct, field, structs

from ...engine.remarks import remark
from ...wiring.budgets import attach_new_budget
from ...wiring.engine import Engine
from ...wiring.event_loop import run_in_loop
from ...wiring.running import RunEnd, running
from .lanes_file import Report
from .provider import EngineProvider
from .result import ProbeResult
from .run import Probe, Watcher
from .spec import ProbeSpec


class Display(Watcher, Protocol):
    """The interface of a watcher that shows the probe to a person."""

    def close(self) -> None:
        """Removes the display, so that others can write to the stream."""
        ...


Show = Callable[[Callable[[], tuple[int, float | None]]], Display]
"""Opens the display. Its argument returns the calls sent and the dollars spent so far (None: unknown)."""


class ProbeOutcome(Struct, kw_only=True):
    """The result of a probe: the quotas that it found, and how it ended."""

    probed: ProbeResult
    """The quotas found of each model."""
    end: RunEnd = field(default_factory=RunEnd)
    """The signal or the fault of our own machine that ended the probe early."""
    untold: tuple[str, ...] = ()
    """Models whose answers report no usage."""
    at_once: Mapping[str, int] = {}
    """The most calls of each model that were admitted together."""

    @property
    def exit_code(self) -> int:
        lanes = self.probed.lanes.values()
        return self.end.exit_code(
            is_pending=any(found.ended for found in lanes), has_failures=any(found.is_empty for found in lanes)
        )


def carry_out(spec: ProbeSpec, show: Show) -> ProbeOutcome:
    """Probes one model after the other and returns what was found, also after a signal or a local fault. Raises
    LocalFault if nothing could be sent."""
    return run_in_loop(_carry_out(spec, show))


async def _carry_out(spec: ProbeSpec, show: Show) -> ProbeOutcome:
    task = asyncio.current_task()
    assert task is not None
    engine = Engine(settings=spec.settings)

    def stop(name: str) -> None:
        display.close()
        remark(f"{name}: calls in flight are dropped")
        task.cancel()

    async with running(engine, stop) as end:
        # Known only here: the engine has raised the limit of open files.
        in_flight = min(map(spec.settings.concurrency_of, spec.models))
        bounds = structs.replace(spec.bounds, in_flight=min(spec.bounds.in_flight, in_flight))

        def spent() -> tuple[int, float | None]:
            is_known = all(spec.costs.price(model) is not None for model in spec.models)
            return probe.calls, probe.cost if is_known else None

        display = show(spent)
        probe = Probe(EngineProvider(engine, spec.costs, Random()), bounds, display)
        try:
            for left in attach_new_budget(probe.budget, spec.settings):
                remark(f"a probe that was killed after {left.written} may have spent up to ${left.granted:,.4f}")
            await probe.run(spec.models)
        finally:
            display.close()
            probe.budget.detach()
    if end.fault is not None and not probe.probed().lanes:
        raise end.fault
    return ProbeOutcome(probed=probe.probed(), end=end, untold=tuple(probe.untold_usage), at_once=probe.at_once)


def report_of(spec: ProbeSpec, ended: ProbeOutcome) -> Report:
    why = ""
    if ended.end.fault is not None:
        why = str(ended.end.fault)
    elif ended.end.signal is not None:
        why = f"interrupted by {Signals(ended.end.signal).name}"
    return Report(
        probed=ended.probed,
        ways=spec.ways,
        unpriced=tuple(model for model in spec.models if spec.costs.price(model) is None),
        untold=ended.untold,
        at_once=ended.at_once,
        ended=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        why=why,
    )
