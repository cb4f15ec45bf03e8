"""A lane's own idea of its rate: one cut an episode, and back within four minutes."""

from __future__ import annotations

import pytest

from millstream.engine.lanes.adaptive import CUT, RATE_MIN, RECOVERY_S, AdaptiveRate


def refused(rate: AdaptiveRate, now: float) -> bool:
    """A call that was sent a moment ago is refused now."""
    return rate.cut(now, now - 0.001)


def test_nothing_limits_a_lane_before_its_first_refusal() -> None:
    rate = AdaptiveRate(None)
    for second in range(100):
        rate.note_send(float(second))
        assert rate.wait_s(float(second)) == 0.0 and rate.cut_at is None


@pytest.mark.parametrize("declared", [None, 10.0])
def test_the_first_refusal_halves_the_rate_that_there_was(declared: float | None) -> None:
    rate = AdaptiveRate(declared)
    for tick in range(600):
        rate.note_send(tick / 10)
    assert refused(rate, 60.0)
    assert rate.rate == pytest.approx(10.0 * CUT, rel=0.02)
    assert rate.wait_s(60.0) == pytest.approx(1 / 5.0, rel=0.02)


def test_calls_that_were_on_their_way_cut_nothing_more() -> None:
    rate = AdaptiveRate(10.0)
    assert rate.cut(60.0, 59.0)
    assert not any(rate.cut(60.0 + late / 10, 59.9) for late in range(50))
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
        assert rate.cut(60.0 + turn, 59.9 + turn, is_again=True)
    assert rate.rate == RATE_MIN
