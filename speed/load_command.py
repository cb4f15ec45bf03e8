"""Runs `millstream load` as users do, in a process of its own, for comparison with the server's log of the same calls.

Owns the command line, the parts of the test's folder that are read, and when a figure agrees. Knows no server.
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

from ..metrics.load.load_json import LoadFigures, ModelFigures, Times

MODEL = "openai/steady"
PERCENTS = (50.0, 90.0, 99.0)
Times_s = np.ndarray[tuple[int], np.dtype[np.float64]]

_WITHIN_S = 120.0


class LoadSetup(Struct, frozen=True):
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


class _CallRow(Struct):
    """The part of a line of calls.jsonl that is read."""

    due: float


class CommandResult(Struct, frozen=True):
    """The command's output, and the due times of all calls, sorted."""

    load: LoadFigures
    due: Times_s
    warm_up_s: float

    @property
    def model(self) -> ModelFigures:
        return self.load.models[MODEL]

    @property
    def reasons(self) -> tuple[str, ...]:
        return self.load.client.reasons

    def measured(self, arrived: Times_s, values: Times_s) -> Times_s:
        """Returns the server's values of each call in order of arrival, without those of the warm-up."""
        return values[np.argsort(arrived)][int(np.sum(self.due < self.warm_up_s)) :]


class CommandFailure(Exception):
    """The command failed."""


@contextmanager
def started(
    url: str, setup: LoadSetup, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the command; stops it on exit from the context."""
    command = [sys.executable, "-P", "-m", "millstream", "load", *setup.options(url, folder)]
    variables = {**environment, "OPENAI_API_KEY": "none"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables) as process:
        if setup.core is not None:
            os.sched_setaffinity(process.pid, {setup.core})
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[bytes], asked: LoadSetup, folder: Path) -> CommandResult:
    out, error = process.communicate(timeout=asked.seconds + _WITHIN_S)
    if process.returncode:
        raise CommandFailure(
            f"millstream load ended with {process.returncode}: {error.decode(errors='replace')[-800:]}"
        )
    with (folder / "test" / "calls.jsonl").open("rb") as lines:
        due = np.sort(np.array([msgspec.json.decode(line, type=_CallRow).due for line in lines]))
    return CommandResult(msgspec.json.decode(out, type=LoadFigures), due, asked.warm_up_s)


def run_load(url: str, asked: LoadSetup, folder: Path, environment: Mapping[str, str] = os.environ) -> CommandResult:
    with started(url, asked, folder, environment) as process:
        return ended(process, asked, folder)


class PercentileComparison(Struct, frozen=True):
    """A percentile in seconds, compared with the true one."""

    percent: float
    ours: float
    truth: float

    @property
    def off(self) -> float:
        return self.ours - self.truth

    @property
    def allowed(self) -> float:
        """Returns the allowed difference: 2% and a millisecond."""
        return 0.02 * self.truth + 0.001

    @property
    def agrees(self) -> bool:
        return abs(self.off) <= self.allowed


def compared(times: Times, truth: Times_s) -> list[PercentileComparison]:
    """Compares the percentiles that at least ten calls exceed."""
    found = []
    for percent in PERCENTS:
        each = times.at(percent)
        if each is not None and len(truth) * (1 - percent / 100) >= 9.99:
            # By the same definition of a percentile as ours: no value is made up between two others.
            exact = float(np.quantile(truth, percent / 100, method="inverted_cdf"))
            found.append(PercentileComparison(percent, each.value_s, exact))
    return found
