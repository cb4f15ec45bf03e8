"""Mocks of model providers that nobody here wrote, each as a process on a free port of loopback."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AIMOCK = Path(__file__).parent.parent / "mock" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "aimock-cli.js"
LLMOCK = "from llmock.cli import app; app()"
START_S = 20.0


def why_no_aimock() -> str:
    """Why the mock that runs on node can't be used here; empty if it can."""
    if shutil.which("node") is None:
        return "node is not installed"
    return "" if AIMOCK.exists() else "`make tools` has not installed tests/mock"


@contextmanager
def aimock(folder: Path, fixtures: list[dict[str, Any]]) -> Iterator[str]:
    """The base URL of a server that answers as the fixtures say."""
    given = folder / "fixtures.json"
    given.write_text(json.dumps({"fixtures": fixtures}))
    (folder / "aimock.json").write_text(json.dumps({"llm": {"fixtures": str(given)}}))
    port = free_port()
    with _process(["node", str(AIMOCK), "-c", str(folder / "aimock.json"), "-p", str(port)], port):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def searching(results: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """The base URL of a mock of Tavily that gives these results to queries that hold these words."""
    library, port = AIMOCK.with_name("index.js").as_uri(), free_port()
    script = f"""
        import {{ LLMock }} from {json.dumps(library)};
        const mock = new LLMock({{ port: {port} }});
        for (const [word, rows] of Object.entries({json.dumps(results)})) mock.onSearch(word, rows);
        await mock.start();
    """
    with _process(["node", "--input-type=module", "--eval", script], port):
        yield f"http://127.0.0.1:{port}"


class LLMock:
    """A mock that enforces quotas and judges its client."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}/v1"

    def verdict(self) -> str:
        return self._get("/_llmock/verdict?format=text")

    def statuses(self) -> list[int]:
        """What it answered to every request, in their order."""
        listed = json.loads(self._get("/_llmock/requests"))
        return [one["status"] for one in listed["requests"]]

    def spend(self, requests: int, key: str) -> None:
        """Take so many out of a key's quota, one after the other."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        for number in range(requests):
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"spent {number}"}]})
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
            connection.request("POST", "/v1/chat/completions", body, headers)
            assert connection.getresponse().read()
        connection.close()

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return str(answer.read().decode())


@contextmanager
def llmock(*options: str) -> Iterator[LLMock]:
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-c", LLMOCK, "serve", "--host", "127.0.0.1", "--port", str(port)]
    with _process([*command, "--log-level", "warning", *options], port):
        yield LLMock(port)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_listening(process, port)
            yield
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return
        except urllib.error.HTTPError as answered:
            answered.close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not begin to listen on {port} within {START_S:g} s")
