"""The runs of a load test in virtual time: one, or a search's many on one axis, under limits that all of them share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from load_orders import MODEL, Ended, carried, order_of
from load_server import LoadServer
from virtual_time import run_virtually

from millstream.bench.load.arrivals import ClosedLoop, OpenLoop, Stretch, at_rate
from millstream.bench.load.budget import LoadEnd
from millstream.bench.load.goal import Goal, Search
from millstream.bench.load.plan import Limits
from millstream.bench.load.run import SendCall
from millstream.bench.load.session import LoadSession
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Hear

# So lax in its errors that a step needs few calls.
GOAL = Goal("latency", 90, 0.5, 0.05)
SEARCH = Search(GOAL, 20.0, 1_000.0, precision=0.1)


@cache
def whole_search_s() -> float:
    """How long a search at ten places lasts that nobody ends."""
    session, _ = carried(order_of(Limits(calls=1), search=SEARCH), ten_places)
    return session.wholes[MODEL].runs[-1].ends_s


def ten_places(cost: float | None = None) -> SendCall:
    """Ten places of 100 ms: 100 calls a second go through, a few less with p90 below half a second."""
    return LoadServer(lambda: 0.1, places=10, cost=cost).ask


def test_a_ramp_is_measured_in_ten_parts_each_at_the_mean_of_its_rates() -> None:
    spec = order_of(Limits(), OpenLoop((Stretch(100.0, 0.0, 40.0),), "constant"))
    session, _ = carried(spec, lambda: LoadServer(lambda: 0.05).ask)
    steps = session.wholes[MODEL].steps
    assert [step.rate for step in steps] == pytest.approx([2.0, 6.0, 10.0, 14.0, 18.0, 22.0, 26.0, 30.0, 34.0, 38.0])
    assert [step.begins_s for step in steps] == pytest.approx([10.0 * number for number in range(10)], abs=1e-3)
    assert [step.counted.calls for step in steps] == pytest.approx([10 * (step.rate or 0) for step in steps], abs=1)
    assert sum(step.counted.calls for step in steps) == session.wholes[MODEL].measured.meter.calls


def test_steps_of_a_test_that_ends_early_are_as_long_as_they_were_measured() -> None:
    spec = order_of(Limits(calls=150), OpenLoop((Stretch(10.0, 10.0), Stretch(10.0, 20.0)), "constant"), warm_up_s=4.0)
    session, _ = carried(spec, lambda: LoadServer(lambda: 0.05).ask)
    first, second = session.wholes[MODEL].steps
    assert [first.begins_s, first.seconds, first.counted.calls] == pytest.approx([4.0, 6.0, 60])
    assert [second.begins_s, second.seconds] == pytest.approx([10.0, 2.5], abs=0.06)
    assert list(session.left_out) == pytest.approx([4.0, 0.0]) and session.ending == LoadEnd("calls")


def test_one_rate_is_one_step_and_a_closed_loop_asks_for_none() -> None:
    opened, _ = carried(
        order_of(Limits(duration_s=20.0), at_rate(10.0, "constant")), lambda: LoadServer(lambda: 0.1).ask
    )
    closed, _ = carried(order_of(Limits(duration_s=20.0), ClosedLoop(3)), lambda: LoadServer(lambda: 0.1).ask)
    assert [step.rate for step in opened.wholes[MODEL].steps] == [pytest.approx(10.0)]
    (step,) = closed.wholes[MODEL].steps
    assert step.rate is None and step.counted.calls == pytest.approx(600, abs=6)


def test_the_ends_that_are_left_out_are_told() -> None:
    spec = order_of(Limits(duration_s=30.0), at_rate(10.0, "constant"), warm_up_s=5.0, cool_down_s=3.0)
    session, seen = carried(spec, lambda: LoadServer(lambda: 0.1).ask)
    assert [*session.left_out, session.wholes[MODEL].seconds] == pytest.approx([5.0, 3.0, 22.0])
    assert [sum(each.measured is known for each in seen.calls) for known in (True, False)] == [220, 80]


def test_a_searchs_steps_lie_one_after_the_other_on_one_axis() -> None:
    spec = order_of(Limits(calls=1), search=SEARCH, warm_up_s=1.0)
    session, seen = carried(spec, ten_places)
    whole = session.wholes[MODEL]
    found, meter = whole.found, whole.measured.meter
    assert found is not None and found.kept is not None and 70 < found.kept < 105 and session.ending == LoadEnd("goal")
    assert [step.standing for step in whole.steps] == [*found.steps.values()]
    assert {"kept", "missed"} <= {step.standing for step in whole.steps}
    # Each run begins when the one before it has ended, and its warm-up is none of its step's.
    for (begun, _), run, after in zip(seen.runs, whole.runs, [*whole.runs[1:], None], strict=True):
        assert run.begins_s == pytest.approx(begun.begins_s + 1.0) and begun.plan.warm_up_s == 1.0
        assert after is None or run.ends_s <= after.zero_s
    assert meter.calls == sum(step.counted.calls for step in whole.steps) == sum(each.measured for each in seen.calls)
    assert whole.measured.begun == len(seen.calls) > meter.calls
    # Latency over time shows the whole search: a slice's calls are those that were due in it.
    for number, part in meter.slices.items():
        begins_s = number * meter.slice_s
        assert part.calls == sum(each.measured and _is_due(each, begins_s, meter.slice_s) for each in seen.calls)
    assert max(meter.slices) * meter.slice_s >= whole.runs[-1].begins_s - meter.slice_s


def _is_due(ended: Ended, begins_s: float, seconds: float) -> bool:
    return begins_s <= ended.timed.due < begins_s + seconds


def test_no_two_steps_have_the_same_arrivals_or_the_same_calls() -> None:
    spec = order_of(Limits(calls=1), search=SEARCH)
    server = LoadServer(lambda: 0.1, places=10)
    _, seen = carried(spec, lambda: server.ask)
    prompts = [call.input for call in server.calls]
    assert len(set(prompts)) == len(prompts)
    assert len({run.plan.seed for run, _ in seen.runs}) == len(seen.runs) > 3


def test_all_steps_of_all_models_spend_one_budget_and_what_was_found_until_then_stands() -> None:
    chance = Random(5)
    for _ in range(8):
        cap = chance.uniform(0.0005, 0.02)
        spec = order_of(Limits(max_cost=cap), search=SEARCH, models=(MODEL, "sim/other"))
        session, _ = carried(spec, lambda: ten_places(cost=0.000_02))
        wholes = session.wholes.values()
        assert session.ending is not None and session.ending.reason in ("cost", "goal")
        spent = sum(whole.measured.spent for whole in wholes)
        assert spent <= cap
        assert session.money.spent == pytest.approx(spent) and session.money.reserved == pytest.approx(0.0)
        assert all(whole.found is not None for whole in wholes)
        for whole in wholes:
            assert whole.measured.meter.calls == sum(step.counted.calls for step in whole.steps)


def test_a_search_of_two_models_runs_both_at_once() -> None:
    spec = order_of(Limits(calls=1), search=SEARCH, models=(MODEL, "sim/other"))
    servers = {model: ten_places() for model in spec.models}

    async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
        return await servers[call.model](call, hear=hear)

    both, seen = carried(spec, lambda: ask)
    assert {models for _, models in seen.runs[:2]} == {(MODEL,), ("sim/other",)}
    assert seen.runs[1][0].begins_s == pytest.approx(0.0, abs=0.01)
    for whole in both.wholes.values():
        assert whole.found is not None and whole.found.kept is not None and 70 < whole.found.kept < 105


def ends_at(seconds: float, drop_after: float | None = None) -> Callable[[LoadSession], None]:
    def meanwhile(session: LoadSession) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, session.end, "interrupted", "interrupted by SIGINT")
        if drop_after is not None:
            loop.call_later(seconds + drop_after, session.drop)

    return meanwhile


def test_an_end_from_outside_begins_nothing_more_and_waits_for_what_is_in_flight() -> None:
    spec = order_of(Limits(duration_s=100.0), at_rate(10.0, "constant"))
    server = LoadServer(lambda: 2.0)
    session, seen = carried(spec, lambda: server.ask, ends_at(5.05))
    assert session.ending == LoadEnd("interrupted", "interrupted by SIGINT")
    assert max(server.arrivals) <= 5.05 and len(server.arrivals) == len(seen.calls) == 51
    assert {each.timed.status for each in seen.calls} == {"ok"}
    assert session.wholes[MODEL].seconds == pytest.approx(5.05, abs=0.01)


def test_what_is_dropped_at_the_end_is_counted_as_unfinished() -> None:
    spec = order_of(Limits(duration_s=100.0), at_rate(10.0, "constant"))
    server = LoadServer(lambda: 2.0)
    session, seen = carried(spec, lambda: server.ask, ends_at(5.05, drop_after=0.5))
    assert server.in_flight == 0 and len(seen.calls) == 51
    failures = session.wholes[MODEL].measured.meter.failures
    # Those that were due in the last 2 s before it, less the half second that they were waited for.
    assert failures.keys() == {"unfinished"} and 14 <= failures["unfinished"] <= 16
    assert max(each.timed.ended for each in seen.calls) == pytest.approx(5.55, abs=0.01)


def test_a_search_that_is_ended_keeps_what_it_found() -> None:
    lasted = whole_search_s()
    spec = order_of(Limits(calls=1), search=SEARCH)
    session, seen = carried(spec, ten_places, ends_at(0.6 * lasted))
    whole = session.wholes[MODEL]
    assert session.ending is not None and session.ending.reason == "interrupted"
    assert whole.found is not None and whole.found.kept is not None and whole.steps[0].standing == "kept"
    assert max(each.timed.begun for each in seen.calls) <= 0.6 * lasted + 0.01
    assert whole.measured.meter.calls == sum(step.counted.calls for step in whole.steps) == len(seen.calls)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.65, 0.9])
def test_of_a_rate_that_was_cut_short_nothing_was_decided_whatever_its_calls_show(share: float) -> None:
    spec = order_of(Limits(calls=1), search=SEARCH)
    session, _ = carried(spec, ten_places, ends_at(share * whole_search_s()))
    whole = session.wholes[MODEL]
    assert whole.found is not None and len(whole.steps) == len(whole.found.steps) + 1
    assert whole.steps[-1].standing == "open" and whole.steps[-1].counted.calls > 0
    assert whole.found.kept == max(step.rate or 0.0 for step in whole.steps if step.standing == "kept")


def test_an_end_before_the_first_call_sends_nothing() -> None:
    spec = order_of(Limits(duration_s=100.0), at_rate(10.0))
    server = LoadServer(lambda: 2.0)
    session, seen = carried(spec, lambda: server.ask, lambda session: session.end("interrupted", "at once"))
    assert not server.arrivals and not seen.calls and session.ending == LoadEnd("interrupted", "at once")


def test_a_step_in_which_the_client_fell_behind_is_told_apart_from_those_in_which_it_did_not() -> None:
    """A second's work of the processor in each second of the last step."""
    spec = order_of(Limits(), OpenLoop((Stretch(10.0, 10.0), Stretch(10.0, 10.0)), "constant"))

    async def scenario() -> LoadSession:
        loop = asyncio.get_running_loop()
        server = LoadServer(lambda: 0.05)

        def cpu() -> float:
            return max(0.0, loop.time() - 10.0)

        session = LoadSession(spec, server.ask, {}, clock=loop.time, cpu=cpu)
        await session.run()
        return session

    session = run_virtually(scenario())
    assert [step.is_client_bound for step in session.wholes[MODEL].steps] == [False, True]
    assert session.wholes[MODEL].runs[0].verdict.is_client_bound
