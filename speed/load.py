"""Whether load tests measure correctly: `python -m millstream.speed.load [--quick]`.

Runs `millstream load` on one core against servers on another: one in C with a known latency law and a log of every
call, and nginx, compared with wrk. A wrong figure is accepted only if the command says that the client was the
bottleneck.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec import Struct

from .load_blame import blame, stall
from .load_command import CommandFailure, CommandResult, LoadSetup, PercentileComparison, Times_s, compared, run_load
from .load_rivals import wrk
from .server import NoServer, nginx, verdict
from .steady import Law, Log, built, steady

# Up to this rate an idle machine must not be the bottleneck.
NO_EXCUSE = 500.0
RATE_MOST = 0.01
# Calls arrive up to a millisecond late, one in a hundred later, so shorter gaps can't be measured.
FINEST_S = 0.002
# The law of Kolmogorov and Smirnov: in one of a thousand samples D √n is larger.
KS_MOST = 1.95
_LAWS = (Law("uniform", 0.08, 0.12), Law("lognormal", 0.06, 0.5))


class CorePlacement(Struct, frozen=True):
    """The cores of client and server (None: any), and the settings of the tests."""

    client: int | None
    server: int | None
    program: Path
    folder: Path
    seconds: float
    repeats: int

    def fresh(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed.load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs: a look, not a result")
    parser.add_argument("--only", choices=sorted(_PARTS), help="one part of it")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    client, server = (cores[0], cores[-1]) if len(cores) > 1 else (None, None)
    print(f"{len(cores)} cores; client on core {client}, servers on core {server}; Python {sys.version.split()[0]}")
    try:
        with tempfile.TemporaryDirectory(prefix="millstream-load-") as name:
            seconds, repeats = (4.0, 2) if options.quick else (20.0, 3)
            place = CorePlacement(client, server, built(Path(name)), Path(name), seconds, repeats)
            parts = _PARTS.values() if options.only is None else [_PARTS[options.only]]
            reached = [part(place) for part in parts]
    except (NoServer, CommandFailure) as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2
    return 0 if all(reached) else 3


class LoadComparison(Struct, frozen=True):
    """One test compared with the truth. `is_rate_kept`: the rate is right to one percent."""

    compared: list[PercentileComparison]
    is_rate_kept: bool
    is_bound: bool

    @property
    def is_off(self) -> bool:
        return not self.is_rate_kept or not all(each.agrees for each in self.compared)


def against_law(place: CorePlacement) -> bool:
    """Compares the command's percentiles with the server's times for the same calls."""
    reached = True
    for law in _LAWS:
        print(f"\n{law.name} latencies, {place.seconds:g} s a run, ms; allowed is 2% + 1 ms")
        _head()
        for rate in (50.0, 200.0, 500.0, 2_000.0):
            runs = []
            for seed in range(place.repeats):
                report, log = _served(
                    place, law, LoadSetup(rate=rate, seconds=place.seconds, seed=seed, core=place.client)
                )
                truth = report.measured(log.arrived, log.took)
                # Without the warm-up, in whose first call a connection is made.
                came = report.measured(log.arrived, log.arrived)
                kept = (len(came) - 1) / (came[-1] - came[0])
                runs.append(_run(rate, report, truth, min((kept, report.model.rate), key=lambda r: -abs(r - rate))))
            reached &= _judged(rate, runs)
    return reached


def against_nginx(place: CorePlacement) -> bool:
    """Compares the latencies of nginx, which answers at once, with those that wrk measures over one connection before
    each test."""
    print(f"\nnginx, {place.seconds:g} s a run, ms; the truth is what wrk tells of one connection")
    _head()
    reached = True
    with nginx(place.server) as url:
        for rate in (50.0, 200.0, 500.0, 2_000.0):
            runs = []
            for seed in range(place.repeats):
                rival = wrk(url, 1, 2.0, place.fresh(), place.client)
                if rival is None:
                    print("wrk is not installed: sh speed/install-servers.sh")
                    return False
                setup = LoadSetup(rate=rate, seconds=place.seconds, seed=seed, core=place.client)
                report = run_load(url, setup, place.fresh())
                runs.append(_run(rate, report, rival.latency, report.model.rate))
            reached &= _judged(rate, runs)
    return reached


def arrivals(place: CorePlacement) -> bool:
    """Compares the server's log of arrivals with the requested process and with the due times."""
    print(
        f"\narrivals on the server's log: D √n of Kolmogorov and Smirnov (at most {KS_MOST}) for gaps beyond 2 ms; the"
    )
    print(
        "dispersion of counts in windows of 0.1 s, or ten calls, and that of when they were due; how late they came, ms"
    )
    columns = f"{'counts':>7} {'due':>6} {'p50 late':>9} {'p90 late':>9} {'p99 late':>9}"
    print(f"{'calls/s':>8} {'process':>9} {'D √n':>6} {columns}")
    reached = True
    for rate in (50.0, 200.0, 500.0):
        for process, burstiness in (("constant", 0.0), ("poisson", 1.0), ("gamma", 2.0)):
            setup = LoadSetup(
                rate=rate, arrivals=process, burstiness=burstiness, seconds=place.seconds, core=place.client
            )
            # Where the client was the bottleneck, the test is repeated.
            tries = (_is_right(place, setup) for _ in range(place.repeats))
            reached &= next((is_right for is_right in tries if is_right is not None), False)
    return verdict("each process is on the server's log what it claims to be", is_reached=reached)


def _is_right(place: CorePlacement, setup: LoadSetup) -> bool | None:
    """Returns whether the arrivals are right; None if the client was the bottleneck."""
    report, log = _served(place, _LAWS[0], setup)
    came = np.sort(log.arrived)
    late = (came - report.due) - np.min(came - report.due)
    window = max(10 / setup.rate, 0.1)
    distance = _distance(np.diff(came), setup.rate, setup.burstiness) if setup.burstiness else 0.0
    counts, due = _dispersion(came, window), _dispersion(report.due, window)
    # A call that is late by a little may fall into the next window.
    is_right = distance <= KS_MOST and abs(counts - due) <= 0.25 * max(1.0, due)
    tails = " ".join(f"{1000 * float(np.quantile(late, share)):>9.2f}" for share in (0.5, 0.9, 0.99))
    word = f"  the client was the bottleneck: {report.reasons[0]}" if report.reasons else "" if is_right else "  MISSED"
    row = f"{setup.rate:>8g} {setup.arrivals:>9} {distance:>6.2f} {counts:>7.2f} {due:>6.2f} {tails}{word}"
    print(row, flush=True)
    return None if report.reasons else is_right


def _served(place: CorePlacement, law: Law, asked: LoadSetup) -> tuple[CommandResult, Log]:
    with steady(law, seed=asked.seed, core=place.server, program=place.program) as server:
        said = run_load(server.url, asked, place.fresh())
        return said, server.log()


def _head() -> None:
    columns = " ".join(f"{f'p{percent}':>7} {'truth':>7} {'off':>6}" for percent in (50, 90, 99))
    print(f"{'calls/s':>8} {'rate':>9} {columns} {'CPU':>5}")


def _run(rate: float, said: CommandResult, truth: Times_s | dict[float, float], achieved: float) -> LoadComparison:
    if isinstance(truth, dict):
        found = [each for each in (_beside(said, percent, value) for percent, value in truth.items()) if each]
    else:
        found = compared(said.model.latency, truth)
    cells = " ".join(f"{1e3 * one.ours:>7.2f} {1e3 * one.truth:>7.2f} {1e3 * one.off:>+6.2f}" for one in found)
    word = f"  the client was the bottleneck: {said.reasons[0]}" if said.reasons else ""
    print(f"{rate:>8g} {achieved:>9.2f} {cells:<65} {said.load.client.cpu_mean:>5.0%}{word}", flush=True)
    return LoadComparison(found, abs(achieved - rate) <= RATE_MOST * rate, bool(said.reasons))


def _beside(said: CommandResult, percent: float, truth: float) -> PercentileComparison | None:
    ours = said.model.latency.at(percent)
    return None if ours is None or percent > 99 else PercentileComparison(percent, ours.value_s, truth)


def _judged(rate: float, runs: list[LoadComparison]) -> bool:
    silent = sum(run.is_off and not run.is_bound for run in runs)
    if silent:
        return verdict(f"{rate:g}/s: {silent} of {len(runs)} runs are off and don't say so", is_reached=False)
    if rate <= NO_EXCUSE and all(run.is_bound for run in runs):
        return verdict(f"{rate:g}/s: this machine was too busy in each run to tell", is_reached=False)
    bound = sum(run.is_bound for run in runs)
    rest = f", {bound} of {len(runs)} say that the client was the bottleneck" if bound else ""
    return verdict(f"{rate:g}/s: what is told agrees, rate and percentiles{rest}", is_reached=True)


def _distance(gaps: Times_s, rate: float, burstiness: float) -> float:
    """Returns the Kolmogorov-Smirnov distance of measurable gaps from their law, times the root of their number."""

    def share_below(gap: float) -> float:
        scaled = gap * rate / burstiness
        return 1 - math.exp(-scaled) if burstiness == 1 else math.erf(math.sqrt(scaled))

    long = np.sort(gaps[gaps > FINEST_S])
    below = share_below(FINEST_S)
    law = (np.array([share_below(gap) for gap in long]) - below) / (1 - below)
    ranks = np.arange(len(long))
    widest = max(float(np.max((ranks + 1) / len(long) - law)), float(np.max(law - ranks / len(long))))
    return widest * math.sqrt(len(long))


def _dispersion(times: Times_s, window_s: float) -> float:
    counts = np.histogram(times, np.arange(times[0] - window_s / 2, times[-1], window_s))[0]
    return float(counts.var(ddof=1) / counts.mean())


_PARTS: dict[str, Callable[[CorePlacement], bool]] = {
    "law": against_law,
    "nginx": against_nginx,
    "arrivals": arrivals,
    "stall": lambda place: stall(place.program, place.folder, place.client, place.server),
    "blame": lambda place: blame(place.program, place.folder, place.client, place.server, place.repeats),
}


if __name__ == "__main__":
    sys.exit(main())
