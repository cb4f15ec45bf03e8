"""Load tests over a real socket: the engine as it is, against a simulated provider in a process of its own.

What this machine allows is not the test's to say: a figure that is off is right where the result says that the client
was the bottleneck. With MILLSTREAM_LOAD_S seconds a rate, it is the long test, and has no such way out up to 500.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import pytest
import uvloop
from command_line import environment
from scipy import stats  # type: ignore[import-untyped]

from millstream import Engine, Lane, Settings
from millstream.bench.load.arrivals import Process, at_rate
from millstream.bench.load.lengths import Fixed
from millstream.bench.load.plan import Limits, Plan
from millstream.bench.load.prompts import Wanted, by_length, calls
from millstream.bench.load.run import Result, run_load
from millstream.providers.table import Provider

MODEL = "mylab/steady"
LOW_S, HIGH_S = 0.08, 0.12
SECONDS = float(os.environ.get("MILLSTREAM_LOAD_S", "3"))
IS_LONG = "MILLSTREAM_LOAD_S" in os.environ


@contextmanager
def provider(home: Path) -> Iterator[str]:
    port = home / "port"
    command = [sys.executable, "-P", "-m", "millstream.fixtures.provider", "--port-file", str(port)]
    command += ["--latency", f"uniform:{LOW_S},{HIGH_S}", "--seed", "3"]
    with subprocess.Popen(command, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sim:
        deadline = time.monotonic() + 20
        while not port.exists():
            assert sim.poll() is None and time.monotonic() < deadline, "the simulated provider did not start"
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{int(port.read_text())}"
        finally:
            sim.terminate()


def loaded(origin: str, folder: Path, rate: float, process: Process, seconds: float, *, stream: bool = False) -> Result:
    async def scenario() -> Result:
        settings = Settings(
            lanes=(Lane(MODEL, concurrency=1_000),),
            providers={"mylab": Provider(f"{origin}/v1", "MYLAB_KEY")},
            environment={"MYLAB_KEY": "sk-1"},
            cache=folder,
            mode="live",
        )
        async with Engine(settings=settings) as engine:
            texts = by_length(Fixed(50), Random(1))
            own = {MODEL: calls(MODEL, texts, Wanted(max_tokens=8, stream=stream), Random(2))}
            limits = Limits(duration_s=seconds + 0.5, in_flight=1_000)
            plan = Plan(at_rate(rate, process), limits, warm_up_s=0.5, seed=1)
            return await run_load(plan, own, engine.ask, prices={})

    return uvloop.run(scenario())


def log(origin: str) -> list[tuple[float, float]]:
    """When each call came to the server, and when it had its answer."""
    with urllib.request.urlopen(f"{origin}/sim/log", timeout=20) as answer:
        rows = [json.loads(line) for line in answer]
    return [(row["at"], row["ended"]) for row in rows]


def shown(result: Result) -> str:
    meter = result.models[MODEL].meter
    return f"{meter!r} {[meter.latency.percentile(percent) for percent in (50, 90, 99)]} {result.verdicts[MODEL]}"


def skip_where_the_client_was_bound(result: Result) -> None:
    """Then it has said so, and its figures are none of the server's. The long run takes no excuse."""
    if result.is_client_bound and not IS_LONG:
        pytest.skip(f"this machine was too busy to measure: {shown(result)}")


@pytest.mark.parametrize("rate", [50.0, 200.0, 500.0])
def test_percentiles_agree_with_a_real_servers_law_and_the_rate_is_kept(rate: float, tmp_path: Path) -> None:
    with provider(tmp_path) as origin:
        result = loaded(origin, tmp_path / "cache", rate, "constant", SECONDS)
        rows = np.array(log(origin))
    times, took = rows[:, 0], rows[:, 1] - rows[:, 0]
    meter = result.models[MODEL].meter
    assert meter.errors == 0 and meter.cached == 0 and meter.retries == 0
    assert len(times) == result.models[MODEL].begun
    skip_where_the_client_was_bound(result)
    assert (len(times) - 1) / (times[-1] - times[0]) == pytest.approx(rate, rel=0.01), shown(result)
    assert result.rate(MODEL) == pytest.approx(rate, rel=0.01), shown(result)
    # What the server says it took for the very same calls: no chance is left in it.
    measured = took[times - times[0] > 0.49]
    assert measured.min() >= LOW_S - 0.002 and np.median(measured) == pytest.approx((LOW_S + HIGH_S) / 2, rel=0.1)
    for percent in (50.0, 90.0, 99.0) if IS_LONG else (50.0, 90.0):
        truth = float(np.quantile(measured, percent / 100))
        found = meter.latency.percentile(percent)
        assert found is not None
        assert abs(found.value_s - truth) <= 0.02 * truth + 0.001, shown(result)


def test_the_servers_own_log_shows_a_poisson_process(tmp_path: Path) -> None:
    with provider(tmp_path) as origin:
        # Timers are good to a millisecond or two, so the gaps must be long beside that.
        result = loaded(origin, tmp_path / "cache", 25.0, "poisson", max(8.0, SECONDS))
        times = np.array(log(origin))[:, 0]
    skip_where_the_client_was_bound(result)
    spread = (times - times[0])[1:-1] / (times[-1] - times[0])
    assert stats.kstest(spread, "uniform").pvalue > 0.001
    assert stats.kstest(np.diff(times), "expon", args=(0, 1 / 25)).pvalue > 0.001
    assert stats.kstest(np.diff(times), "uniform", args=(0, 2 / 25)).pvalue < 0.001


def test_a_streamed_answers_first_piece_comes_when_the_server_sent_it(tmp_path: Path) -> None:
    with provider(tmp_path) as origin:
        result = loaded(origin, tmp_path / "cache", 50.0, "constant", 2.0, stream=True)
    meter = result.models[MODEL].meter
    first = meter.first_token.percentile(50)
    assert meter.errors == 0 and meter.first_token.count == meter.calls and first is not None
    truth = (LOW_S + HIGH_S) / 2
    skip_where_the_client_was_bound(result)
    # A hundred draws have a median of their own; its interval says how far it may lie from the law's.
    slack = 0.02 * truth + 0.001
    assert first.low_s is not None and first.high_s is not None
    assert first.low_s - slack <= truth <= first.high_s + slack, shown(result)
