"""Other load tools, each run separately if it is installed: wrk, wrk2 and hey.

Knows no server and nothing of ours. A missing tool is reported, and is no error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

PERCENTS = (50.0, 90.0, 99.0, 99.9)

# wrk prints four percentiles of its own choice.
_LUA = """
done = function(summary, latency, requests)
  for _, p in ipairs({50, 90, 99, 99.9}) do print(string.format("ours p%g %d", p, latency:percentile(p))) end
  print(string.format("ours calls %d", summary.requests))
end
"""


class Rival(Struct, frozen=True):
    """A tool's results: seconds by percentile, and its number of calls."""

    name: str
    calls: int
    latency: dict[float, float]


def wrk(url: str, in_flight: int, seconds: float, folder: Path, core: int | None = None) -> Rival | None:
    """Runs wrk as a closed loop: one thread and `in_flight` connections, each sending again after its answer. wrk
    corrects for omitted calls at the end: a very long latency is complemented by those that a connection's mean pace
    would have measured. None: it is not installed."""
    return _wrk("wrk", [], url, in_flight, seconds, folder, core)


def wrk2(url: str, in_flight: int, rate: float, seconds: float, folder: Path, core: int | None = None) -> Rival | None:
    """Runs wrk2 at a rate; its latencies count from when calls were due."""
    return _wrk("wrk2", ["-R", f"{rate:g}"], url, in_flight, seconds, folder, core)


def hey(url: str, in_flight: int, seconds: float, core: int | None = None) -> Rival | None:
    """Runs hey, a closed loop in Go without any correction."""
    program = shutil.which("hey")
    if program is None:
        return None
    said = _run([program, "-z", f"{seconds:g}s", "-c", str(in_flight), f"{url}/x"], core)
    found = re.findall(r"^\s*(\d+)%+ in ([\d.]+) secs", said, re.MULTILINE)
    latency = {float(percent): float(value) for percent, value in found}
    calls = sum(int(count) for count in re.findall(r"\[\d+\]\s+(\d+) responses", said))
    return Rival("hey", calls, {percent: latency[percent] for percent in PERCENTS if percent in latency})


def _wrk(
    name: str, more: list[str], url: str, in_flight: int, seconds: float, folder: Path, core: int | None
) -> Rival | None:
    program = shutil.which(name)
    if program is None:
        return None
    script = folder / "percentiles.lua"
    script.write_text(_LUA)
    command = [program, "-t1", f"-c{in_flight}", f"-d{seconds:g}s", "--timeout", "30s", "-s", str(script), *more]
    text = _run([*command, f"{url}/x"], core)
    microseconds = re.findall(r"^ours p([\d.]+) (\d+)$", text, re.MULTILINE)
    calls = re.search(r"^ours calls (\d+)$", text, re.MULTILINE)
    return Rival(
        name, int(calls.group(1)) if calls else 0, {float(percent): int(value) / 1e6 for percent, value in microseconds}
    )


def _run(command: list[str], core: int | None) -> str:
    bound = command if core is None else ["taskset", "-c", str(core), *command]
    return subprocess.run(bound, check=True, capture_output=True, text=True).stdout
