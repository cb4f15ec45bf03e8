"""Sends items of one call each, as one stream for each pair.

A pair that stops or is slow delays no other; a fault of this machine ends all. Starts one task for each pair. Knows no
benchmark and no file; the sink handles outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Protocol

from ....engine.call import Call, Outcome
from ....engine.fault import LocalFault, Stop, Stopped, StopReason
from ....engine.runs.pairs import Pair
from ....engine.sink import Sink


class StreamRunner(Protocol):
    """The interface of the engine's methods that send streams of calls and end a run."""

    def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]: ...

    def halt(self, reason: StopReason, detail: str) -> None: ...


async def send_calls(runner: StreamRunner, streams: Mapping[Pair, Iterable[Call]], sink: Sink) -> list[Stop]:
    """Sends the calls of all pairs side by side, each pair's read lazily; `sink` gets each outcome. Returns the stops
    that left calls pending (empty: none). A fault of our own machine ends all pairs and is raised as LocalFault after
    their end."""
    stops: dict[tuple[str, str], Stop] = {}
    faults: list[LocalFault] = []

    async def send_pair(pair: Pair, calls: Iterable[Call]) -> None:
        try:
            async for _ in runner.run(calls, sink):
                pass
        except Stopped as error:
            stops.update({(stop.lane, stop.reason): stop for stop in error.stops})
        except LocalFault as fault:
            # All pairs write to the same place: the others finish their calls in flight and send nothing more.
            runner.halt("local_fault", str(fault))
            faults.append(fault)

    async with asyncio.TaskGroup() as group:
        for pair, calls in streams.items():
            group.create_task(send_pair(pair, calls), name=f"sending to {pair}")
    if faults:
        raise faults[0]
    return list(stops.values())
