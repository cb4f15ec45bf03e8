"""What a lane's load costs at its price and takes under its quota."""

from __future__ import annotations

import math

import pytest

from millstream.bench.evaluation.door.expected import Chain, Load, Span
from millstream.bench.evaluation.planning.forecast import lane_forecast
from millstream.engine.limits import Quota
from millstream.engine.prices import Price

LOAD = Load(Span(30, 40), Span(8_000.4, 60_000.2), Span(30, 4_000), 4_000)


def test_cost_is_that_of_both_ends_and_the_upper_one_writes_all_prompts_to_the_cache() -> None:
    price = Price(2.0, 20.0, cached=0.2, write_5m=2.5)
    lane = lane_forecast("some/model", LOAD, Quota(), price)
    assert (lane.input_tokens, lane.output_tokens) == (Span(8_000, 60_000), (30, 4_000))
    assert lane.cost is not None and lane.cost.least == price.of(8_000, 30)
    assert lane.cost.most == pytest.approx((60_000 * 2.5 + 4_000 * 20.0) / 1e6)
    assert lane_forecast("some/model", LOAD, Quota(), None).cost is None


@pytest.mark.parametrize(
    ("quota", "minutes"),
    [
        (Quota(), None),
        (Quota(rpm=10, tpm=1_000_000), Span(3.0, 4.0)),
        (Quota(itpm=1_000), Span(8.0, 60.0)),
        (Quota(rpm=10, tpm=1_000), Span(8.03, 64.0)),
    ],
)
def test_time_is_that_of_the_narrowest_amount_of_the_quota(quota: Quota, minutes: Span | None) -> None:
    assert lane_forecast("some/model", LOAD, quota, None).minutes == minutes


def test_searches_cost_by_the_call_and_prompts_of_answers_are_not_known() -> None:
    calls = Load(Span(15, 30), input=None)
    search = lane_forecast("search/x", calls, Quota(rpm=30), Price(0.0, 0.0, call=0.005))
    assert (search.minutes, search.output_tokens) == (Span(0.5, 1.0), None)
    assert search.cost == pytest.approx((0.075, 0.15))
    assert lane_forecast("some/model", calls, Quota(), Price(1.0, 1.0)).cost is None


def test_what_a_model_may_think_at_worst_stands_beside_the_usual_cost() -> None:
    load = Load()
    load.add(Span(5, 5), Span(100, 100), Span(1_500, 15_000), 5 * 64_000)
    load.add(Span(1, 1), Span(20, 20), Span(1, 100))
    lane = lane_forecast("some/model", load, Quota(tpm=1_000), Price(1.0, 10.0))
    assert (lane.output_tokens, lane.output_at_worst) == (Span(1_501, 15_100), 320_100)
    # The upper ends write all prompts to a cache, at a quarter more.
    assert lane.cost == pytest.approx(((120 + 15_010) / 1e6, (150 + 151_000) / 1e6))
    assert lane.cost_at_worst == pytest.approx((150 + 3_201_000) / 1e6)
    assert lane.minutes == pytest.approx((1.621, 15.22))


def test_an_answer_of_unknown_length_has_no_cost_at_worst() -> None:
    load = Load(Span(5, 5), Span(100, 100), Span(5, 50), math.inf)
    lane = lane_forecast("some/model", load, Quota(), Price(1.0, 1.0))
    assert (lane.output_at_worst, lane.cost_at_worst) == (None, None) and lane.cost is not None


def test_steps_that_follow_each_other_take_their_seconds_in_each_round_of_items() -> None:
    # Three rounds: 100, 100 and 50 items at once, each of four steps.
    assert Chain(250, 100, 4, Span(5, 30), "turn").minutes == Span(1.0, 6.0)
