"""What follows from limits that answers tell: the pace, the pause, and what a minute can hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.lane import Lane
from millstream.engine.limits import DAY_S, MINUTE_S, Lack, Limit, Quota, Tokens, declared_quota, quota_of, summed

AMOUNTS = st.one_of(st.none(), st.integers(1, 10**6).map(float))
QUOTAS = st.builds(Quota, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)
TOKENS = st.builds(Tokens, st.integers(0, 10**6), st.integers(0, 10**6))


def test_the_pace_is_what_the_limits_of_a_minute_or_less_allow() -> None:
    told = (
        Limit("requests", MINUTE_S, 500.0),
        Limit("tokens", MINUTE_S, 200_000.0),
        Limit("input", 1.0, 1_000.0),
        Limit("output", MINUTE_S, 16_000.0),
    )
    assert quota_of(told) == Quota(500.0, 200_000.0, 60_000.0, 16_000.0)


def test_of_several_limits_on_one_amount_the_tightest_is_the_pace() -> None:
    told = (Limit("requests", MINUTE_S, 500.0), Limit("requests", 1.0, 5.0), Limit("requests", 10.0, 100.0))
    quota = quota_of(told)
    assert quota.rpm == 300.0
    # Five in any second: the sixth a second after the first, however much later than that one it set out.
    assert 5 * quota.spacing_s >= 1.1


@pytest.mark.parametrize("window_s", [3_600.0, DAY_S, 30 * DAY_S])
def test_a_limit_for_longer_than_a_minute_sets_no_pace_since_it_may_be_used_at_once(window_s: float) -> None:
    assert quota_of([Limit("requests", window_s, 200.0)]) == Quota()


def test_a_limit_that_tells_no_number_sets_no_pace() -> None:
    assert quota_of([Limit("requests", MINUTE_S, None, 3.0, 7.0), Limit("tokens", MINUTE_S, 0.5)]) == Quota()


@pytest.mark.parametrize(
    ("limit", "wait_s"),
    [
        (Limit("requests", 60.0, 500.0, 1.0, 30.0), 0.0),
        (Limit("requests", 60.0, 500.0, None, 30.0), 0.0),
        (Limit("requests", 60.0, 500.0, 0.0, None), 0.0),
        (Limit("requests", 60.0, 500.0, 0.0, 17.5), 17.5),
        (Limit("requests", 60.0, None, 0.0, 17.5), 17.5),
        # Whole again a full window from now: a bucket that fills evenly, whose next one comes sooner.
        (Limit("requests", 60.0, 500.0, 0.0, 60.0), 0.12),
        (Limit("tokens", 60.0, 500.0, 0.0, 59.5), 1.0),
        (Limit("requests", DAY_S, 14_400.0, 0.0, DAY_S), 6.0),
        (Limit("requests", DAY_S, 200.0, 0.0, 7 * 3_600.0), 7 * 3_600.0),
    ],
)
def test_nothing_left_is_a_pause_until_there_is_something_again(limit: Limit, wait_s: float) -> None:
    assert limit.wait_s == pytest.approx(wait_s)


@given(QUOTAS, QUOTAS)
def test_the_lower_of_two_quotas_is_the_lower_of_each_amount(one: Quota, other: Quota) -> None:
    both = one.lowered_by(other)
    assert both == other.lowered_by(one)
    for name in ("rpm", "tpm", "itpm", "otpm"):
        amounts = [amount for amount in (getattr(one, name), getattr(other, name)) if amount is not None]
        assert getattr(both, name) == min(amounts, default=None)


def test_calls_take_as_long_as_the_narrowest_amount_allows() -> None:
    assert Quota(rpm=10, tpm=1_000).minutes(50, 1_000, 100) == 5.0
    assert Quota(rpm=10, tpm=1_000).minutes(10, 2_000, 1_000) == 3.0
    assert Quota(rpm=10, itpm=500, otpm=10).minutes(1, 1_500, 40) == 4.0
    assert Quota().minutes(50, 1_000, 100) is None


@given(st.lists(QUOTAS, min_size=1, max_size=4))
def test_the_sum_of_quotas_has_no_limit_where_one_of_them_has_none(quotas: list[Quota]) -> None:
    whole = summed(quotas)
    for name in ("rpm", "tpm", "itpm", "otpm"):
        amounts = [getattr(quota, name) for quota in quotas]
        assert getattr(whole, name) == (None if None in amounts else pytest.approx(sum(amounts)))


@given(QUOTAS, TOKENS)
def test_what_is_cut_to_fit_fits_and_is_no_more_than_was_asked(quota: Quota, tokens: Tokens) -> None:
    cut = quota.cut_to_fit(tokens)
    assert quota.lacks(cut) is None
    assert 0 <= cut.input <= tokens.input and 0 <= cut.output <= tokens.output
    assert (cut == tokens) == (quota.lacks(tokens) is None)
    if tokens.total <= quota.least_tokens:
        assert quota.lacks(tokens) is None


def test_what_is_lacking_is_named_with_both_numbers() -> None:
    quota = declared_quota(Lane("a/b", tpm=1_000, itpm=800, otpm=100))
    assert quota.lacks(Tokens(700, 90)) is None
    assert quota.lacks(Tokens(950, 90)) == Lack("tpm", "tokens", 1_040, 1_000)
    assert quota.lacks(Tokens(850, 90)) == Lack("itpm", "input tokens", 850, 800)
    assert quota.lacks(Tokens(700, 101)) == Lack("otpm", "output tokens", 101, 100)
