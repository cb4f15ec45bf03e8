"""A lane's own idea of its rate: one cut an episode, and back within four minutes."""

from __future__ import annotations

import pytest

from millstream.engine.lanes.adaptive import CUT, HIDDEN_CUT, RATE_MIN, RECOVERY_S, AdaptiveRate


def refused(rate: AdaptiveRate, now: float) -> bool:
    """A call that was sent a moment ago is refused now."""
    return rate.cut(now, now - 0.001, 10.0)


def test_nothing_limits_a_lane_before_its_first_refusal() -> None:
    rate = AdaptiveRate(None)
    assert rate.wait_s(100.0) == 0.0 and rate.rate is None and rate.cut_at is None


@pytest.mark.parametrize("declared", [None, 10.0])
def test_the_first_refusal_halves_the_rate_that_there_was(declared: float | None) -> None:
    rate = AdaptiveRate(declared)
    assert refused(rate, 60.0)
    assert rate.rate == pytest.approx(10.0 * CUT, rel=0.02)
    assert rate.wait_s(60.0) == pytest.approx(1 / 5.0, rel=0.02)


def test_calls_that_were_on_their_way_cut_nothing_more() -> None:
    rate = AdaptiveRate(10.0)
    assert rate.cut(60.0, 59.0, 10.0)
    assert not any(rate.cut(60.0 + late / 10, 59.9, 10.0) for late in range(50))
    assert rate.rate == 5.0


def test_an_hour_of_refusals_without_an_answer_is_one_episode() -> None:
    rate = AdaptiveRate(10.0)
    assert refused(rate, 60.0)
    assert not any(refused(rate, float(second)) for second in range(70, 3_660, 10))
    assert rate.rate == 5.0
    # The recovery begins with the last of them.
    assert 0 < rate.wait_s(3_650.0) <= 1 / 5.0
    assert rate.cut_at is not None
    assert rate.wait_s(3_650.0 + RECOVERY_S) == 0.0 and rate.cut_at is None


def test_a_refusal_after_an_answer_is_a_new_episode() -> None:
    rate = AdaptiveRate(10.0)
    assert refused(rate, 60.0)
    rate.note_answer(59.0)  # sent before the cut: tells nothing of the lower rate
    assert not refused(rate, 61.0)
    rate.note_answer(60.5)
    assert refused(rate, 62.0)
    assert rate.rate is not None and rate.rate < 0.6 * 5.0 + 1


def test_refusals_after_pauses_cut_every_time_down_to_the_least_rate() -> None:
    rate = AdaptiveRate(10.0)
    for turn in range(20):
        assert rate.cut(60.0 + turn, 59.9 + turn, 10.0, is_again=True)
    assert rate.rate == RATE_MIN


def hidden(begin: float | None = None, *, is_old: bool = False) -> AdaptiveRate:
    return AdaptiveRate(None, is_hidden=True, begin=begin, is_old=is_old)


def test_a_hidden_rate_that_fails_is_found_between_what_was_sent_and_what_was_answered() -> None:
    rate = hidden(10.0)
    assert rate.wait_s(0.0) == 0.0  # begins to count
    rate.note_send(50.0)
    rate.note_answer(50.0)
    assert rate.cut(60.0, 59.0, 9.0)
    assert rate.found is not None and 9.0 < rate.found < 10.0
    assert rate.rate == pytest.approx(rate.found * (1 - HIDDEN_CUT))


def test_a_lane_that_is_hardly_used_is_not_made_to_crawl_by_a_refusal() -> None:
    rate = hidden()
    assert rate.cut(3_600.0, 3_599.0, 0.001) and rate.rate is not None and rate.rate > 0.9
    # An hour later nobody knows what was too much: it is as the first time.
    rate.note_answer(7_000.0)
    assert rate.cut(7_200.0, 7_199.0, 0.001) and rate.rate > 0.9


def test_one_refusal_of_many_calls_is_chance_and_cuts_no_hidden_rate() -> None:
    rate = hidden(400.0)
    rate.wait_s(0.0)
    assert not any(rate.cut(10.0 + 2.5 * late, 9.0 + 2.5 * late, 400.0) for late in range(20))
    assert any(rate.cut(100.0 + late / 100, 99.0 + late / 100, 400.0) for late in range(20))


def test_a_found_rate_that_is_a_day_old_is_tested_sooner() -> None:
    def risen(rate: AdaptiveRate) -> float:
        """Returns the seconds until twice the found rate may be sent."""
        rate.wait_s(0.0)
        for second in range(1_000):
            rate.note_send(float(second))
            rate.note_send(float(second))
            if rate.wait_s(float(second)) <= 2 / 20 - 0.05:
                return second
        raise AssertionError("never")

    assert risen(hidden(10.0, is_old=True)) < 40 < 200 < risen(hidden(10.0)) < 600


def test_a_quota_that_becomes_known_ends_the_search() -> None:
    rate = hidden(10.0)
    rate.know()
    assert rate.wait_s(0.0) == 0.0 and rate.found is None and rate.rate is None
