"""The figures by which docs/load.md explains coordinated omission are those that a test of such a server gives."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from load_server import LoadServer
from virtual_time import run_virtually

from millstream.bench.load.arrivals import Arrivals, ClosedLoop, at_rate
from millstream.bench.load.budget import Budget
from millstream.bench.load.histogram import Histogram
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.run import ModelRun, run_load
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls

MODEL = "sim/steady"


def measured(arrivals: Arrivals) -> ModelRun:
    """20 ms an answer, and once a standstill of two seconds, for a minute."""

    async def scenario() -> ModelRun:
        server = LoadServer(lambda: 0.02, stalls=(30.0, 32.0))
        texts = calls(MODEL, by_length(FixedLength(16), Random(1)), CallParameters(), Random(2))
        plan = LoadPlan(arrivals, Limits(duration_s=60.0))
        clock = asyncio.get_running_loop().time
        budget = Budget(plan.limits, (MODEL,), {MODEL: None})
        result = await run_load(plan, {MODEL: texts}, server.ask, budget, clock=clock, cpu=lambda: 0.0)
        return result.models[MODEL]

    return run_virtually(scenario())


def at(histogram: Histogram, percent: float) -> float:
    found = histogram.percentile(percent)
    assert found is not None
    return found.value_s


def test_people_who_come_whatever_the_server_does_have_waited() -> None:
    opened = measured(at_rate(50.0, "constant")).meter
    assert opened.calls == 3_000
    assert at(opened.latency, 99) == pytest.approx(1.4, abs=0.03)


def test_a_client_that_waits_for_its_answers_has_seen_one_slow_call() -> None:
    closed = measured(ClosedLoop(1)).meter
    assert closed.calls == pytest.approx(2_900, abs=5)
    assert at(closed.latency, 99) == pytest.approx(0.02, abs=0.001)
    assert at(closed.latency, 99.9) == pytest.approx(0.02, abs=0.001)
