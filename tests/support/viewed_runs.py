"""A running `millstream view`, and runs for it to show."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from command_line import COMMAND, environment
from prepared import kind_for

from millstream.engine.runs.run_folder import RunFolder

HOSTILE = '<img src=x onerror="window.__ran=1">'


class View(NamedTuple):
    """A running `millstream view`."""

    port: int
    key: str
    pid: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?key={self.key}"

    def ask(self, path: str, body: object = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Its answer to this request, with the key unless the headers give another."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        sent = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.key}", **headers}
        data = None if body is None else json.dumps(body)
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        with closing(connection):
            connection.request("GET" if data is None else "POST", path, data, sent)
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}

    def get(self, path: str, **query: object) -> Any:
        status, body, _ = self.ask(f"{path}?{urlencode(query)}")
        assert status == 200, body
        return json.loads(body)

    def row(self, name: str) -> Any:
        return next(row for row in self.get("/runs") if row["name"] == name)


@contextmanager
def viewing(home: Path, *folders: str) -> Iterator[View]:
    command = [*COMMAND, "view", *folders, "--port", "0", "--json"]
    with kind_for({})(command, cwd=home, env=environment(home), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = "".join(iter(process.stdout.readline, "}\n")) + "}"
        address = urlsplit(json.loads(text)["address"])
        try:
            yield View(address.port or 0, parse_qs(address.query)["key"][0], process.pid)
        finally:
            process.terminate()
            assert process.wait(20) == 0


def until(is_reached: Callable[[], Any], within_s: float = 20.0) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := is_reached()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
    return found


def made_run(folder: Path, lines: int = 3, **specification: Any) -> Path:
    """A run that has begun and has some records."""
    named = {
        "benchmark": "task",
        "task": "t",
        "models": ["lab/one"],
        "temperatures": [None],
        "lines": 10,
        **specification,
    }
    with RunFolder(folder, named) as run:
        run.write_manifest(started="2026-01-01T00:00:00+00:00", ended=None)
        for number in range(lines):
            run.records.append(record(number))
    return folder


def record(number: int, score: float = 1.0) -> bytes:
    return json.dumps({"model": "lab/one", "id": str(number), "status": "ok", "score": score}).encode()
