"""What a fleet costs: processor time a call of the driver and of its workers, beside one engine's, against nginx.

`python -m millstream.speed.fleet [--calls N] [--workers N…]`. Each figure is of whole runs after their start, in the
same minute; only ratios count, since machines drift. The driver's share holds the loop over the outcomes too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

import millstream as ms

from .clients import MODEL, RPM, TPM
from .floor import IN_FLIGHT, PROMPT_CHARS
from .server import nginx

FILLER = "arguments for and against " * 100
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def worker_cpu_s() -> float:
    """The processor time of all workers of a cluster on this machine."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().startswith(b"ray::FleetWorker"):
                    fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                    total += (int(fields[11]) + int(fields[12])) * _TICK_S
            except OSError:
                continue
    return total


async def measured(url: str, count: int, workers: int) -> tuple[float, float, float]:
    """Calls a second, and microseconds of a call here and in the workers (0 workers: no cluster)."""
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
            calls = (ms.Call(MODEL, f"{number} {FILLER}"[:PROMPT_CHARS]) for number in range(count + 2000))
            outcomes = engine.run(calls)
            for _ in range(2000):
                await anext(outcomes)
            began, here, there = time.perf_counter(), time.process_time(), worker_cpu_s()
            done = 0
            async for outcome in outcomes:
                assert outcome.reply is not None, outcome.failure
                done += 1
            seconds, here, there = (
                time.perf_counter() - began,
                time.process_time() - here,
                worker_cpu_s() - there,
            )
    return done / seconds, 1e6 * here / done, 1e6 * there / done


def main() -> None:
    parser = argparse.ArgumentParser(prog="millstream.speed.fleet", description=__doc__)
    parser.add_argument("--calls", type=int, default=40_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args()
    with nginx(None) as url:
        for workers in options.workers:
            rate, here, there = asyncio.run(measured(url, options.calls, workers))
            shares = f"driver {here:.1f} us a call, workers {there:.1f}"
            print(f"{workers} workers: {rate:,.0f} calls/s, {shares}", flush=True)


if __name__ == "__main__":
    main()
