"""The simulated outside in a process of its own: models that hold conversations, a search engine, a web of pages."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command_line import COMMAND, Provider, environment
from prepared import kind_for

SOUND = ("--trouble-share", "0")
# Nobody's hosts need not be spared.
UNSPARED = '[lanes."web/*"]\nrpm = 60_000\nconcurrency = 8\n'


class Outside:
    """What the process serves. `web` is the address of searches and pages; `lanes` a file that makes haste."""

    def __init__(self, provider: Provider, web_port: int, process: subprocess.Popen[bytes], lanes: Path) -> None:
        self.provider = provider
        self.web_port = web_port
        self.web = f"http://127.0.0.1:{web_port}"
        self.lanes = lanes
        self._process = process

    @property
    def flags(self) -> tuple[str, ...]:
        """Of a run that reaches all of it."""
        pages = f"*.sim.test=127.0.0.1:{self.web_port}"
        where = ("--base-url", self.provider.base_url, "--search", "searxng", "--allow-host", pages)
        return (*where, "--config", str(self.lanes))

    @property
    def variables(self) -> dict[str, str]:
        return {"SEARXNG_BASE_URL": self.web}

    def reset(self) -> None:
        self.provider.reset()
        self._post("reset", {})
        self.set_search_faults()

    def set_search_faults(self, *rules: str) -> None:
        self._post("search-faults", {"faults": list(rules)})

    def requests(self) -> int:
        """Searches, pages and robots.txt together."""
        return int(self.summary()["requests"])

    def searches(self) -> int:
        return int(self.summary()["kinds"].get("search", 0))

    def summary(self) -> Any:
        return self._get("summary")

    def fetches(self) -> dict[str, int]:
        """How often each address was asked for."""
        found: dict[str, int] = self._get("counts")
        return found

    def arrivals(self) -> tuple[int, int]:
        """All that came so far: calls of models, and requests to the web."""
        return self.provider.calls(), self.requests()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.web}/sim/{path}", timeout=10) as answer:
            return json.load(answer)

    def _post(self, path: str, body: object) -> None:
        request = urllib.request.Request(f"{self.web}/sim/{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10):
            pass


@contextmanager
def simulated_outside(home: Path, *more: str) -> Iterator[Outside]:
    port, web_port, lanes = home / "port", home / "web-port", home / "lanes.toml"
    lanes.write_text(UNSPARED)
    command = [*COMMAND, "sim", "--port", "0", "--port-file", str(port), "--latency", "constant:0.002"]
    command += ["--web", "--web-port-file", str(web_port), "--until-eof", *SOUND, *more]
    with kind_for({})(
        command,
        env=environment(home),
        # Closes with this process, however that ends.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as sim:
        deadline = time.monotonic() + 30
        # The provider listens last.
        while not port.exists():
            assert sim.poll() is None and time.monotonic() < deadline, "the simulated outside did not start"
            time.sleep(0.02)
        try:
            yield Outside(Provider(int(port.read_text())), int(web_port.read_text()), sim, lanes)
        finally:
            sim.terminate()
