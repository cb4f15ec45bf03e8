"""The speed of other harnesses with and without us: `python -m millstream.speed.harnesses [--samples N]`.

Runs an evaluation of Inspect's and a task of lm-eval's against nginx: with the harness's own provider, with ours, and
with ours again from the cache. Everything is measured in one run, alternating; only ratios count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

import orjson

from .server import NoServer, nginx, python_on

# So many times the samples: beside what begins and ends each run, a sample of lm-eval's costs little.
HARNESSES = {"inspect-ai": 1, "lm-eval": 5}
_TOLD = 2_000


class NoFigures(Exception):
    """A harness is missing or failed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed.harnesses", description=__doc__)
    parser.add_argument("--samples", type=int, default=200, help="samples of Inspect's evaluation (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (default 3)")
    options = parser.parse_args()
    if options.samples < 1 or options.rounds < 1:
        parser.error("--samples and --rounds must be >= 1")
    cores = sorted(os.sched_getaffinity(0))
    print(f"{len(cores)} cores; harness on core {cores[0]}, nginx on core {cores[-1]}; Python {sys.version.split()[0]}")
    print(f"median of {options.rounds} rounds\n")
    print(f"{'':<22} {'samples':>8} {'own /s':>9} {'ours /s':>9} {'stored /s':>10} {'ours/own':>9} {'stored/own':>11}")
    try:
        with nginx(cores[-1] if len(cores) > 1 else None) as url:
            for name, times in HARNESSES.items():
                print(_row(name, url, cores[0], times * options.samples, options.rounds), flush=True)
    except (NoServer, NoFigures) as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2
    return 0


def _row(name: str, url: str, core: int, count: int, rounds: int) -> str:
    command = [*python_on(core), "-m", f"{__package__}.harness_client", name, url, str(count), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoFigures(f"{name} came to no end: {done.stderr.strip()[-_TOLD:]}")
    data = orjson.loads(done.stdout.splitlines()[-1])
    rates = {way: [count / one[way] for one in data["rounds"]] for way in ("own", "cold", "cached")}
    plain, cold, cached = (statistics.median(rates[way]) for way in ("own", "cold", "cached"))
    # Of each round by itself: machines drift.
    ratios = [
        statistics.median(ours / plain for ours, plain in zip(rates[way], rates["own"], strict=True))
        for way in ("cold", "cached")
    ]
    title = f"{name} {data['version']}"
    return f"{title:<22} {count:>8,} {plain:>9,.0f} {cold:>9,.0f} {cached:>10,.0f} {ratios[0]:>9.2f} {ratios[1]:>11.2f}"


if __name__ == "__main__":
    sys.exit(main())
