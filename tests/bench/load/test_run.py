"""Load tests in virtual time against a server whose law is known."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from load_server import LoadServer
from scipy import stats  # type: ignore[import-untyped]
from virtual_time import run_virtually

from millstream.bench.load.arrivals import Arrivals, ClosedLoop, OpenLoop, Process, Replay, Stretch, at_rate
from millstream.bench.load.budget import Budget
from millstream.bench.load.meter import Promise
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.run import LoadResult, SendCall, run_load
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.endpoint import Hear
from millstream.engine.fault import LocalFault, Stop, Stopped
from millstream.engine.prices import Price

MODEL = "sim/steady"
# With a price for reads, so that writes to a cache cost nothing more.
PRICES = {MODEL: Price(1.0, 4.0, cached=0.1)}


def asked(model: str = MODEL, *, stream: bool = False) -> Iterator[Call]:
    return calls(
        model, by_length(FixedLength(16), Random(1)), CallParameters(max_tokens=8, stream=stream), Random(model)
    )


async def under_test(plan: LoadPlan, ask: SendCall, *models: str, stream: bool = False) -> LoadResult:
    """Idle processors: in virtual time there is nothing to measure."""
    loop = asyncio.get_running_loop()
    own = {model: asked(model, stream=stream) for model in models or (MODEL,)}
    return await run_load(plan, own, ask, Budget(plan.limits, own, PRICES), clock=loop.time, cpu=lambda: 0.0)


def rate(result: LoadResult) -> float:
    """Measured calls a second."""
    return result.models[MODEL].meter.calls / result.seconds


def value(result: LoadResult, percent: float, name: str = "latency") -> float:
    found = getattr(result.models[MODEL].meter, name).percentile(percent)
    assert found is not None
    return float(found.value_s)


def test_percentiles_agree_with_the_servers_law_to_two_percent_and_a_millisecond() -> None:
    random = Random(1)
    law = stats.lognorm(0.6, scale=0.08)

    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.08 * math.exp(random.gauss(0, 0.6)))
        return await under_test(LoadPlan(at_rate(200.0), Limits(calls=20_000)), server.ask)

    result = run_virtually(scenario())
    meter = result.models[MODEL].meter
    for percent in (50.0, 90.0, 99.0):
        truth = float(law.ppf(percent / 100))
        assert abs(value(result, percent) - truth) <= 0.02 * truth + 0.001
    assert meter.calls == meter.answered == 20_000 and not any(
        result.verdicts[model].is_client_bound for model in result.models
    )


def test_a_stall_of_two_seconds_shows_in_the_latency_of_all_who_were_due_in_it() -> None:
    """One in ten of the calls is due in the stall and waits for what is left of it: a tenth of them 1.8 s and more."""

    async def scenario(arrivals: Arrivals) -> LoadResult:
        server = LoadServer(lambda: 0.01, stalls=(10.0, 12.0))
        return await under_test(LoadPlan(arrivals, Limits(duration_s=20.0)), server.ask)

    opened = run_virtually(scenario(at_rate(100.0, "constant")))
    assert value(opened, 99) == pytest.approx(2.01 - 0.2, abs=0.02)
    assert value(opened, 95) == pytest.approx(2.01 - 1.0, abs=0.02)
    assert value(opened, 89) == pytest.approx(0.01, abs=0.001)
    # One that waits for its answer before the next one sees the stall once, and its percentiles nothing of it.
    closed = run_virtually(scenario(ClosedLoop(1)))
    assert value(closed, 99) == pytest.approx(0.01, abs=0.001)


def test_a_stalled_server_with_few_places_in_flight_is_charged_from_when_calls_were_due() -> None:
    """What a client holds back for want of a place has waited all the same; from when it was sent, nothing shows."""

    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.01, stalls=(10.0, 12.0))
        plan = LoadPlan(at_rate(100.0, "constant"), Limits(duration_s=20.0, in_flight=4))
        return await under_test(plan, server.ask)

    result = run_virtually(scenario())
    measured = result.models[MODEL]
    # Four at once make 400 a second of the backlog, while 100 a second come: the 20th of 2,000 is served 50 ms late.
    assert value(result, 99) == pytest.approx(2.01 + 20 / 400 - 20 / 100, abs=0.02)
    assert value(result, 99, "service") == pytest.approx(0.01, abs=0.001)
    assert measured.held > 190 and measured.hold_max_s == pytest.approx(1.97, abs=0.02)
    assert measured.begun == measured.meter.calls == 2_000 and measured.in_flight_max == 4
    # The server kept them waiting, not we.
    assert (
        not any(result.verdicts[model].is_client_bound for model in result.models)
        and value(result, 99, "own_delay") < 0.001
    )


def test_an_open_loop_does_not_slow_down_with_the_server() -> None:
    async def scenario(latency_s: float) -> list[float]:
        server = LoadServer(lambda: latency_s)
        await under_test(LoadPlan(at_rate(50.0), Limits(duration_s=20.0), seed=4), server.ask)
        return server.arrivals

    quick, slow = run_virtually(scenario(0.001)), run_virtually(scenario(15.0))
    assert len(quick) == len(slow) and max(abs(a - b) for a, b in zip(quick, slow, strict=True)) <= 0.001
    assert stats.kstest(np.array(slow) / 20, "uniform").pvalue > 0.001


def test_an_overrun_that_never_ends_is_told_call_by_call() -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 1e6)
        return await under_test(
            LoadPlan(at_rate(10.0, "constant"), Limits(duration_s=30.0, in_flight=5, drain_s=3)), server.ask
        )

    measured = run_virtually(scenario()).models[MODEL]
    assert (measured.begun, measured.unsent_held, measured.unsent_late) == (5, 295, 0)
    assert measured.meter.failures == {"unfinished": 5}


def test_a_closed_loop_keeps_its_number_in_flight_and_its_rate_is_the_servers() -> None:
    async def scenario() -> tuple[LoadResult, LoadServer]:
        server = LoadServer(lambda: 0.5)
        return await under_test(LoadPlan(ClosedLoop(8), Limits(duration_s=20.0)), server.ask), server

    result, server = run_virtually(scenario())
    assert server.in_flight_max == 8
    assert rate(result) == pytest.approx(16.0, rel=0.01)
    assert value(result, 99) == pytest.approx(0.5, rel=0.002)


def test_streamed_calls_tell_first_token_tokens_and_gaps() -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.2, pieces=11, gap_s=0.03)
        promise = Promise(first_token_s=0.25, token_s=0.04)
        return await under_test(
            LoadPlan(at_rate(20.0), Limits(duration_s=20.0), promise=promise), server.ask, stream=True
        )

    result = run_virtually(scenario())
    meter = result.models[MODEL].meter
    assert value(result, 50, "first_token") == pytest.approx(0.2, rel=0.004)
    assert value(result, 50, "token") == value(result, 99, "gap") == pytest.approx(0.03, rel=0.004)
    assert value(result, 50) == pytest.approx(0.5, rel=0.002)
    assert meter.gap.count == 10 * meter.calls and meter.kept == meter.calls
    assert result.models[MODEL].meter.kept / result.seconds == rate(result)


def test_warm_up_and_cool_down_are_sent_and_left_out() -> None:
    async def scenario() -> tuple[LoadResult, int]:
        server = LoadServer(lambda: 0.01)
        plan = LoadPlan(at_rate(10.0, "constant"), Limits(duration_s=30.0), warm_up_s=5.0, cool_down_s=5.0)
        return await under_test(plan, server.ask), len(server.arrivals)

    result, arrived = run_virtually(scenario())
    meter = result.models[MODEL].meter
    assert (arrived, result.models[MODEL].begun, meter.calls, result.seconds) == (300, 300, 200, 20.0)
    assert min(meter.slices) == 5 and meter.slice_s == 1.0
    assert rate(result) == 10.0


@pytest.mark.parametrize(("kind", "within"), [("constant", 0.001), ("poisson", 4 / math.sqrt(6_000))])
def test_the_rate_is_kept_to_what_chance_allows(kind: Process, within: float) -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.05)
        return await under_test(LoadPlan(at_rate(300.0, kind), Limits(duration_s=20.0)), server.ask)

    assert rate(run_virtually(scenario())) == pytest.approx(300, rel=within)


def test_steps_are_measured_each_by_itself() -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.1, places=5)
        stretches = (Stretch(20.0, 20.0), Stretch(20.0, 100.0))
        return await under_test(LoadPlan(OpenLoop(stretches, "constant"), Limits(duration_s=40.0)), server.ask)

    steps = run_virtually(scenario()).models[MODEL].meter.steps
    assert (steps[0].calls, steps[1].calls) == (400, 2_000)
    low, high = steps[0].latency.percentile(99), steps[1].latency.percentile(99)
    assert low is not None and low.value_s == pytest.approx(0.1, rel=0.01)
    # Fifty a second are served of the hundred that come: the last of 20 seconds' wait nearly 20 more.
    assert high is not None and high.value_s == pytest.approx(19.9, rel=0.01)


def test_several_models_are_asked_at_once_each_with_arrivals_of_its_own() -> None:
    async def scenario() -> tuple[LoadResult, LoadServer]:
        server = LoadServer(lambda: 0.1)
        plan = LoadPlan(at_rate(30.0), Limits(duration_s=30.0))
        return await under_test(plan, server.ask, "sim/one", "sim/other"), server

    result, server = run_virtually(scenario())
    came = {
        model: [at for at, call in zip(server.arrivals, server.calls, strict=True) if call.model == model]
        for model in ("sim/one", "sim/other")
    }
    assert came["sim/one"] != came["sim/other"]
    for model, times in came.items():
        assert result.models[model].meter.calls == len(times) == pytest.approx(900, abs=120)


def test_a_trace_ends_its_test() -> None:
    async def scenario() -> tuple[LoadResult, list[float]]:
        server = LoadServer(lambda: 0.1)
        return await under_test(LoadPlan(Replay((5.0, 6.0, 9.0)), Limits()), server.ask), server.arrivals

    result, arrivals = run_virtually(scenario())
    assert arrivals == pytest.approx([0.0, 1.0, 4.0], abs=0.001) and result.ending.reason == "arrivals"
    assert result.models[MODEL].meter.calls == 3


def test_no_test_spends_or_could_have_spent_more_than_its_cap() -> None:
    """100 caps at random: whatever each call costs up to its worst, killed at any instant the cap holds."""
    chance = Random(9)
    # A prompt of 64 bytes, what a provider may add to it and to its one turn, and 8 tokens of answer.
    worst = (64 + 16 + 16) * 1e-6 + 8 * 4e-6

    async def scenario(cap: float, latency_s: float) -> tuple[LoadResult, int, int]:
        spent_by_server = 0.0
        server = LoadServer(lambda: latency_s * chance.random(), cost=None)

        async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
            nonlocal spent_by_server
            spent_by_server += worst
            assert spent_by_server <= cap * (1 + 1e-9)
            outcome = await server.ask(call, hear=hear)
            return Outcome(call, reply=Reply("A"), attempts=1, cost=worst, latency_ms=outcome.latency_ms)

        result = await under_test(LoadPlan(at_rate(100.0), Limits(max_cost=cap, duration_s=60.0)), ask)
        return result, len(server.arrivals), math.floor(cap / worst * (1 + 1e-12))

    for _ in range(100):
        cap = chance.uniform(0, 60 * worst)
        result, sent, affordable = run_virtually(scenario(cap, chance.choice([0.001, 0.3, 5.0])))
        assert sent == affordable and result.models[MODEL].spent <= cap
        assert result.ending.reason == "cost"


def test_money_that_answers_did_not_cost_is_spent_on_others() -> None:
    async def scenario() -> tuple[LoadResult, int]:
        server = LoadServer(lambda: 0.01, cost=0.000_01)
        return await under_test(LoadPlan(at_rate(5.0, "constant"), Limits(max_cost=0.001)), server.ask), len(
            server.arrivals
        )

    result, sent = run_virtually(scenario())
    assert 85 <= sent <= 100 and result.models[MODEL].spent == pytest.approx(sent * 0.000_01)


def test_calls_are_counted_over_all_models() -> None:
    async def scenario() -> tuple[LoadResult, int]:
        server = LoadServer(lambda: 0.1)
        return await under_test(LoadPlan(ClosedLoop(3), Limits(calls=100)), server.ask, "sim/one", "sim/other"), len(
            server.arrivals
        )

    result, sent = run_virtually(scenario())
    assert (sent, result.ending.reason) == (100, "calls")
    assert sum(own.meter.calls for own in result.models.values()) == 100


def test_failures_are_told_by_kind_and_their_times_are_no_latencies() -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.1, fails=lambda n: "rate_limited" if n % 4 == 0 else None)
        return await under_test(LoadPlan(at_rate(50.0, "constant"), Limits(calls=400)), server.ask)

    meter = run_virtually(scenario()).models[MODEL].meter
    assert (meter.failures, meter.errors, meter.latency.count) == ({"rate_limited": 100}, 100, 300)


def test_a_lane_that_stops_ends_the_test_and_says_why() -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.1)

        async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
            if len(server.arrivals) >= 20:
                raise Stopped([Stop(MODEL, "dead_key", "the key is dead")])
            return await server.ask(call, hear=hear)

        return await under_test(LoadPlan(at_rate(50.0), Limits(duration_s=1e6)), ask)

    result = run_virtually(scenario())
    assert (result.ending.reason, result.ending.detail) == ("stopped", "the key is dead")
    assert result.models[MODEL].meter.answered == 20


def test_what_no_call_should_raise_ends_the_test_and_is_raised() -> None:
    async def scenario() -> LoadResult:
        async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
            await asyncio.sleep(0.1)
            raise ZeroDivisionError("a defect")

        return await under_test(LoadPlan(at_rate(5.0), Limits(duration_s=1e6)), ask)

    with pytest.raises(ZeroDivisionError, match="a defect"):
        run_virtually(scenario())


def test_what_can_not_be_used_on_our_own_side_ends_the_test_and_what_was_measured_stands() -> None:
    async def scenario() -> LoadResult:
        server = LoadServer(lambda: 0.1)

        async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
            if len(server.arrivals) >= 20:
                raise LocalFault("the disk is full")
            return await server.ask(call, hear=hear)

        return await under_test(LoadPlan(at_rate(50.0), Limits(duration_s=1e6)), ask)

    result = run_virtually(scenario())
    assert (result.ending.reason, result.ending.detail) == ("fault", "the disk is full")
    # What was never sent is counted as begun, and is no error of the server's.
    measured = result.models[MODEL]
    assert (measured.meter.answered, measured.meter.errors) == (20, 0) and measured.begun > 20


def test_a_cancelled_test_leaves_nothing_in_flight() -> None:
    async def scenario() -> tuple[int, int]:
        server = LoadServer(lambda: 50.0)
        test = asyncio.create_task(under_test(LoadPlan(at_rate(10.0), Limits(duration_s=1e6)), server.ask))
        await asyncio.sleep(10.0)
        under_way = server.in_flight
        test.cancel()
        await asyncio.wait([test])
        return under_way, server.in_flight

    under_way, left = run_virtually(scenario())
    assert under_way > 50 and left == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoadPlan(at_rate(1), Limits(calls=1), cool_down_s=1), "a test whose end is known"),
        (
            lambda: LoadPlan(at_rate(1), Limits(duration_s=9), warm_up_s=5, cool_down_s=4),
            "less than the test's 9 s together, got 9 s",
        ),
    ],
)
def test_an_impossible_plan_is_refused_with_the_numbers(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
