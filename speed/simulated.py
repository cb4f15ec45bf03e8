"""The simulated outside for the speed of conversations: provider, web and search engine in one other process.

Owns that process's life and the traffic in its log. Knows no client.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from msgspec import Struct

_START_S = 60.0


class NoOutside(Exception):
    """The simulated outside did not start."""


class SimulatedWorld(Struct, frozen=True):
    """The size of the simulated web, and its response times."""

    pages: int
    hosts: int
    model_s: float = 0.0
    page_s: float = 0.0


class Traffic(Struct, frozen=True):
    """The requests in the lane of all pages, as seen by the web; times are the system's monotonic clock's."""

    pages: int
    distinct: int
    robots: int
    first_at: float
    last_at: float

    @property
    def requests(self) -> int:
        return self.pages + self.robots


class SimulatedPorts(Struct, frozen=True):
    """The ports that the simulated outside listens on."""

    provider: int
    web: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.provider}/v1"

    @property
    def search_url(self) -> str:
        return f"http://127.0.0.1:{self.web}"

    @property
    def allow_host(self) -> str:
        return f"*.sim.test=127.0.0.1:{self.web}"

    def traffic(self) -> Traffic:
        with urllib.request.urlopen(f"{self.search_url}/sim/log", timeout=60) as answer:
            rows = [row for row in map(orjson.loads, answer) if row["kind"] in ("page", "hop", "robots")]
        if not rows:
            raise NoOutside("no page was asked for")
        paths = [(row["host"], row["path"]) for row in rows if row["kind"] != "robots"]
        times = [row["at"] for row in rows]
        return Traffic(len(paths), len(set(paths)), len(rows) - len(paths), min(times), max(times))


@contextmanager
def simulated(world: SimulatedWorld, dataset: Path, folder: Path) -> Iterator[SimulatedPorts]:
    """Runs the simulated outside within the context. Every page is intact, since only the client is measured."""
    ports = {name: folder / f"{name}.port" for name in ("provider", "web")}
    command = [
        *(sys.executable, "-P", "-m", "millstream", "sim", "--web", "--until-eof", "--no-sample-data"),
        *("--dataset", str(dataset), "--latency", f"{world.model_s:g}", "--page-latency", f"{world.page_s:g}"),
        *("--pages", str(world.pages), "--hosts", str(world.hosts), "--trouble-share", "0"),
        *("--port", "0", "--port-file", str(ports["provider"])),
        *("--web-port", "0", "--web-port-file", str(ports["web"])),
    ]
    log = folder / "outside.log"
    with log.open("wb") as sink, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sink, stderr=sink) as process:
        assert process.stdin is not None
        try:
            deadline = time.monotonic() + _START_S
            # Its own file comes last.
            while not ports["provider"].exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NoOutside(f"the simulated outside did not start: {log.read_text().strip()}")
                time.sleep(0.02)
            yield SimulatedPorts(*(int(ports[name].read_text()) for name in ("provider", "web")))
        finally:
            process.stdin.close()
            process.wait()
