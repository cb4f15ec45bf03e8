"""Workers make a run faster only where a process's own rate bounds it; worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.bench.evaluation.door.expected import Chain, Load, Span
from millstream.bench.evaluation.planning.forecast import Forecast, lane_forecast
from millstream.bench.evaluation.planning.workers import WorkersForecast, workers_forecast
from millstream.engine.limits import Quota

CALLS = 10_000_000
LOAD = Load(Span(CALLS, CALLS), Span(CALLS * 100, CALLS * 100), Span(CALLS, CALLS * 50))


def forecast(quota: Quota, *, load: Load = LOAD, chain: Chain | None = None) -> Forecast:
    nothing: dict[str, Any] = dict.fromkeys(Forecast.__struct_fields__)
    return Forecast(**nothing | {"lanes": (lane_forecast("a/b", load, quota, None),), "chain": chain})


NO_QUOTA = Quota()


def of(count: int, quota: Quota = NO_QUOTA, at_once: int = 1_000_000, chain: Chain | None = None) -> WorkersForecast:
    return workers_forecast(count, forecast(quota, chain=chain), lambda lane: at_once)


def test_a_quota_bounds_a_run_however_many_processes_send_it() -> None:
    # 10,000,000 calls at 500 a minute: 20,000 minutes; 1,000,000 in flight of 20 s: 200 s; one process: 1,791 s.
    workers = of(4, Quota(rpm=500))
    assert not workers.helps
    assert workers.minutes == workers.alone == Span(20_000, 20_000)
    assert workers.text == (
        "workers: 4 do not help: the quota of 500 requests a minute of a/b (333 h 20 min) bounds this run"
    )


def test_the_quota_that_takes_longest_is_named() -> None:
    # 1,010 to 1,500 million tokens at 1,000,000 a minute: 1,010 to 1,500 minutes; 10,000,000 requests: 1,000 minutes.
    workers = of(4, Quota(rpm=10_000, tpm=1_000_000))
    assert workers.decisive == ("the quota of 1,000,000 tokens a minute of a/b",)
    assert workers.alone == Span(1_010, 1_500)


def test_calls_in_flight_are_shared_out_so_that_more_processes_carry_no_more() -> None:
    # 10,000,000 calls, 1,000 at once: 10,000 rounds of 2 to 20 s are 333 to 3,333 minutes.
    workers = of(8, at_once=1_000)
    assert not workers.helps
    assert workers.alone == pytest.approx((20_000 / 60, 200_000 / 60))
    assert workers.text == (
        "workers: 8 do not help: --concurrency 1000 to a/b, at 2 to 20 s a call (5 h 33 min to 55 h 33 min) "
        "bounds this run"
    )


@pytest.mark.parametrize(("count", "seconds"), [(2, 750.0), (3, 500.0), (4, 375.0), (100, 220.0)])
def test_workers_share_the_work_until_the_driver_is_the_bound(count: int, seconds: float) -> None:
    # 10,000,000 calls: 150 us each are 1,500 s of workers, 22 us are 220 s of the driver, 1 / 6,900 s are 1,449 s.
    workers = of(count)
    assert workers.helps
    assert workers.minutes == pytest.approx((seconds / 60, seconds / 60))
    assert workers.alone == pytest.approx((CALLS / 6_900 / 60,) * 2)
    assert workers.decisive == ("one process's 6,900 calls a second",)


def test_workers_that_help_are_told_with_both_times() -> None:
    assert of(2).text == (
        "2 workers: 13 min instead of 24 min: one process's 6,900 calls a second (24 min) bounds this run without them"
    )


def test_one_worker_is_no_faster_than_the_process_itself() -> None:
    assert not of(1).helps


def test_workers_that_help_only_where_calls_are_short_are_told_so() -> None:
    # 100,000 in flight: 200 to 2,000 s.
    workers = of(4, at_once=100_000)
    assert workers.helps
    assert workers.minutes == pytest.approx((375 / 60, 2_000 / 60))
    assert workers.decisive == (
        "one process's 6,900 calls a second",
        "--concurrency 100000 to a/b, at 2 to 20 s a call",
    )


def test_steps_that_follow_each_other_take_the_place_of_calls_in_flight() -> None:
    # 100 items, 10 at once: 10 rounds of 15 steps of 20 to 200 s, 50 to 500 minutes.
    workers = of(4, at_once=1, chain=Chain(100, 10, 15, Span(20, 200), "turn"))
    assert workers.alone == Span(50, 500)
    assert workers.decisive == ("turns that follow each other",)
    assert not workers.helps
