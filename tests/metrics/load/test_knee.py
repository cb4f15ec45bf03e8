"""The knee, on queues whose knee is known."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from queues import NOTHING, percentile_s, step

from millstream.metrics.load.knee import judged, knee
from millstream.metrics.load.load_json import Knee, LoadPart, Percentile, Times

# Servers, and what one of them serves a second.
QUEUES = [(1, 100.0), (2, 50.0), (8, 12.5), (40, 5.0)]
# The rates, in parts of what all serve. Between the last two a queue takes longer to settle than such a test lasts.
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.2)


def flat(rate: float, p99_s: float, calls: int = 1000, errors: int = 0, *, width: float = 0.1) -> LoadPart:
    percentiles = (Percentile(99.0, p99_s, p99_s * (1 - width), p99_s * (1 + width)),)
    return LoadPart(
        0.0, calls / rate, calls, errors, Times(calls - errors, p99_s, p99_s, percentiles), NOTHING, rate=rate
    )


def found(*steps: LoadPart) -> float | None:
    at = knee(steps)
    return None if at is None else at.rate


@pytest.mark.parametrize(("servers", "served"), QUEUES)
@pytest.mark.parametrize("seed", range(3))
def test_the_knee_of_a_queue_is_found_to_one_step_and_never_above_the_truth(
    servers: int, served: float, seed: int
) -> None:
    """An M/M/c queue; where one server does all, its p99 is twice that of the lowest rate at 55% of what it can."""
    rates = [share * servers * served for share in SHARES]
    truths = [percentile_s(rate, 99, served=served, servers=servers) for rate in rates]
    truth = max(at for at, value in enumerate(truths) if value <= 2 * truths[0])
    random = Random(f"{servers} {seed}")
    # Calls that wait in one queue resemble each other: many are needed for what few independent ones would show.
    steps = [step(rate, 12_000, random, served=served, servers=servers) for rate in rates]
    at = knee(steps)
    assert at is not None
    assert rates.index(at.rate) in (truth - 1, truth)
    assert "p99 latency" in at.why and f"times that of {rates[0]:g} calls/s" in at.why


def test_the_truth_about_queues_is_that_of_their_textbook() -> None:
    # ln(100) / (100 - 50), and Erlang C's one third of all who wait for two servers at half of what they can.
    assert percentile_s(50, 99, served=100) == pytest.approx(0.0921, abs=1e-4)
    random = Random(3)
    seen = step(50, 100_000, random, served=50, servers=2).latency.at(99.0)
    assert seen is not None
    assert seen.value_s == pytest.approx(percentile_s(50, 99, served=50, servers=2), rel=0.04)


def test_a_queue_asked_for_little_has_no_knee() -> None:
    steps = [step(rate, 5_000, Random(rate), served=100) for rate in (5, 10, 15, 20)]
    assert knee(steps) is None
    assert [each.standing for each in judged(steps)] == ["borne"] * 4


def test_fewer_than_three_rates_have_no_knee() -> None:
    assert found(flat(10, 1.0), flat(20, 9.0)) is None
    assert found(flat(10, 1.0), flat(10, 1.0), flat(20, 9.0), flat(20, 9.0)) is None
    assert found(flat(10, 1.0), flat(20, 1.0), flat(30, 9.0)) == 20
    assert judged([]) == ()


def test_what_the_intervals_leave_open_is_not_named() -> None:
    wide = flat(30, 1.8, width=0.4)
    at = knee([flat(10, 1.0), flat(20, 1.0), wide, flat(40, 9.0)])
    assert at is not None and at.rate == 20
    assert at.why.endswith("; too few calls decide about 30 calls/s")
    narrow = flat(30, 1.8, width=0.01)
    assert found(flat(10, 1.0, width=0.01), flat(20, 1.0), narrow, flat(40, 9.0)) == 30
    # More than twice by its figure, and not by its interval: there is nothing beyond which it could break.
    assert found(flat(10, 1.0), flat(20, 1.0), flat(30, 2.1, width=0.2)) is None


def test_errors_are_beyond_the_knee_once_their_interval_is_above_one_percent() -> None:
    low = (flat(10, 1.0), flat(20, 1.0))
    at = knee([*low, flat(30, 1.0, errors=25)])
    assert at is not None and at.rate == 20
    assert at.why == "at 30 calls/s 2.5% (1.6% to 3.7%) of the calls failed"
    assert found(*low, flat(30, 1.0, errors=12), flat(40, 1.0, errors=500)) == 20
    assert found(*low, flat(30, 1.0, errors=2), flat(40, 1.0, errors=500)) == 30
    failed = replace(flat(40, 1.0), errors=1000, latency=NOTHING)
    assert found(*low, failed) == 20


def test_calls_that_were_not_begun_are_beyond_the_knee_unless_chance_may_have_left_them_out() -> None:
    low = (flat(10, 1.0), flat(20, 1.0))
    short = replace(flat(30, 1.0, calls=800), seconds=1000 / 30)
    at = knee([*low, short])
    assert at is not None and at.rate == 20
    assert at.why == "at 30 calls/s only 24 calls/s were begun"
    assert knee([*low, short], burstiness=40.0) is None
    # 80 of 100 are two standard deviations off: chance does that.
    assert found(*low, replace(flat(30, 1.0, calls=84), seconds=100 / 30)) is None


def test_the_order_of_steps_is_nothing_to_the_knee() -> None:
    steps = [flat(10, 1.0), flat(20, 1.1), flat(40, 1.2), flat(80, 9.0)]
    assert {found(*(steps[at] for at in order)) for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2))} == {40}


def test_a_rate_that_broke_once_is_not_borne() -> None:
    assert found(flat(10, 1.0), flat(20, 1.0), flat(30, 1.0), flat(30, 9.0)) == 20


def test_a_slow_rate_below_a_borne_one_does_not_move_the_knee() -> None:
    """A hiccup at 20 calls/s says nothing of the 40 that were borne."""
    steps = [flat(10, 1.0), flat(20, 9.0), flat(40, 1.0), flat(80, 9.0)]
    assert knee(steps) == Knee(40, "at 80 calls/s p99 latency was 9 (7.81 to 10.4) times that of 10 calls/s")


def test_rates_at_which_the_client_was_the_bottleneck_say_nothing_of_the_server() -> None:
    low = (flat(10, 1.0), flat(20, 1.0), flat(30, 1.0))
    slow = flat(40, 9.0)
    assert found(*low, slow) == 30
    assert found(*low, replace(slow, is_client_bound=True)) is None
    assert found(replace(flat(5, 0.1), is_client_bound=True), *low, slow) == 30


def test_a_server_that_fails_the_lowest_rate_has_no_knee() -> None:
    assert found(flat(10, 1.0, errors=500), flat(20, 1.0), flat(30, 9.0)) is None


def test_closed_loops_and_traces_have_no_knee() -> None:
    parts = [replace(flat(rate, rate / 10), rate=None) for rate in (10, 20, 30, 90)]
    assert knee(parts) is None


def test_of_few_calls_the_highest_percentile_with_an_interval_is_compared() -> None:
    random = Random(5)
    steps = [step(rate, round(30 * rate), random, served=20) for rate in (2, 4, 6, 18, 24)]
    lowest = steps[0].latency.at(99.0)
    assert lowest is not None and lowest.high_s is None
    at = knee(steps)
    assert at is not None and at.rate <= 6
    assert at.why.startswith(("at 18 calls/s p9", "at 24 calls/s p9"))
    assert "p99 " not in at.why
