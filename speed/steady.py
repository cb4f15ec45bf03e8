"""A server with a chosen latency law, compiled from steady.c, and its log of every call.

Owns its build, its life and its core. Its log has its own clock's times.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct

from .server import NoServer

_SOURCE = Path(__file__).with_name("steady.c")
_START_S = 20.0


class Law(Struct, frozen=True):
    """The law of response times: `uniform` from `a` to `b` seconds, or `lognormal` of median `a` seconds and sigma `b`.
    A streamed answer has `pieces`, `gap_s` apart."""

    name: str
    a: float
    b: float
    pieces: int = 1
    gap_s: float = 0.0


class Log(Struct, frozen=True):
    """A row for each call, in order of arrival: when it arrived, its drawn response time, and when it was answered."""

    arrived: np.ndarray[tuple[int], np.dtype[np.float64]]
    drawn: np.ndarray[tuple[int], np.dtype[np.float64]]
    answered: np.ndarray[tuple[int], np.dtype[np.float64]]

    @property
    def took(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return self.answered - self.arrived


class Steady(Struct, frozen=True):
    """A running server."""

    port: int
    pid: int

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    def log(self) -> Log:
        """Returns the log of the calls answered so far."""
        with urllib.request.urlopen(f"{self.origin}/log", timeout=60) as answer:
            rows = np.array([line.split() for line in answer], dtype=np.float64).reshape(-1, 3)
        rows = rows[rows[:, 2] > 0]
        return Log(rows[:, 0], rows[:, 1], rows[:, 2])


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def built(folder: Path) -> Path:
    """Compiles the program into a folder; returns its path."""
    path = compiler()
    if path is None:
        raise NoServer("no C compiler was found: install one (Debian: sudo apt-get install gcc libc6-dev)")
    program = folder / "steady"
    command = [path, "-O2", "-D_GNU_SOURCE", "-pthread", "-o", str(program), str(_SOURCE), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoServer(f"{path} could not compile {_SOURCE.name}: {done.stderr.strip()[:500]}")
    return program


@contextmanager
def steady(law: Law, *, seed: int = 1, core: int | None = None, program: Path | None = None) -> Iterator[Steady]:
    """Runs the server within the context."""
    with tempfile.TemporaryDirectory(prefix="millstream-steady-") as name:
        folder = Path(name)
        program = built(folder) if program is None else program
        port = folder / "port"
        command = [str(program), str(port), str(seed), law.name, str(law.a), str(law.b)]
        process = subprocess.Popen([*command, str(law.pieces), str(law.gap_s)])
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            deadline = time.monotonic() + _START_S
            while not port.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NoServer("the server with a known law did not start")
                time.sleep(0.01)
            yield Steady(int(port.read_text()), process.pid)
        finally:
            process.kill()
            process.wait()


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Suspends processes within the context, like a server that swaps or collects; connections to them stay open."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
