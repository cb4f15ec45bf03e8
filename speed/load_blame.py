"""Two errors of load tests: omitting a server's stall, and blaming the server for the client's own slowness.

A server is stopped for two seconds while we and other installed tools measure it. Then the client is delayed in
different ways, and its own verdicts are counted. Prints tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from .load_command import LoadSetup, compared, ended, run_load, started
from .load_rivals import Rival, hey, wrk, wrk2
from .server import verdict
from .steady import Law, Steady, steady, stopped

STALL_S = 2.0
SECONDS, RATE, IN_FLIGHT = 20.0, 100.0, 4
_BRIEF = Law("uniform", 0.005, 0.015)
_LONG = Law("uniform", 0.08, 0.12)
_PERCENTS = (50.0, 90.0, 99.0, 99.9)
# Allowed deviation from the computed value: working off the backlog and waking up take time.
_STALL_SLACK_S = 0.06
_FORGOTTEN_S = STALL_S / 10


def stall(program: Path, folder: Path, client: int | None, core: int | None) -> bool:
    """Checks that an open loop's p99 shows a stall, and that a closed loop's without correction does not."""
    print(f"\na server of 5 to 15 ms that stands still for {STALL_S:g} of {SECONDS:g} s; latencies in ms")
    print(f"{'':<34} {'calls':>7} " + " ".join(f"{f'p{percent:g}':>8}" for percent in _PERCENTS))
    stalls: list[float] = []

    def ours(name: str, asked: LoadSetup) -> dict[float, float]:
        with _stalled(program, core, stalls) as server:
            said = run_load(server.url, asked, Path(tempfile.mkdtemp(dir=folder)))
        whole = HdrHistogram.decode(said.model.latency.hdr)
        latency = {percent: whole.get_value_at_percentile(percent) / 1e6 for percent in _PERCENTS}
        _row(Rival(name, said.model.begun, latency))
        return latency

    def theirs(run: Callable[[str], Rival | None], name: str) -> dict[float, float]:
        with _stalled(program, core, stalls) as server:
            rival = run(server.url)
        _row(rival if rival is None else Rival(name, rival.calls, rival.latency), name)
        return {} if rival is None else rival.latency

    opened = ours(f"millstream, {RATE:g}/s", LoadSetup(rate=RATE, seconds=SECONDS, warm_up_s=0.0, core=client))
    stall_s = stalls[-1]
    closed = ours(f"millstream, {IN_FLIGHT} in flight", LoadSetup(in_flight=IN_FLIGHT, seconds=SECONDS, warm_up_s=0.0))
    made_up = theirs(lambda url: wrk(url, 1, SECONDS, folder, client), "wrk, 1 connection, made up")
    plain = theirs(lambda url: hey(url, IN_FLIGHT, SECONDS, client), f"hey, {IN_FLIGHT} in flight")
    theirs(lambda url: wrk2(url, IN_FLIGHT, RATE, SECONDS, folder, client), f"wrk2, {RATE:g}/s")
    # The n-th longest of N calls waited for what was left of the stall: n / rate less than all of it.
    truth = stall_s - 0.01 * SECONDS + 0.01
    words = f"an open loop's p99 {1e3 * opened[99.0]:,.0f} ms, by arithmetic {1e3 * truth:,.0f}"
    reached = verdict(words, is_reached=abs(opened[99.0] - truth) <= _STALL_SLACK_S)
    words = f"a closed loop's p99 {1e3 * closed[99.0]:.1f} ms, which forgets the stall"
    reached &= verdict(words, is_reached=closed[99.0] < _FORGOTTEN_S)
    if made_up:
        words = f"wrk, which makes up what it omitted, tells {1e3 * made_up[99.0]:,.0f} ms of an open loop's p99"
        reached &= verdict(words, is_reached=abs(made_up[99.0] - opened[99.0]) <= 2 * _STALL_SLACK_S)
    if plain:
        words = f"hey, which makes up nothing, forgets it too: its closed loop's p99 is {1e3 * plain[99.0]:.1f} ms"
        reached &= verdict(words, is_reached=plain[99.0] < _FORGOTTEN_S)
    return reached


@contextmanager
def _stalled(program: Path, core: int | None, stalls: list[float]) -> Iterator[Steady]:
    with steady(_BRIEF, core=core, program=program) as server:
        freezer = threading.Thread(target=_freeze, args=(server, stalls))
        freezer.start()
        yield server
        freezer.join()


def _freeze(server: Steady, stalls: list[float]) -> None:
    """Stops the server in the middle of the test, which begins with the first call."""
    deadline = time.monotonic() + 60
    while not len(server.log().arrived) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(SECONDS / 3)
    began = time.perf_counter()
    with stopped(server.pid):
        time.sleep(STALL_S)
    stalls.append(time.perf_counter() - began)


def _row(rival: Rival | None, name: str = "") -> None:
    if rival is None:
        print(f"{name:<34} not installed")
        return
    cells = " ".join(f"{1e3 * rival.latency[p]:>8.1f}" if p in rival.latency else f"{'':>8}" for p in _PERCENTS)
    print(f"{rival.name:<34} {rival.calls:>7,} {cells}", flush=True)


def blame(program: Path, folder: Path, client: int | None, core: int | None, repeats: int) -> bool:
    """Counts runs that were wrong, and those that said that the client was the bottleneck."""
    print("\nthe client held up, answers of 80 to 120 ms")
    print(f"{'':<44} {'runs':>5} {'off':>5} {'said so':>8} {'in silence':>11} {'for nothing':>12}")
    cases: list[tuple[str, LoadSetup, float, int]] = [
        ("nothing, 50/s", LoadSetup(rate=50.0, seconds=4.0, core=client), 0.0, 0),
        ("nothing, 500/s", LoadSetup(rate=500.0, seconds=4.0, core=client), 0.0, 0),
        ("stopped 5 ms ten times a second, 100/s", LoadSetup(rate=100.0, seconds=4.0), 0.005, 0),
        ("stopped 20 ms ten times a second, 100/s", LoadSetup(rate=100.0, seconds=4.0), 0.02, 0),
        ("stopped 60 ms ten times a second, 100/s", LoadSetup(rate=100.0, seconds=4.0), 0.06, 0),
        ("stopped 20 ms ten times a second, 20 in flight", LoadSetup(in_flight=20, seconds=4.0), 0.02, 0),
        ("busy programs on all cores, 200/s", LoadSetup(rate=200.0, seconds=4.0), 0.0, 2 * (os.cpu_count() or 1)),
        ("10,000/s asked", LoadSetup(rate=10_000.0, seconds=3.0, core=client), 0.0, 0),
    ]
    silent = 0
    for name, setup, held_s, hogs in cases:
        pairs = [_tried(program, folder, core, setup, held_s, hogs) for _ in range(repeats)]
        off, stated = sum(one for one, _ in pairs), sum(other for _, other in pairs)
        unsaid = sum(one and not other for one, other in pairs)
        idle = sum(other and not one for one, other in pairs)
        silent += unsaid
        print(f"{name:<44} {len(pairs):>5} {off:>5} {stated:>8} {unsaid:>11} {idle:>12}", flush=True)
    return verdict(f"{silent} runs were off in silence", is_reached=not silent)


def _tried(
    program: Path, folder: Path, core: int | None, setup: LoadSetup, held_s: float, hogs: int
) -> tuple[bool, bool]:
    """Returns whether a run was wrong, and whether it said so."""
    place = Path(tempfile.mkdtemp(dir=folder))
    with (
        _busy(hogs),
        steady(_LONG, core=core, program=program) as server,
        started(server.url, setup, place, os.environ) as process,
    ):
        if held_s:
            freezer = threading.Thread(target=_hold, args=(server, process, held_s, setup.seconds))
            freezer.start()
            report = ended(process, setup, place)
            freezer.join()
        else:
            report = ended(process, setup, place)
        log = server.log()
    truth = report.measured(log.arrived, log.took)
    is_off = not all(each.agrees for each in compared(report.model.latency, truth))
    if setup.in_flight is None:
        is_off |= abs(report.model.rate - setup.rate) > 0.01 * setup.rate
    return is_off, bool(report.reasons)


def _hold(server: Steady, process: subprocess.Popen[bytes], held_s: float, seconds: float) -> None:
    """Stops the client repeatedly while calls are in flight, like a machine that is busy otherwise."""
    while not len(server.log().arrived) and process.poll() is None:
        time.sleep(0.05)
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with stopped(process.pid):
            time.sleep(held_s)
        time.sleep(0.1 - held_s)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
