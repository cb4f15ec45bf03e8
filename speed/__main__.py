"""The speed of what users run, as tables: `python -m millstream.speed [--rounds N] [--calls N] [PART…]`.

Parts: `calls` (`ms.Engine`, and `run millstone` over about as many prompts), `grid` (the full grid: cold, from the
cache, asked again, verified and reported), `latency` (500 to 10,000 calls in flight of half a second each), `memory`
(of ten times the calls), `start` (until a command does its work) and `frames` (what one call costs inside). Everything
is measured as whole processes, start included, side by side and interleaved, since machines drift: only ratios count,
and they are to the floor (floor.py) on prompts of the same lengths; of `start`, seconds. The client has one core, the
server another.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import orjson
from msgspec import Struct

from ..bench.millstone.dataset import load, select
from ..bench.millstone.grid import Grid
from ..fixtures import full_size
from .clients import MODEL, RPM, TPM
from .floor import IN_FLIGHT, PROMPT_CHARS
from .frontcount import CallCost
from .server import NoServer, nginx, python_on, verdict
from .start import START_GOALS, Starts
from .steady import Law, steady

PARTS = ("calls", "grid", "latency", "memory", "start", "frames")
ENGINE_GOAL = 0.36
GRID_GOAL = 0.34
# What follows on a grid that is stored, as shares of the floor's time for as many calls.
STORED_GOALS = {"from the cache": 0.85, "asked again": 0.30, "verify": 0.50, "report": 0.80}
# Of the rate that calls of half a second allow, by how many are in flight; 10,000 of them have to hold, no more.
LATENCY_S = 0.5
LATENCY_GOALS = {500: 0.95, 2_000: 0.90, 10_000: 0.0}
MEMORY_GOAL = 1.10
ISSUES = 107
# An installed program has its bytecode, whatever this shell asks of Python.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Client(Struct, frozen=True):
    """A client: its command, to be run in an empty folder, its calls, and the floor it is compared with."""

    name: str
    command: list[str]
    calls: int
    floor: str


class Use(Struct, frozen=True):
    """What a whole process took, and what it printed."""

    seconds: float
    cpu_s: float
    printed: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (default 7)")
    parser.add_argument("--calls", type=int, default=50_000, help="calls of a round; for memory 2 and 20 x (50,000)")
    parser.add_argument("--issues", type=int, default=ISSUES, help=f"of part grid; {ISSUES} are all, 105,930 prompts")
    options = parser.parse_args()
    unknown = set(options.parts).difference(PARTS)
    if unknown:
        parser.error(f"unknown part {min(unknown)}: name {', '.join(PARTS)}")
    cores = sorted(os.sched_getaffinity(0))
    client, server = cores[0], cores[-1]
    print(f"{len(cores)} cores; client on core {client}, server on core {server}; Python {sys.version.split()[0]}")
    try:
        with (
            nginx(server if len(cores) > 1 else None) as url,
            tempfile.TemporaryDirectory(prefix="millstream-bench-") as name,
        ):
            bench = Bench(url, python_on(client), Path(name), options)
            reached = [getattr(bench, part)() for part in options.parts or PARTS]
    except NoServer as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2
    return 0 if all(reached) else 3


class Bench:
    """The parts of one run of the bench, against one server, with `python` as the command of a bound interpreter."""

    def __init__(self, url: str, python: list[str], folder: Path, options: argparse.Namespace) -> None:
        self._url = url
        self._python = python
        self._folder = folder
        self._options = options
        self._write_bytecode()

    def _write_bytecode(self) -> None:
        commands = [client.command for client in self._grid_clients(1)]
        for command in (*commands, *(self._command("clients", 100, name) for name in ("bare", "engine"))):
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                _timed(command, folder)

    def calls(self) -> bool:
        """Compares the floor, bare aiohttp, `ms.Engine` and `run millstone`, with about the same number of calls."""
        count = self._options.calls
        clients = [
            Client("floor", self._command("floor", count, PROMPT_CHARS), count, "floor"),
            Client("bare aiohttp", self._command("clients", count, "bare"), count, "floor"),
            Client("ms.Engine", self._command("clients", count, "engine"), count, "floor"),
            *self._grid_clients(max(1, round(count * ISSUES / 105_930))),
        ]
        print(f"\n{count:,} calls of {PROMPT_CHARS:,} characters, and a part of the grid, {IN_FLIGHT} in flight")
        share = self._compared(clients)["ms.Engine"]
        return verdict(f"ms.Engine {share:.3f} of the floor (goal >= {ENGINE_GOAL})", is_reached=share >= ENGINE_GOAL)

    def grid(self) -> bool:
        """Measures the grid from the command to printed scores: cold, then what follows on its answers, each round."""
        floor, cold = self._grid_clients(self._options.issues)
        print(f"\nthe grid of {cold.calls:,} prompts, from the command to printed scores")
        warm, program = [*cold.command, "--out", "again"], [*self._python, "-m", "millstream"]
        commands = {
            "cold": cold.command,
            "from the cache": warm,
            "asked again": warm,
            "verify": [*program, "verify", "again"],
            "report": [*program, "report", "again"],
        }
        uses: dict[str, list[Use]] = {name: [] for name in ("floor", *commands)}
        for turn in range(1, self._options.rounds + 1):
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                uses["floor"].append(_timed(floor.command, folder))
                for name, command in commands.items():
                    uses[name].append(_timed(command, folder))
            print(f"round {turn}, seconds: {', '.join(f'{name} {use[-1].seconds:.2f}' for name, use in uses.items())}")
        print(f"{'median (least to most)':<24}{'seconds':>24}{'CPU seconds':>24}{'x the floor':>24}")
        shares = {}
        for name, timed in uses.items():
            ratios = [one.seconds / other.seconds for one, other in zip(timed, uses["floor"], strict=True)]
            seconds, cpu = [use.seconds for use in timed], [use.cpu_s for use in timed]
            print(f"{name:<24}{_spread(seconds, '.2f'):>24}{_spread(cpu, '.2f'):>24}{_spread(ratios, '.2f'):>24}")
            shares[name] = statistics.median(ratios)
        rate = 1 / shares["cold"]
        text = f"cold: {rate:.3f} of the floor's rate (goal >= {GRID_GOAL})"
        reached = [verdict(text, is_reached=rate >= GRID_GOAL)]
        for name, goal in STORED_GOALS.items():
            text = f"{name}: {shares[name]:.2f} of the floor's time (goal <= {goal:.2f})"
            reached.append(verdict(text, is_reached=shares[name] <= goal))
        return all(reached)

    def latency(self) -> bool:
        """Measures how much of the ideal rate is reached where an answer takes half a second."""
        print(f"\ncalls of {LATENCY_S} s each, of the ideal rate, start and connections included")
        cores, reached = sorted(os.sched_getaffinity(0)), []
        for in_flight, goal in LATENCY_GOALS.items():
            turns = max(2, round((60 if goal else 6) * self._options.calls / 50_000))
            shares = []
            for _ in range(self._options.rounds if goal else 1):
                law = Law("uniform", LATENCY_S, LATENCY_S)
                with steady(law, core=cores[-1] if len(cores) > 1 else None) as server:
                    arguments = [server.url, str(turns * in_flight), "engine", str(in_flight)]
                    use = _timed([*self._python, "-m", "millstream.speed.clients", *arguments], self._folder)
                shares.append(turns * LATENCY_S / use.seconds)
            text = f"{in_flight:>6,} in flight: {_spread(shares, '.3f')} of {in_flight / LATENCY_S:,.0f} calls/s"
            is_reached = statistics.median(shares) >= goal
            reached.append(verdict(f"{text} (goal >= {goal})" if goal else f"{text}, no error", is_reached=is_reached))
        return all(reached)

    def memory(self) -> bool:
        """Compares the memory of `ms.Engine` after twice the calls with that after twenty times, and the CPU time of a
        call in the first and the last tenth of these: the cache is empty then, or has nearly all of them."""
        print("\nms.Engine's anonymous memory after its last call, and CPU a call in its first and last tenth")
        kib, cpu = [], [1.0, 1.0]
        for count in (2 * self._options.calls, 20 * self._options.calls):
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                printed = orjson.loads(_timed(self._command("clients", count, "engine"), folder).printed)
            kib.append(printed["anonymous_kib"])
            cpu = [printed["first_us"], printed["last_us"]]
            print(f"{count:>12,} calls {kib[-1] / 1024:>8.1f} MiB {cpu[0]:>8.0f} µs {cpu[1]:>8.0f} µs", flush=True)
        memory, late = kib[1] / kib[0], cpu[1] / cpu[0]
        reached = [
            verdict(f"memory x {memory:.2f} (goal <= {MEMORY_GOAL})", is_reached=memory <= MEMORY_GOAL),
            verdict(f"CPU a call x {late:.2f} at the end (goal <= {MEMORY_GOAL})", is_reached=late <= MEMORY_GOAL),
        ]
        return all(reached)

    def start(self) -> bool:
        """Measures how long it takes until commands do their work."""
        print("\nfrom the command to its work, on the full data and one core")
        starts = Starts(self._folder, _ENVIRONMENT).medians(self._options.rounds, min(os.sched_getaffinity(0)))
        reached = []
        for name, goal in START_GOALS.items():
            text = f"{name}: {starts[name]:.3f} s (goal <= {goal:.2f})"
            reached.append(verdict(text, is_reached=starts[name] <= goal))
        return all(reached)

    def frames(self) -> bool:
        """Prints what one call of `run` and of `ask` costs inside."""
        printed = _timed(self._command("frontcount"), self._folder).printed
        print("\na call inside ms.Engine: Python frames, tasks and futures")
        for verb, cost in msgspec.json.decode(printed, type=dict[str, CallCost]).items():
            print(f"{verb:>6} {cost.frames:>8.1f} {cost.tasks:>6.2f} {cost.futures:>6.2f}")
        return True

    def _command(self, module: str, *arguments: object) -> list[str]:
        return [*self._python, "-m", f"millstream.speed.{module}", self._url, *map(str, arguments)]

    def _grid_clients(self, issues: int) -> tuple[Client, Client]:
        """Returns `run millstone` over the first issues, after a floor on the same prompts' lengths."""
        data, lengths = full_size.ensure(self._folder / "data"), self._folder / f"lengths-{issues}"
        grid = Grid(select(load(data), limit=issues))
        lengths.write_text("\n".join(str(len(item.prompt)) for item in grid))
        floor = "floor, grid's lengths"
        command = [
            *(*self._python, "-m", "millstream", "run", full_size.BENCHMARK, "--model", MODEL, "--base-url", self._url),
            *("--rpm", str(RPM), "--tpm", str(TPM), "--concurrency", str(IN_FLIGHT), "--limit", str(issues)),
            *("--dataset", str(data), "--cache", "cache", "--out", "run", "--json", "--no-progress", "--no-report"),
            # nginx reports the same tokens for every prompt, as a server does that reads prompts in part.
            *("--read", "literal"),
        ]
        return (
            Client(floor, self._command("floor", len(grid), lengths), len(grid), floor),
            Client("run millstone", command, len(grid), floor),
        )

    def _compared(self, clients: Sequence[Client]) -> dict[str, float]:
        """Runs the clients in turn, round by round. Prints their medians and spread; returns the median ratios."""
        uses: dict[str, list[Use]] = {client.name: [] for client in clients}
        for turn in range(1, self._options.rounds + 1):
            for client in clients:
                with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                    uses[client.name].append(_timed(client.command, folder))
            line = ", ".join(f"{client.name} {client.calls / uses[client.name][-1].seconds:,.0f}" for client in clients)
            print(f"round {turn}, calls/s: {line}", flush=True)
        print(f"{'median (least to most)':<24}{'calls/s':>26}{'CPU µs a call':>17}{'of the floor':>24}")
        shares = {}
        for client in clients:
            timed, floor = uses[client.name], uses[client.floor]
            ratios = [one.seconds / other.seconds for one, other in zip(floor, timed, strict=True)]
            cpu = [1e6 * use.cpu_s / client.calls for use in timed]
            rates = [client.calls / use.seconds for use in timed]
            columns = f"{_spread(rates, ',.0f'):>26}{_spread(cpu, '.0f'):>17}{_spread(ratios, '.3f'):>24}"
            print(f"{client.name:<24}{columns}", flush=True)
            shares[client.name] = statistics.median(ratios)
        return shares


def _spread(figures: Sequence[float], form: str) -> str:
    return f"{statistics.median(figures):{form}} ({min(figures):{form}} to {max(figures):{form}})"


def _timed(command: list[str], folder: Path | str) -> Use:
    """Runs a process in a folder to its end."""
    began, cpu_s = time.perf_counter(), _children_cpu_s()
    done = subprocess.run(command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    use = Use(time.perf_counter() - began, _children_cpu_s() - cpu_s, done.stdout)
    if done.returncode:
        raise SystemExit(f"millstream bench: {' '.join(command)} ended with code {done.returncode}: {done.stderr}")
    return use


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
