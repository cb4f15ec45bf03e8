"""The speed of the engine as a table: `python -m millstream.speed [--quick]`.

Everything is measured in one run, side by side and interleaved, since machines drift: only ratios count. The client has
one core, the server another.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from ..fixtures import full_size
from .server import NoServer, nginx, python_on, verdict

COLD_GOAL = 0.85
# Of the bare loop's own CPU time. Steadier than rates, which also wait for the disk and for other programs.
COLD_CPU_GOAL = 0.95
WARM_GOAL_S = 8.0
MEMORY_GOAL = 1.10


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: a look, not a result")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of cold runs (default 7)")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    cores = sorted(os.sched_getaffinity(0))
    client, server = cores[0], cores[-1]
    print(f"{len(cores)} cores; client on core {client}, server on core {server}; Python {sys.version.split()[0]}")
    try:
        with nginx(server if len(cores) > 1 else None) as url:
            reached = [cold(url, client, 20_000 // scale, options.pairs), warm(url, client, quick=options.quick)]
    except NoServer as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2
    reached.append(memory(client, (100_000 // scale, 1_000_000 // scale)))
    return 0 if all(reached) else 3


def cold(url: str, core: int, count: int, pairs: int) -> bool:
    """Compares the complete engine with a bare loop, alternating A B A B."""
    print(f"\ncold, {count:,} calls, 256 in flight, against nginx")
    print(f"{'pair':>6} {'bare /s':>10} {'engine /s':>10} {'ratio':>7} {'bare CPU µs':>12} {'engine CPU µs':>14}")
    ratios, shares = [], []
    for pair in range(1, pairs + 1):
        bare, engine = (_client(name, url, core, count) for name in ("bare", "engine"))
        ratio = engine["calls_a_second"] / bare["calls_a_second"]
        ratios.append(ratio)
        cpu = [1e6 * client["cpu_s"] / count for client in (bare, engine)]
        shares.append(cpu[1] / cpu[0])
        rates = f"{bare['calls_a_second']:>10,.0f} {engine['calls_a_second']:>10,.0f}"
        print(f"{pair:>6} {rates} {ratio:>7.2f} {cpu[0]:>12.0f} {cpu[1]:>14.0f}", flush=True)
    middle, share = statistics.median(ratios), statistics.median(shares)
    is_fast = verdict(f"median ratio {middle:.2f} (goal >= {COLD_GOAL})", is_reached=middle >= COLD_GOAL)
    told = f"median share of the bare loop's CPU {share:.2f} (goal <= {COLD_CPU_GOAL})"
    return verdict(told, is_reached=share <= COLD_CPU_GOAL) and is_fast


def warm(url: str, core: int, *, quick: bool) -> bool:
    """Measures the whole program: the full grid from the cache to printed scores."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
        folder = Path(name)
        dataset = full_size.ensure(folder / "data")
        limit = ["--limit", "11"] if quick else []
        print(f"\nwarm, {'11 issues' if quick else 'the full grid of 105,930 prompts'}, one core")
        seconds = []
        for number in range(4):
            command = [
                *python_on(core),
                *("-m", "millstream", "run", full_size.BENCHMARK, "--model", "openai/fixed", "--base-url", url),
                *("--dataset", str(dataset), "--cache", str(folder / "cache"), "--concurrency", "256"),
                *("--out", str(folder / f"run-{number}"), "--json", "--no-progress", "--no-report", *limit),
            ]
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - began)
            print(f"{'cold' if number == 0 else 'warm':>6} {seconds[-1]:>10.2f} s", flush=True)
    middle = statistics.median(seconds[1:])
    return verdict(f"median warm {middle:.2f} s (goal <= {WARM_GOAL_S:g} s)", is_reached=middle <= WARM_GOAL_S)


def memory(core: int, counts: Sequence[int]) -> bool:
    """Compares the memory of a run with that of ten times the calls, over a scripted provider."""
    print("\nanonymous memory at the end of a run over a scripted provider")
    found = []
    for count in counts:
        command = [*python_on(core), "-m", "millstream.speed.memory", str(count)]
        done = subprocess.run(command, check=True, capture_output=True)
        found.append(orjson.loads(done.stdout)["anonymous_kib"])
        print(f"{count:>12,} calls {found[-1] / 1024:>8.1f} MiB", flush=True)
    ratio = found[1] / found[0]
    return verdict(f"ratio {ratio:.2f} (goal <= {MEMORY_GOAL})", is_reached=ratio <= MEMORY_GOAL)


def _client(name: str, url: str, core: int, count: int) -> dict[str, float]:
    command = [*python_on(core), "-m", "millstream.speed.clients", name, url, str(count)]
    done = subprocess.run(command, check=True, capture_output=True)
    report: dict[str, float] = orjson.loads(done.stdout)
    return report


if __name__ == "__main__":
    sys.exit(main())
