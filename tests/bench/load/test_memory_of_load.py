"""A load test of any length needs the memory of a short one: its calls go to disk, its times into histograms."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from load_orders import MODEL, PRICES, order_of
from virtual_time import run_virtually

from millstream.bench.load.arrivals import at_rate
from millstream.bench.load.folder import CALLS, LoadFolder
from millstream.bench.load.plan import Limits
from millstream.bench.load.session import LoadSession
from millstream.bench.load.timing import CallTimes
from millstream.engine.call import Call, Outcome, Reply, Usage
from millstream.engine.endpoint import Hear

# Slices of time are most just before they are widened: after 256, 512, 1,024 s and so on, at 40 calls a second.
CALLS_FEW, CALLS_MANY = 10_200, int(os.environ.get("MILLSTREAM_LOAD_CALLS", "20400"))
GROWTH_MOST = 4 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Scribe:
    """Writes each call down, and looks at the memory twice."""

    def __init__(self, folder: LoadFolder) -> None:
        self.folder = folder
        self.ended = 0
        self.seen: list[int] = []

    def note(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None:
        self.folder.note_call(model, timed, step, measured=measured)
        self.ended += 1
        if self.ended in (CALLS_FEW, CALLS_MANY):
            self.seen.append(resident())


async def answer(call: Call, *, hear: Hear | None = None) -> Outcome:
    assert hear is not None
    hear(None)
    for _ in range(3):
        await asyncio.sleep(0.03)
        hear("word ")
    return Outcome(call, reply=Reply("word", usage=Usage(10, 3)), attempts=1, cost=1e-6, latency_ms=90.0)


@pytest.mark.long
def test_twice_the_calls_take_no_more_memory(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        clock = asyncio.get_running_loop().time
        with LoadFolder(tmp_path / "out") as folder:
            scribe = Scribe(folder)
            spec = order_of(Limits(calls=CALLS_MANY), at_rate(40.0, "constant"))
            session = LoadSession(spec, answer, PRICES, scribe.note, clock=clock, cpu=lambda: 0.0)
            await session.run()
            assert session.wholes[MODEL].measured.meter.calls == CALLS_MANY
        return scribe.seen

    few, many = run_virtually(scenario())
    assert many - few < GROWTH_MOST, f"{few >> 20} MiB at {CALLS_FEW:,} calls, {many >> 20} MiB at {CALLS_MANY:,}"
    with (tmp_path / "out" / CALLS).open("rb") as file:
        assert sum(1 for _ in file) == CALLS_MANY
