"""What a fleet costs: processor time a call of the driver and of its workers, beside one engine's, against nginx.

`python -m millstream.speed.fleet [--calls N] [--workers N…]`. Each figure is of whole runs after their start, in the
same minute; only ratios count, since machines drift. The driver's time holds what a run takes for its items and
outcomes whoever answers them: "a run's own" is that alone, measured with answers that are there at once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct

import millstream as ms

from ..engine.fleet.batches import Taken
from ..engine.fleet.driver import FleetScheduler
from ..engine.fleet.given import FleetCall, FleetWorker
from ..engine.shared_calls import Waiter
from ..engine.store.commit import CommitGroup, StoreRow
from ..wiring.event_loop import run_in_loop
from .clients import MODEL, RPM, TPM, calls_of
from .floor import IN_FLIGHT
from .server import nginx
from .watched import memory_kib

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def worker_cpu_s() -> float:
    """The processor time of all workers of a cluster on this machine."""
    total = 0.0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(b"ray::FleetWorker"):
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                total += (int(fields[11]) + int(fields[12])) * _TICK_S
    return total


@contextmanager
def answered_at_once() -> Iterator[None]:
    """Lets a fleet's driver hand no more calls to workers, once one has answered: all get that outcome soon."""
    begin, received = FleetScheduler.begin, FleetScheduler._received
    samples: list[ms.Outcome] = []
    waiting: list[FleetCall] = []

    def hear(driver: FleetScheduler, worker: FleetWorker, taken: Taken) -> None:
        samples.extend([end for _, end in taken.ended if isinstance(end, ms.Outcome)][:1])
        received(driver, worker, taken)

    def begin_here(driver: FleetScheduler, waiter: Waiter) -> None:
        if not samples:
            begin(driver, waiter)
            return
        waiter.call = call = FleetCall(0, waiter.pending, waiter, driver.leave)
        waiting.append(call)
        if len(waiting) == 1:
            driver.loop.call_soon(driver.loop.call_soon, end)

    def end() -> None:
        rows = [StoreRow(None, b"", b"", partial(call.done, call.outcome_of(samples[0])), None) for call in waiting]
        waiting.clear()
        CommitGroup(rows, {}, {}).end(None)

    with patch.object(FleetScheduler, "begin", begin_here), patch.object(FleetScheduler, "_received", hear):
        yield


class Cost(Struct):
    """Calls a second, microseconds of a call here and in the workers, and MiB that this process grew by from the first
    tenth of the calls to the last."""

    rate: float
    here_us: float
    there_us: float
    growth_mb: float


async def measured(url: str, count: int, workers: int) -> Cost:
    """What so many calls cost (0 workers: no cluster)."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    with tempfile.TemporaryDirectory(prefix="millstream-fleet-") as cache:
        lane = ms.Lane(MODEL, rpm=RPM, tpm=TPM, concurrency=IN_FLIGHT)
        settings = ms.Settings(
            lanes=(lane,),
            base_url=url,
            cache=Path(cache),
            cluster="local" if workers else None,
            workers=workers or None,
        )
        async with ms.Engine(settings=settings) as engine:
            await asyncio.sleep(15 if workers else 0)  # until all workers have joined
            outcomes = engine.run(calls_of(count + 2000))
            for _ in range(2000):
                await anext(outcomes)
            began, here, there = time.perf_counter(), time.process_time(), worker_cpu_s()
            done = memory = 0
            async for outcome in outcomes:
                assert outcome.reply is not None, outcome.failure
                done += 1
                if done == count // 10:
                    memory = memory_kib("VmRSS")
            seconds, here, there = time.perf_counter() - began, time.process_time() - here, worker_cpu_s() - there
            memory = memory_kib("VmRSS") - memory
    return Cost(done / seconds, 1e6 * here / done, 1e6 * there / done, memory / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(prog="millstream.speed.fleet", description=__doc__)
    parser.add_argument("--calls", type=int, default=40_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    with nginx(None) as url:
        with answered_at_once():
            own = run_in_loop(measured(url, options.calls, 1))
        print(f"a run's own: {own.here_us:.1f} us a call", flush=True)
        for workers in options.workers:
            cost = run_in_loop(measured(url, options.calls, workers))
            times = f"driver {cost.here_us:.1f} us a call, workers {cost.there_us:.1f}"
            print(f"{workers} workers: {cost.rate:,.0f} calls/s, {times}, {cost.growth_mb:+.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
