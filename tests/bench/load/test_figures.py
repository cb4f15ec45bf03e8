"""The structs of load.json from what was measured: they add up, read back as they were, and say whose they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from load_orders import MODEL, PRICES, carried, order_of
from load_server import LoadServer

from millstream.bench.load.arrivals import (
    ClosedLoop,
    OpenLoop,
    Replay,
    Stretch,
    asked_between,
    at_rate,
    in_parts,
    rate_at,
)
from millstream.bench.load.budget import LoadEnd
from millstream.bench.load.execution import LoadOutcome
from millstream.bench.load.figures import client_of, load_of, times_of
from millstream.bench.load.goal import Goal, Search
from millstream.bench.load.histogram import Histogram
from millstream.bench.load.measurements import MeasuredRun, ModelMeasurement
from millstream.bench.load.meter import Promise
from millstream.bench.load.plan import Limits
from millstream.bench.load.report.part import drawn
from millstream.bench.load.report.series import LoadTest
from millstream.bench.load.spec import LoadSpec
from millstream.bench.load.summary import tell
from millstream.bench.load.watch import ClientVerdict
from millstream.metrics.load.load_json import GoalFound, LoadFigures, ModelFigures
from millstream.wiring.running import RunEnd

GOAL = Goal("latency", 90, 0.5, 0.05, "the goal's words")


def measured(spec: LoadSpec, server: LoadServer) -> LoadFigures:
    session, _ = carried(spec, lambda: server.ask)
    ending = session.ending or LoadEnd("error")
    return load_of(spec, session.wholes, ending, PRICES, began=1.0, left_out=session.left_out)


def test_what_is_written_reads_back_as_it_was() -> None:
    spec = order_of(Limits(duration_s=20.0), at_rate(20.0), promise=Promise(latency_s=0.2))
    load = measured(spec, LoadServer(lambda: 0.1, fails=lambda n: "timeout" if n % 10 == 0 else None))
    assert msgspec.json.decode(msgspec.json.encode(load), type=LoadFigures) == load


def test_parts_and_kinds_add_up_to_the_whole() -> None:
    spec = order_of(Limits(), OpenLoop((Stretch(60.0, 5.0, 25.0),)), warm_up_s=5.0)
    server = LoadServer(lambda: 0.1, fails=lambda n: ("timeout" if n % 20 else "server_error") if n % 10 == 0 else None)
    load = measured(spec, server)
    own = load.models[MODEL]
    for parts in (own.slices, own.steps):
        assert sum(part.calls for part in parts) == own.calls == own.answered + sum(own.errors.values())
        assert sum(part.seconds for part in parts) == pytest.approx(load.seconds, abs=1e-3)
        for kind, count in own.errors.items():
            assert sum(part.kinds.get(kind, 0) for part in parts) == count
        # What a ramp asks for over a part of its time, whose mean over all of it is the whole's.
        assert sum((part.rate or 0) * part.seconds for part in parts) == pytest.approx(900 - 5 * 5.833, rel=0.001)
    assert own.error_share.low < own.error_share.value < own.error_share.high
    assert own.rate == pytest.approx(own.calls / load.seconds) and load.warm_up_s == 5.0


def test_the_histogram_in_it_is_the_whole_one_for_others_to_read() -> None:
    histogram = Histogram()
    rng = np.random.default_rng(1)
    for seconds in rng.lognormal(-2, 0.5, 5_000):
        histogram.record(float(seconds))
    times = times_of(histogram)
    decoded = HdrHistogram.decode(times.hdr)
    assert decoded.get_total_count() == times.count == 5_000
    for each in times.percentiles:
        assert decoded.get_value_at_percentile(each.percent) / 1e6 == pytest.approx(each.value_s, rel=0.002)
        assert each.low_s is not None and each.low_s <= each.value_s
    assert times_of(Histogram()).percentiles == () and times_of(Histogram()).hdr == ""


def test_a_closed_loop_and_a_trace_ask_for_no_rate() -> None:
    closed = measured(order_of(Limits(duration_s=10.0), ClosedLoop(2)), LoadServer(lambda: 0.1))
    trace = measured(order_of(Limits(), Replay((0.0, 1.0, 2.0, 4.0))), LoadServer(lambda: 0.1))
    for load in (closed, trace):
        own = load.models[MODEL]
        assert {part.rate for part in (*own.slices, *own.steps)} == {None} and own.calls > 0


def _of_streams(own: ModelFigures) -> list[str]:
    """The words of the columns that only streamed answers have: theirs come in one piece, so there is no gap."""
    return ["ttft", "p99"] if own.first_token.count else []


def test_a_search_tells_its_steps_and_what_it_found() -> None:
    spec = order_of(Limits(calls=1), search=Search(GOAL, 20.0, 1_000.0, precision=0.2))
    load = measured(spec, LoadServer(lambda: 0.1, places=10))
    own = load.models[MODEL]
    assert own.goal is not None and own.goal.goal == "the goal's words" and load.ending == "goal"
    assert own.goal.kept == max(step.rate or 0 for step in own.steps if step.standing == "kept")
    assert own.goal.missed == min(step.rate or 0 for step in own.steps if step.standing == "missed")
    # The steps stand in the order they were run; latency over time covers all of them.
    assert [step.begins_s for step in own.steps] == sorted(step.begins_s for step in own.steps)
    assert own.slices[-1].begins_s > own.steps[-1].begins_s
    said = tell(load, Path("out"))
    assert f"goal was kept is {own.goal.kept:.4g} calls a second" in said and "not shown to keep the goal" in said
    # A row for each rate, and no percentile or rate of calls at all of them.
    lines = [line.split() for line in said.splitlines()]
    head = lines.index(["asked", "sent", "p50", "p99", *_of_streams(own), "errors"])
    shown = [(line[0], line[-1]) for line in lines[head + 1 : head + 1 + len(own.steps)]]
    assert shown == [(f"{step.rate:.4g}/s", step.standing) for step in own.steps]
    assert "latency, ms" not in said and f"answered, {own.rate:.4g}/s" not in said and "tokens/s out" not in said


def test_a_goal_without_its_time_is_not_measured_and_counts_as_such() -> None:
    """The server says one piece an answer, so no gap between pieces is there to measure."""
    spec = order_of(Limits(calls=1), search=Search(Goal("gap", 90, 0.5, 0.05, "the goal's words"), 20.0, 1_000.0))
    load = measured(spec, LoadServer(lambda: 0.1, pieces=1))
    own = load.models[MODEL]
    assert own.goal == GoalFound("the goal's words", None, None, None, "no answer came in two pieces or more")
    assert [step.standing for step in own.steps] == ["unmeasured"]
    assert load.unmeasured == (f"{MODEL}: the goal was not measured: no answer came in two pieces or more",)
    assert "the goal's words: The goal was not measured: no answer came in two pieces" in tell(load, Path("out"))


def test_steps_beyond_what_a_server_bears_have_a_knee() -> None:
    stretches = tuple(Stretch(30.0, rate) for rate in (20.0, 40.0, 120.0))
    load = measured(order_of(Limits(), OpenLoop(stretches)), LoadServer(lambda: 0.1, places=10))
    knee = load.models[MODEL].knee
    assert knee is not None and 20.0 <= knee.rate <= 60.0
    assert "knee" in tell(load)


def whole_of(*verdicts: tuple[float | None, ClientVerdict]) -> ModelMeasurement:
    whole = ModelMeasurement(None)
    for rate, verdict in verdicts:
        whole.runs.append(MeasuredRun(0.0, 10.0, 0.0, at_rate(1.0), verdict, rate))
    return whole


def test_a_client_that_was_the_bottleneck_is_told_first_and_where() -> None:
    fine, busy = (
        ClientVerdict(0.001, 0.2, 0.1, ()),
        ClientVerdict(0.05, 0.99, 0.9, ("this process took 99% of a core",)),
    )
    client = client_of({"sim/one": whole_of((20.0, fine), (40.0, busy)), "sim/other": whole_of((None, fine))})
    assert client.reasons == ("sim/one, 40 calls/s: this process took 99% of a core",)
    assert (client.lag_p99_s, client.cpu_peak, client.is_bottleneck) == (0.05, 0.99, True)
    assert client.cpu_mean == pytest.approx(1.1 / 3, abs=1e-3)
    assert client_of({"sim/one": whole_of((None, fine))}).reasons == ()
    spec = order_of(Limits(duration_s=5.0), at_rate(10.0))
    load = msgspec.structs.replace(measured(spec, LoadServer(lambda: 0.1)), client=client)
    first, second, *_ = tell(load).splitlines()
    assert first == "THE CLIENT WAS THE BOTTLENECK: these figures are not the server's alone"
    assert "99% of a core" in second


def test_a_stall_shows_in_the_latency_and_the_summary_says_where_it_was() -> None:
    spec = order_of(Limits(duration_s=20.0, in_flight=4), at_rate(100.0, "constant"))
    load = measured(spec, LoadServer(lambda: 0.01, stalls=(10.0, 12.0)))
    own, said = load.models[MODEL], tell(load)
    latency, service = own.latency.at(99.0), own.service.at(99.0)
    assert latency is not None and service is not None and latency.value_s > 1.5 > 0.1 > service.value_s
    said = " ".join(said.split())
    assert "of being sent" in said and "calls were due while 4 were in flight" in said


def test_the_summary_fits_eighty_columns_and_tells_money_promises_and_failures() -> None:
    spec = order_of(Limits(duration_s=30.0), at_rate(20.0), promise=Promise(latency_s=0.2), models=(MODEL, "sim/other"))
    load = measured(spec, LoadServer(lambda: 0.1, cost=0.01, fails=lambda n: "timeout" if n % 10 == 0 else None))
    said = tell(load, Path("out"))
    assert "kept the promise" in said and "timeout" in said and "spent in all" in said and "out/calls.jsonl" in said
    assert max(map(len, said.splitlines())) <= 100
    tables = [line for line in said.splitlines() if "p99.9" in line or ", ms" in line]
    assert tables and max(map(len, tables)) <= 80


def test_a_test_that_ended_in_its_warm_up_does_not_say_that_nobody_answered() -> None:
    load = measured(order_of(Limits(calls=5), at_rate(10.0), warm_up_s=60.0), LoadServer(lambda: 0.1))
    said = tell(load)
    assert (load.models[MODEL].begun, load.models[MODEL].calls) == (5, 0)
    assert "nothing was measured: those sent were due in the warm-up" in said and "No call was answered" not in said


def test_expected_arrivals_of_ramps_and_steps_are_their_integrals() -> None:
    arrivals = OpenLoop((Stretch(10.0, 0.0, 20.0), Stretch(5.0, 20.0)))
    assert asked_between(arrivals, 0.0, 15.0) == pytest.approx(200.0)
    assert asked_between(arrivals, 5.0, 12.0) == pytest.approx(75.0 + 40.0)
    assert asked_between(arrivals, 20.0, 30.0) == 0.0 and asked_between(ClosedLoop(1), 0.0, 5.0) is None
    assert rate_at(arrivals, 5.0) == pytest.approx(10.0, abs=0.01)
    assert rate_at(at_rate(7.0), 1e5) == pytest.approx(7.0)
    cut = in_parts(arrivals)
    assert isinstance(cut, OpenLoop) and len(cut.stretches) == 11
    for at in (0.5, 3.3, 9.99, 12.0):
        assert asked_between(cut, 0.0, at) == pytest.approx(asked_between(arrivals, 0.0, at) or 0.0)


def test_a_search_in_which_the_lowest_rate_missed_names_none() -> None:
    spec = order_of(Limits(calls=1), search=Search(GOAL, 200.0, 1_000.0))
    load = measured(spec, LoadServer(lambda: 0.1, places=10))
    goal = load.models[MODEL].goal
    assert goal is not None and goal.kept is None and "kept at no rate that was tried" in " ".join(tell(load).split())


@pytest.mark.parametrize(
    "spec",
    [
        order_of(Limits(duration_s=10.0), at_rate(20.0), promise=Promise(latency_s=0.2)),
        order_of(Limits(), OpenLoop(tuple(Stretch(5.0, rate) for rate in (10.0, 20.0, 40.0)))),
        order_of(Limits(calls=1), search=Search(GOAL, 20.0, 1_000.0, precision=0.2)),
        order_of(Limits(duration_s=10.0), ClosedLoop(2)),
    ],
    ids=["promise", "steps", "goal", "closed"],
)
def test_without_an_answer_no_time_promise_goal_or_knee_is_told(spec: LoadSpec) -> None:
    load = measured(spec, LoadServer(lambda: 0.1, fails=lambda number: "server_error"))
    own, said = load.models[MODEL], tell(load)
    assert own.answered == 0 and (own.goodput, own.knee) == (None, None) and own.latency.percentiles == ()
    assert own.goal is None or (own.goal.kept, own.goal.missed) == (None, None)
    assert {step.standing for step in own.steps} == {None}
    assert load.unmeasured == (
        f"{MODEL}: nothing was measured: none of {own.calls:,} calls was answered (server_error {own.calls:,})",
    )
    assert LoadOutcome(load=load).exit_code == 3 and LoadOutcome(load=load, end=RunEnd(signal=2)).exit_code == 130
    assert load.unmeasured[0] in said
    assert not any(word in said for word in ("goodput", "goal ", "knee", "latency,"))
    page = drawn([LoadTest("test", load)]).page.decode()
    assert "There is no answer to measure." in page and "kept the promise" not in page and "The knee" not in page
    assert "kept it" not in page and "No knee" not in page


def test_where_half_of_the_calls_failed_it_says_of_which_the_times_are() -> None:
    spec = order_of(Limits(duration_s=10.0), at_rate(20.0))
    load = measured(spec, LoadServer(lambda: 0.1, fails=lambda n: "timeout" if n % 2 == 0 else None))
    own = load.models[MODEL]
    failed = own.errors["timeout"]
    of = f"{failed} of {own.calls} calls were not answered (timeout {failed}): all times are those of the other "
    of += f"{own.answered}"
    assert of in " ".join(tell(load).split()) and of in drawn([LoadTest("test", load)]).page.decode()
    assert (load.unmeasured, LoadOutcome(load=load).exit_code) == ((), 0)


def test_answers_without_a_word_are_counted_and_told() -> None:
    server = LoadServer(lambda: 0.1, says="", finish="length")
    load = measured(order_of(Limits(duration_s=10.0), at_rate(20.0)), server)
    own = load.models[MODEL]
    assert own.empty == own.cut == own.answered > 0 and not own.first_token.count
    told = f"{own.empty} of {own.answered} answers have no word ({own.cut} answers were cut at max_tokens)"
    assert told in " ".join(tell(load).split()) and told in drawn([LoadTest("test", load)]).page.decode()
    assert LoadOutcome(load=load).exit_code == 0
