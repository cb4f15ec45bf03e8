"""Two nodes of Ray on this machine, each at a loopback address of its own: started, killed, started again by a test.

A node is a session of processes of its own, which ends with it, whatever of it was killed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self

from command_line import environment
from shared_server import free_port

RAY = (sys.executable, "-P", "-c", "from ray.scripts.scripts import main; main()")
WORKERS = b"ray::FleetWorker", b"ray::LoadWorker"
# A busy machine takes long to start what a node is made of, and a raylet gives up after 15 s.
PATIENCE = {"RAY_agent_register_timeout_ms": "120000", "RAY_worker_register_timeout_seconds": "120"}
# Ray makes room for others: its workers would wait for whatever else this machine does.
HASTE = {"RAY_worker_niceness": "0"}
START_S = 120.0


class RayNode:
    """One node, at one address through all its lives. `arguments` are those of `ray start`."""

    def __init__(self, log: Path, variables: dict[str, str], arguments: tuple[str, ...]) -> None:
        self._log = log
        self._variables = variables
        self._command = (*RAY, "start", "--block", "--min-worker-port=0", "--max-worker-port=0", *arguments)
        self._command += ("--object-store-memory=80000000",)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, again if it takes too long: Ray has bounds of its own, which a busy machine exceeds."""
        for _ in range(3):
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._log.parent,
                    env=self._variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            if self._is_started():
                return
            self.kill()
        raise AssertionError(f"the node does not start: {self._log.read_text()[-2000:]}")

    def _is_started(self) -> bool:
        assert self._process is not None
        until = time.monotonic() + START_S
        while time.monotonic() < until and self._process.poll() is None:
            if b"Ray runtime started" in self._log.read_bytes():
                return True
            time.sleep(0.1)
        return False

    def processes(self) -> list[int]:
        """All that it is made of, its workers among them."""
        return [] if self._process is None else [pid for pid, session in sessions() if session == self._process.pid]

    def workers(self) -> list[int]:
        """The processes that carry calls."""
        return [pid for pid in self.processes() if title_of(pid).startswith(WORKERS)]

    def kill(self) -> None:
        """Ends it as a loss of power would."""
        while pids := self.processes():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self._process is not None:
                self._process.poll()
            time.sleep(0.02)
        if self._process is not None:
            self._process.wait()
            self._process = None


class RayNodes:
    """A cluster of two nodes with two cores each, and its address. `variables` are those of a command that uses it;
    `more` those of its workers. The command runs beside the `head`."""

    def __init__(self, home: Path, **more: str) -> None:
        self.home = home
        # The paths of Ray's sockets are long, and may not be longer than 107 characters.
        self._folder = Path(mkdtemp(prefix="ray-", dir="/tmp"))
        self.variables = {"RAY_AUTH_TOKEN": secrets.token_hex(16)}
        variables = environment(home, **self.variables, RAY_AUTH_MODE="token", **PATIENCE, **HASTE, **more)
        variables["RAY_USAGE_STATS_ENABLED"] = "0"
        port, size = free_port(), "--num-cpus=2"
        self.address = f"127.0.0.2:{port}"
        first = ("--head", "--node-ip-address=127.0.0.2", f"--port={port}", "--include-dashboard=false", size)
        second = (f"--address={self.address}", "--node-ip-address=127.0.0.3", size)
        self.head = RayNode(home / "head.log", variables, (*first, f"--temp-dir={self._folder}"))
        self.other = RayNode(home / "other.log", variables, second)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--ray", self.address)

    def workers(self) -> list[int]:
        return [*self.head.workers(), *self.other.workers()]

    def __enter__(self) -> Self:
        try:
            self.head.start()
            self.other.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.other.kill()
        self.head.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def sessions() -> Iterator[tuple[int, int]]:
    """Every process of this machine that runs, with its session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended
                words = (entry / "stat").read_text().rpartition(") ")[2].split()
                if words[0] != "Z":
                    yield int(entry.name), int(words[3])


def title_of(pid: int) -> bytes:
    with suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    return b""
