"""The gateway's speed: `python -m millstream.speed.gateway [--quick] [--cache DIR]`.

Measures cached answers a second with the gateway on one core, client and provider on another; and the time that the
gateway adds to an uncached call, compared with the same call made directly, one at a time and 32 at once, alternating A
B A B.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from msgspec import Struct

from .gateway_load import GatewayLoad, GatewayTimes, measure
from .server import verdict

CACHED_GOAL = 2_000
ADDED_GOAL_MS = 1.0
DISTINCT = 500
ROUNDS = 5
# Requests at once, how many of them to each side of a pair, and how long the provider takes, in seconds.
_ADDED = ((1, 100, (0.02, 0.02)), (32, 800, (0.1, 0.3)))


class Gateway(Struct, frozen=True):
    """A running gateway, in a process of its own."""

    port: int
    pid: int

    def cpu_s(self) -> float:
        """Returns the CPU time that its process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(prog="millstream.speed.gateway", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything: a look, not a result")
    parser.add_argument("--cache", metavar="DIR", help="folder for the cache, to measure another disk")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    core, other = cores[0], cores[-1]
    where = f"gateway on core {core}, client and provider on core {other}"
    print(f"{len(cores)} cores; {where}; Python {sys.version.split()[0]}")
    os.sched_setaffinity(0, {other})
    try:
        with tempfile.TemporaryDirectory(prefix="millstream-bench-", dir=options.cache) as name:
            return uvloop.run(_all(Path(name), core, 10 if options.quick else 1))
    except NoGateway as error:
        print(f"millstream bench: {error}", file=sys.stderr)
        return 2


class NoGateway(Exception):
    """The gateway did not start."""


async def _all(folder: Path, core: int, scale: int) -> int:
    with provider() as port, gateway(f"http://127.0.0.1:{port}/v1", folder, core) as running:
        reached = [await cached(running, 20_000 // scale)]
        for at_once, count, delay_s in _ADDED:
            reached.append(await added(running, port, at_once, max(at_once, count // scale), delay_s))
    return 0 if all(reached) else 3


async def cached(running: Gateway, count: int) -> bool:
    """Measures answers from the cache, with prompts that were answered before."""
    await measure(GatewayLoad(running.port, DISTINCT, DISTINCT, 32, "stored", trial=0))
    print(f"\ncached, {count:,} requests, 16 at once")
    print(f"{'answers/s':>12} {'median ms':>10} {'p99 ms':>8} {'CPU µs':>8}")
    rates = []
    for _ in range(ROUNDS):
        before = running.cpu_s()
        measured = await measure(GatewayLoad(running.port, count, DISTINCT, 16, "stored", trial=0))
        if measured.cached < count:
            raise SystemExit(f"{count - measured.cached:,} of {count:,} answers did not come from the cache")
        rates.append(count / measured.seconds)
        cpu = 1e6 * (running.cpu_s() - before) / count
        print(f"{rates[-1]:>12,.0f} {measured.median_ms:>10.2f} {measured.p99_ms:>8.2f} {cpu:>8.0f}", flush=True)
    middle = statistics.median(rates)
    return verdict(f"{middle:,.0f} cached answers/s (goal >= {CACHED_GOAL:,})", is_reached=middle >= CACHED_GOAL)


async def added(running: Gateway, port: int, at_once: int, count: int, delay_s: tuple[float, float]) -> bool:
    """Measures the time of a call beyond the provider's own, through the gateway and directly."""
    low, high = (1e3 * seconds for seconds in delay_s)
    print(f"\nuncached, {count:,} calls, {at_once} at once, to a provider that takes {low:g} to {high:g} ms")
    print(f"{'direct ms':>12} {'gateway ms':>11} {'added ms':>9} {'p99 added':>10} {'CPU µs':>8}")
    differences = []
    for number in range(ROUNDS):
        mark = f"pair {at_once} {number}"
        direct = await measure(GatewayLoad(port, count, count, at_once, mark, delay_s))
        before = running.cpu_s()
        through: GatewayTimes = await measure(GatewayLoad(running.port, count, count, at_once, mark, delay_s))
        cpu = 1e6 * (running.cpu_s() - before) / count
        differences.append(through.median_ms - direct.median_ms)
        tail = through.p99_ms - direct.p99_ms
        figures = f"{direct.median_ms:>12.2f} {through.median_ms:>11.2f} {differences[-1]:>9.2f}"
        print(f"{figures} {tail:>10.2f} {cpu:>8.0f}", flush=True)
    middle = statistics.median(differences)
    return verdict(f"{middle:.2f} ms added (goal <= {ADDED_GOAL_MS:g})", is_reached=middle <= ADDED_GOAL_MS)


@contextmanager
def provider() -> Iterator[int]:
    """Runs the provider on the client's core; yields its port."""
    command = [sys.executable, "-P", "-m", "millstream.speed.gateway_provider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline()
            if not port:
                raise NoGateway("the provider did not start")
            yield int(port)
        finally:
            process.terminate()


@contextmanager
def gateway(url: str, folder: Path, core: int) -> Iterator[Gateway]:
    """Runs `millstream serve` on one core, without limits."""
    port_file = folder / "port"
    command = [
        *(sys.executable, "-P", "-m", "millstream", "serve", "--port", "0", "--port-file", str(port_file)),
        *("--base-url", url, "--cache", str(folder / "cache"), "--concurrency", "256"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            os.sched_setaffinity(process.pid, {core})
            deadline = time.monotonic() + 20
            while not port_file.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NoGateway("the gateway did not start")
                time.sleep(0.02)
            yield Gateway(int(port_file.read_text()), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
