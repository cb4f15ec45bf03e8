"""A load test over a Ray cluster on this machine measures what one process measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Provider, finish, lines_of, start

pytest.importorskip("ray")
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(600)]

RATE, SECONDS = 15, 15


def measured(home: Path, provider: Provider, out: str, *more: str) -> Any:
    what = ("--rate", str(RATE), "--duration", f"{SECONDS}s", "--prompt-tokens", "20", "--max-tokens", "8")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", out)
    done = finish(start(home, "load", "sim/open", *what, *where, "--no-report", "--no-progress", *more), 300)
    assert done.code == 0, done.err
    load = json.loads((home / out / "load.json").read_text())
    (model,) = load["models"].values()
    if model["unsent_late"]:
        pytest.skip(f"the machine is too busy: {load['client']['reasons']}")
    return load


def percentile(times: Any, percent: float) -> Any:
    return next(each for each in times["percentiles"] if each["percent"] == percent)


def test_workers_send_the_calls_of_one_process_and_measure_the_same(running_provider: Provider, tmp_path: Path) -> None:
    running_provider.reset()
    alone = measured(tmp_path, running_provider, "alone")
    shared = measured(tmp_path, running_provider, "shared", "--ray", "local", "--workers", "2")
    (one,), (several,) = alone["models"].values(), shared["models"].values()
    assert one["begun"] == several["begun"] == several["answered"]
    assert several["rate"] == pytest.approx(one["rate"], rel=0.01)
    for percent in (50.0, 90.0):
        first, second = percentile(one["latency"], percent), percentile(several["latency"], percent)
        # Beside the intervals, calls wait for a busy machine, which is told of each.
        waits = 0.01 + sum(percentile(each["own_delay"], 99.0)["value_s"] for each in (one, several))
        assert second["low_s"] - waits <= first["value_s"] <= second["high_s"] + waits
    lines = {out: lines_of(tmp_path / out / "calls.jsonl") for out in ("alone", "shared")}
    dues = {out: sorted(line["due"] for line in each) for out, each in lines.items()}
    assert len(dues["shared"]) == several["begun"]
    # The same times, after the second that the workers get to be ready.
    gaps = [after - before for before, after in zip(dues["alone"], dues["shared"], strict=True)]
    assert max(gaps) - min(gaps) < 0.01
    first, second = shared["client"]["workers"]
    assert first["calls"] + second["calls"] == several["begun"] and abs(first["calls"] - second["calls"]) <= 1
    for worker in (first, second):
        assert abs(worker["clock_offset_s"]) <= worker["clock_error_s"] < 0.1  # one machine has one clock
    assert shared["client"]["cpu_peak"] == max(first["cpu_peak"], second["cpu_peak"]) > 0
