"""The search for the highest rate that keeps a goal, against servers whose limit is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Literal

import pytest
from load_server import LoadServer
from msgspec.structs import replace
from virtual_time import run_virtually

from millstream.bench.load.arrivals import at_rate
from millstream.bench.load.budget import Budget
from millstream.bench.load.goal import Goal, Search, SearchResult, highest_rate, parse_goal
from millstream.bench.load.meter import LoadMeter
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.run import run_load
from millstream.bench.load.timing import CallTimes
from millstream.bench.load.watch import ClientVerdict
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls

GOAL = Goal("latency", 99, 1.0, 0.01)
IDLE = ClientVerdict(0.0, 0.1, 0.1, ())
BUSY = ClientVerdict(0.0, 0.99, 0.99, ("this process took 99% of a core",))


def meter_of(
    count: int, latency_s: Callable[[int], float], failed: Callable[[int], bool] = lambda n: False
) -> LoadMeter:
    meter = LoadMeter()
    for number in range(count):
        ended, status = latency_s(number), "server_error" if failed(number) else "ok"
        meter.take(CallTimes(0.0, 0.0, 0.0, 0.0, None, None, ended, (), status, 1))
    return meter


def searched(run: Callable[[float, int], Awaitable[tuple[LoadMeter, ClientVerdict]]], search: Search) -> SearchResult:
    return run_virtually(_awaited(highest_rate(search, run)))


async def _awaited(found: Awaitable[SearchResult]) -> SearchResult:
    return await found


def test_the_limit_of_a_server_with_ten_places_is_found() -> None:
    """Ten places of 100 ms: 100 calls a second go through, a few less with p99 below half a second."""

    async def run(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        server = LoadServer(lambda: 0.1, places=10)
        own = {"sim/m": calls("sim/m", by_length(FixedLength(8), Random(1)), CallParameters(stream=False), Random(1))}
        clock = asyncio.get_running_loop().time
        plan = LoadPlan(at_rate(rate), Limits(calls=count))
        result = await run_load(plan, own, server.ask, Budget(plan.limits, own, {}), clock=clock, cpu=lambda: 0.0)
        return result.models["sim/m"].meter, result.verdicts["sim/m"]

    found = searched(run, Search(Goal("latency", 95, 0.5, 0.01), 20.0, 1_000.0, precision=0.1))
    assert found.kept is not None and found.missed is not None and found.client_at is None
    assert 80 < found.kept < 105 and found.kept < found.missed <= 1.1 * found.kept
    assert [*found.steps][:3] == [20.0, 40.0, 80.0]


@pytest.mark.parametrize("limit", [11.0, 50.0, 333.0])
def test_the_bracket_holds_the_limit_to_the_precision(limit: float) -> None:
    async def run(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        return meter_of(count, lambda n: 0.5 if rate <= limit else 2.0), IDLE

    found = searched(run, Search(GOAL, 10.0, 1_000.0, precision=0.02))
    assert found.kept is not None and found.missed is not None
    assert found.kept <= limit < found.missed <= 1.02 * found.kept


def test_errors_miss_the_goal_whatever_the_times() -> None:
    async def run(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        return meter_of(count, lambda n: 0.1, lambda n: rate > 30 and n % 20 == 0), IDLE

    found = searched(run, Search(GOAL, 10.0, 100.0))
    assert found.kept is not None and found.missed is not None and found.kept <= 30 < found.missed


def test_the_ends_of_the_search_are_told_as_such() -> None:
    async def good(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        return meter_of(count, lambda n: 0.1), IDLE

    async def bad(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        return meter_of(count, lambda n: 5.0), IDLE

    kept, missed = searched(good, Search(GOAL, 10.0, 70.0)), searched(bad, Search(GOAL, 10.0, 70.0))
    assert (kept.kept, kept.missed, [*kept.steps]) == (70.0, None, [10.0, 20.0, 40.0, 70.0])
    assert (missed.kept, missed.missed, len(missed.steps)) == (None, 10.0, 1)


def test_a_busy_client_ends_the_search_and_blames_no_server() -> None:
    async def run(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        return (meter_of(count, lambda n: 0.1), IDLE) if rate < 40 else (meter_of(count, lambda n: 9.0), BUSY)

    found = searched(run, Search(GOAL, 10.0, 1_000.0))
    assert (found.kept, found.missed, found.client_at) == (20.0, None, 40.0)


def test_a_step_that_does_not_decide_gets_more_calls_and_then_counts_as_missed() -> None:
    asked: list[int] = []

    async def run(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        asked.append(count)
        return meter_of(count, lambda n: 2.0 if n % 100 == 50 else 0.5), IDLE

    goal = Goal("latency", 99, 1.0, 0.01)
    found = searched(run, Search(goal, 10.0, 100.0))
    assert asked == [goal.calls_least, 2 * goal.calls_least, 4 * goal.calls_least]
    assert found.steps == {10.0: "open"} and (found.kept, found.missed) == (None, 10.0)


@pytest.mark.parametrize("goal", [Goal("latency", 99, 1.0, 0.001), Goal("latency", 99.9, 1.0, 0.05)])
def test_the_least_calls_can_show_that_a_goal_is_kept_and_a_third_of_them_can_not(goal: Goal) -> None:
    assert goal.standing(meter_of(goal.calls_least, lambda n: 0.1)) == "kept"
    assert goal.standing(meter_of(goal.calls_least // 3, lambda n: 0.1)) == "open"
    assert goal.standing(LoadMeter()) == "open"


def _goal(text: str) -> Goal:
    goal = parse_goal(text)
    assert goal.text == text
    return replace(goal, text="")


def test_a_goal_reads_as_it_is_written() -> None:
    assert _goal("p99 first token <= 2 s and errors <= 0.1%") == Goal("first token", 99, 2.0, 0.001)
    assert _goal("p99.9 latency <= 250 ms") == Goal("latency", 99.9, 0.25, 0.001)
    assert _goal("p50 gap <= 30ms and errors <= 2 %") == Goal("gap", 50, 0.03, 0.02)


@pytest.mark.parametrize(
    ("usual", "own"),
    [("p95 ttft <= 300ms", "first token"), ("p99 TPOT <= 0.3 s", "token"), ("p50 itl < 300 MS", "gap")],
)
def test_the_usual_names_of_times_are_understood_beside_our_own(usual: str, own: str) -> None:
    found = parse_goal(usual)
    assert (found.of, found.most_s) == (own, 0.3)
    assert _goal(usual) == _goal(f"p{found.percent:g} {own} <= 300 ms")


@pytest.mark.parametrize("of", ["first token", "token", "gap"])
def test_a_goal_whose_time_no_answer_has_is_not_measured_and_ends_the_search(of: Literal["token"]) -> None:
    asked: list[float] = []

    async def run(rate: float, count: int) -> tuple[LoadMeter, ClientVerdict]:
        asked.append(rate)
        return meter_of(count, lambda n: 0.1), IDLE

    goal = Goal(of, 95, 10.0, 0.01)
    found = searched(run, Search(goal, 10.0, 100.0))
    assert asked == [10.0] and found.steps == {10.0: "unmeasured"}
    assert (found.kept, found.missed) == (None, None)
    # Errors miss a goal whether its time was measured or not; without any answer nothing is decided yet.
    assert goal.standing(meter_of(100, lambda n: 0.1, lambda n: n < 50)) == "missed"
    assert goal.standing(LoadMeter()) == "open"


@pytest.mark.parametrize(
    "text", ["", "p99", "p99 speed <= 2 s", "p99 latency >= 2 s", "p99 latency <= 2 s and", "p99 latency <= 2 s or x"]
)
def test_a_goal_that_is_not_understood_is_answered_with_one_that_is(text: str) -> None:
    if text.endswith("and"):
        text += " errors"
    with pytest.raises(ValueError, match=r"write it as 'p99 first token <= 2 s and errors <= 0\.1%'"):
        parse_goal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p10 latency <= 1 s", r"percentile \(10\) must be >= 50"),
        ("p99 latency <= 0 s", r"time \(0 s\) must be > 0"),
        ("p99 latency <= 1 s and errors <= 0%", r"errors \(0%\) must be > 0%"),
    ],
)
def test_an_impossible_goal_is_refused_with_the_numbers(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_goal(text)


def test_a_rate_is_held_until_a_queue_that_grows_by_the_precision_would_show() -> None:
    goal, gap = Goal("latency", 90, 2.0, 0.05), Goal("gap", 90, 2.0, 0.05)
    search = Search(goal, 10.0, 1_000.0, precision=0.1)
    # Ten percent too many make the queue 2 s long after 20 s, and half as much again is given.
    assert search.calls_at(100.0) == 3_000
    # Time between tokens has no queue, and a server is given its time to settle all the same.
    assert replace(search, goal=gap).calls_at(100.0) == 500
    # At low rates it is the interval that needs them; and nobody waits for what no precision is worth.
    assert search.calls_at(1.0) == goal.calls_least
    assert replace(search, precision=0.001).calls_at(100.0) == 6_000
