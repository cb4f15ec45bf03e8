"""How long a command takes until it does its work, on the full data: its help, a plan, the first call on the wire.

Whole processes on one core, beside a cache that holds nothing. The first call is measured to its first byte, at a
socket that answers nothing.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..fixtures import full_size

START_GOALS = {"import millstream": 0.03, "--help": 0.15, "plan": 0.60, "first call": 0.50}
MODEL = "openai/fixed"


class Starts:
    """The starts of commands in a folder of their own; `environment` is that of their processes."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._data = str(full_size.ensure(folder / "data"))
        self._folder = folder
        self._environment = environment

    def medians(self, rounds: int, core: int) -> dict[str, float]:
        """Returns the median seconds of each start, after one that is not counted."""
        ways: dict[str, Callable[[], float]] = {
            "import millstream": lambda: self._timed("-c", "import millstream"),
            "--help": lambda: self._timed("-m", "millstream", "--help"),
            "plan": lambda: self._timed("-m", "millstream", "plan", *self._grid()),
            "first call": self._first_call,
        }
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})  # processes that begin now have it too
        try:
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(rounds + 1):
                for name, way in ways.items():
                    seconds[name].append(way())
        finally:
            os.sched_setaffinity(0, cores)
        return {name: statistics.median(timed[1:]) for name, timed in seconds.items()}

    def _grid(self) -> tuple[str, ...]:
        return (full_size.BENCHMARK, "--model", MODEL, "--dataset", self._data)

    def _begun(self, folder: str, *words: str) -> subprocess.Popen[bytes]:
        environment = {**self._environment, "XDG_CACHE_HOME": folder}
        command, nowhere = [sys.executable, "-P", *words], subprocess.DEVNULL
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=nowhere, stderr=nowhere)

    def _timed(self, *words: str) -> float:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            began = time.perf_counter()
            code = self._begun(folder, *words).wait()
            seconds = time.perf_counter() - began
        if code:
            raise SystemExit(f"millstream bench: {' '.join(words)} ended with code {code}")
        return seconds

    def _first_call(self) -> float:
        with (
            tempfile.TemporaryDirectory(dir=self._folder) as folder,
            socket.create_server(("127.0.0.1", 0), backlog=512) as server,
        ):
            server.settimeout(60)
            url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
            began = time.perf_counter()
            run = self._begun(folder, "-m", "millstream", "run", *self._grid(), "--base-url", url, "--out", "run")
            try:
                call, _ = server.accept()
                with call:
                    call.recv(1)
                return time.perf_counter() - began
            finally:
                run.kill()
                run.wait()
