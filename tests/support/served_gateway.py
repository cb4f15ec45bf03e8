"""The gateway as a person starts it, in a process of its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from command_line import COMMAND, Provider, environment
from prepared import kind_for


class Served(NamedTuple):
    """A gateway that listens on `port` in the process `pid`."""

    port: int
    pid: int


@contextmanager
def served_gateway(home: Path, provider: Provider) -> Iterator[str]:
    """Its address, while the block lasts."""
    with gateway_process(home, provider) as served:
        yield f"http://127.0.0.1:{served.port}"


@contextmanager
def gateway_process(home: Path, provider: Provider) -> Iterator[Served]:
    """It listens on a free port while the block lasts, and its models are the simulated provider's."""
    port = home / "gateway-port"
    command = [*COMMAND, "serve", "--port", "0", "--port-file", str(port), "--base-url", provider.base_url]
    variables = environment(home, OPENAI_API_KEY="sk-sim")
    with kind_for({})(command, cwd=home, env=variables, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while not port.exists():
            assert process.poll() is None and time.monotonic() < deadline, "the gateway did not start"
            time.sleep(0.02)
        try:
            yield Served(int(port.read_text()), process.pid)
        finally:
            process.terminate()
            process.wait(40)
