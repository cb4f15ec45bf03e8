"""The command line as a person meets it, and the simulated provider it talks to, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from prepared import kind_for

COMMAND = (sys.executable, "-P", "-m", "millstream")
SMALL = ("--limit", "1", "--templates", "1", "--trials", "2")
SMALL_PROMPTS = 22
SMALL_RUN = ("run", "millstone", "--model", "sim/open", *SMALL)


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


# One command in the test's own process, by its arguments; a fixture of the whole suite.
CommandLine = Callable[..., Done]


class Provider:
    """A running simulated provider."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.address}/v1"

    def reset(self) -> None:
        self._post("reset", {})
        self._post("quota", {})
        self.set_faults()

    def set_faults(self, *rules: str) -> None:
        self._post("faults", {"faults": list(rules)})

    def set_quota(self, **quota: object) -> None:
        """By the names that `Quota` has."""
        self._post("quota", quota)

    def received(self) -> Counter[str]:
        """How often each prompt came."""
        return Counter(self._get("counts"))

    def calls(self) -> int:
        return int(self.summary()["calls"])

    def summary(self) -> Any:
        """What it says of all the calls since the last reset."""
        return self._get("summary?window_s=0")

    def arrivals(self) -> list[float]:
        """When each call came, in seconds of this machine's monotonic clock."""
        with urllib.request.urlopen(f"{self.address}/sim/log", timeout=30) as answer:
            return sorted(json.loads(line)["at"] for line in answer)

    def await_calls(self, count: int) -> None:
        """Wait until so many calls have come."""
        deadline = time.monotonic() + 20
        while self.calls() < count:
            assert time.monotonic() < deadline, f"{self.calls()} of {count} calls came in 20 s"
            time.sleep(0.01)

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}/sim/{path}", timeout=10) as answer:
            return json.load(answer)

    def _post(self, path: str, body: object) -> None:
        request = urllib.request.Request(f"{self.address}/sim/{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10):
            pass


def environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of the person who runs the tests: no keys, no cache, no configuration."""
    # Commands run in folders of their own, so a relative path would lead nowhere.
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(paths), **more}


def run_program(home: Path, program: str, *arguments: str, flags: tuple[str, ...] = ()) -> Done:
    """Run a program of somebody's own in a process of its own, in a folder."""
    command = [sys.executable, *flags, "-c", program, *arguments]
    done = subprocess.run(
        command, cwd=home, env=environment(home), capture_output=True, text=True, timeout=100, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_command(home: Path, *arguments: str, **more: str) -> Done:
    """Run one command in this process as `start` does in another: its folder, its environment, its three streams.

    For whatever is no claim about signals, terminals, memory or several processes. `main` reads everything else from
    its arguments; what it changes of the process is put back.
    """
    from millstream.interfaces.cli.command import main

    assert "PYTHONPATH" not in more, "another path for modules needs another process"
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with TemporaryFile() as out, TemporaryFile() as err:
        try:
            with _streams(out, err), _place(home, environment(home, **more)):
                code = main(list(arguments))
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        out.seek(0)
        err.seek(0)
        return Done(code, out.read().decode(), err.read().decode())


@contextmanager
def _place(folder: Path, variables: dict[str, str]) -> Iterator[None]:
    """Be in a folder, with these variables alone."""
    before, known = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(known)
        os.chdir(before)


@contextmanager
def _streams(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Let two files take standard output and standard error while the block lasts; standard input is empty."""
    with open(os.devnull, "rb") as nothing, ExitStack() as after:
        # The descriptors, since processes that the command starts write there too.
        for number, file in enumerate((nothing, out, err)):
            saved = os.dup(number)
            after.callback(os.close, saved)
            after.callback(os.dup2, saved, number)
            os.dup2(file.fileno(), number)
        for name, number, mode, errors in (
            ("stdin", 0, "r", "strict"),
            ("stdout", 1, "w", "strict"),
            ("stderr", 2, "w", "backslashreplace"),
        ):
            after.callback(setattr, sys, name, getattr(sys, name))
            stream = after.enter_context(open(number, mode, closefd=False, encoding="utf-8", errors=errors))
            setattr(sys, name, stream)
        yield


def start(home: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    return kind_for(more)(
        [*COMMAND, *arguments],
        cwd=home,
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], within_s: float = 40.0) -> Done:
    try:
        out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Done(process.returncode, out, err)


@contextmanager
def simulated_provider(home: Path, latency: str = "constant:0.002") -> Iterator[Provider]:
    """A simulated provider in a process of its own, while the block lasts."""
    port = home / "port"
    command = [*COMMAND, "sim", "--port", "0", "--port-file", str(port), "--latency", latency]
    none = subprocess.DEVNULL
    with kind_for({})(command, env=environment(home), stdin=none, stdout=none, stderr=none) as sim:
        deadline = time.monotonic() + 20
        while not port.exists():
            assert sim.poll() is None and time.monotonic() < deadline, "the simulated provider did not start"
            time.sleep(0.02)
        try:
            yield Provider(int(port.read_text()))
        finally:
            sim.terminate()


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ids_of(folder: Path, name: str = "records.jsonl") -> list[tuple[str, float | None, str]]:
    return [(line["model"], line["temperature"], line["id"]) for line in lines_of(folder / name)]


def scores_of(folder: Path) -> Any:
    return json.loads((folder / "scores.json").read_text())
