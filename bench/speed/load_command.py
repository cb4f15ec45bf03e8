"""`millstream load` as its users start it, in a process of its own, beside what the server says of the very same calls.

Owns the command line, what is read of the test's folder, and when a figure agrees with the truth. Knows no server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from ...metrics.load.file import Load, Model, Times

MODEL = "openai/steady"
PERCENTS = (50.0, 90.0, 99.0)
Times_s = np.ndarray[tuple[int], np.dtype[np.float64]]

_WITHIN_S = 120.0


class Asked(Struct, frozen=True):
    """One test. `in_flight` None: an open loop at `rate`. `core`: the only one that the command may use."""

    rate: float = 50.0
    arrivals: str = "constant"
    burstiness: float = 1.0
    in_flight: int | None = None
    seconds: float = 5.0
    warm_up_s: float = 0.5
    is_streamed: bool = False
    seed: int = 1
    core: int | None = None

    def options(self, url: str, folder: Path) -> list[str]:
        options = [MODEL, "--base-url", url, "--out", str(folder / "test"), "--cache", str(folder / "cache")]
        options += ["--duration", f"{self.seconds + self.warm_up_s}s", "--warm-up", f"{self.warm_up_s}s"]
        options += ["--prompt-tokens", "50", "--max-tokens", "8", "--seed", str(self.seed)]
        options += ["--json", "--no-progress", "--no-report"]
        if not self.is_streamed:
            options.append("--whole")
        if self.in_flight is not None:
            return [*options, "--in-flight", str(self.in_flight)]
        options += ["--rate", str(self.rate), "--arrivals", self.arrivals]
        return [*options, "--burstiness", str(self.burstiness)] if self.arrivals == "gamma" else options


class _Row(Struct):
    """Of calls.jsonl, as far as it matters here."""

    due: float


class Told(Struct, frozen=True):
    """What the command said, and when each call was due, in that order."""

    load: Load
    due: Times_s
    warm_up_s: float

    @property
    def model(self) -> Model:
        return self.load.models[MODEL]

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.load.client.reasons

    def measured(self, arrived: Times_s, values: Times_s) -> Times_s:
        """Of what the server logged of each call, by when that came: without those of the warm-up, in order."""
        return values[np.argsort(arrived)][int(np.sum(self.due < self.warm_up_s)) :]


class Failed(Exception):
    """The command did not end as it should."""


@contextmanager
def started(url: str, asked: Asked, folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Running; whoever leaves before its end stops it."""
    command = [sys.executable, "-P", "-m", "millstream", "load", *asked.options(url, folder)]
    variables = {**environment, "OPENAI_API_KEY": "none"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables) as process:
        if asked.core is not None:
            os.sched_setaffinity(process.pid, {asked.core})
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[bytes], asked: Asked, folder: Path) -> Told:
    out, error = process.communicate(timeout=asked.seconds + _WITHIN_S)
    if process.returncode:
        raise Failed(f"millstream load ended with {process.returncode}: {error.decode(errors='replace')[-800:]}")
    with (folder / "test" / "calls.jsonl").open("rb") as lines:
        due = np.sort(np.array([msgspec.json.decode(line, type=_Row).due for line in lines]))
    return Told(msgspec.json.decode(out, type=Load), due, asked.warm_up_s)


def told(url: str, asked: Asked, folder: Path, environment: Mapping[str, str] = os.environ) -> Told:
    with started(url, asked, folder, environment) as process:
        return ended(process, asked, folder)


class Compared(Struct, frozen=True):
    """A percentile in seconds, and that of the truth."""

    percent: float
    ours: float
    truth: float

    @property
    def off(self) -> float:
        return self.ours - self.truth

    @property
    def allowed(self) -> float:
        """2% and a millisecond."""
        return 0.02 * self.truth + 0.001

    @property
    def agrees(self) -> bool:
        return abs(self.off) <= self.allowed


def compared(times: Times, truth: Times_s) -> list[Compared]:
    """At the percentiles that the number of calls tells of: with fewer than ten beyond it one is a few calls' luck."""
    found = []
    for percent in PERCENTS:
        each = times.at(percent)
        if each is not None and len(truth) * (1 - percent / 100) >= 9.99:
            # By the same definition of a percentile as ours: no value is made up between two others.
            exact = float(np.quantile(truth, percent / 100, method="inverted_cdf"))
            found.append(Compared(percent, each.value_s, exact))
    return found
