"""No provider enforces less than the least quota that agrees with its answers, by whichever rule it counts."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from millstream.bench.probe.ranges import Use, ranges
from millstream.fixtures.provider.quotas import RULES, AccountQuota, meter


def uses_of(rule: Any, limit: int, draw: random.Random, *, are_tokens: bool, window_s: float = 60.0) -> list[Use]:
    """Calls at random times, in bursts and alone, decided somewhere on their way; others use a share of the quota."""
    quota = AccountQuota(requests=limit, rule=rule, burst=draw.choice([1.0, 0.5, 0.1]), window_s=window_s)
    counted = meter(limit, quota)
    assert counted is not None
    others, way_s = draw.choice([0.0, 0.0, 0.3]), draw.choice([0.01, 0.1, 0.3])
    sent_s, calls = 100.0, []
    for _ in range(draw.randrange(2, 25)):
        sent_s += draw.choice([0.5, 3.0, 8.0, 30.0, draw.uniform(0, 61)])
        size = draw.uniform(0.01, 0.3) * limit if are_tokens else 1.0
        calls += [(sent_s + 1e-3 * place, size) for place in range(draw.randrange(1, int(1.5 * limit / size) + 2))]
    slowest_s = 0.0
    decided = sorted((at_s + draw.uniform(0.1, 1) * way_s, at_s, size) for at_s, size in calls)
    uses = []
    for by_s, at_s, size in decided:
        if draw.random() < others and not counted.wait_s(by_s, size):
            counted.take(by_s, size)
        is_admitted = not counted.wait_s(by_s, size)
        if is_admitted:
            counted.take(by_s, size)
        done_s = by_s + (draw.uniform(0.1, 1.0) if is_admitted else 0.0)
        slowest_s = max(slowest_s, 0.0 if is_admitted else done_s - at_s)
        uses.append(Use(at_s, done_s, size, is_admitted))
    # The slowest refusal tells how long a decision takes: here it is at least half as long as the longest.
    return [*uses, Use(0.0, way_s, 1.0, False)] if slowest_s < way_s / 2 else uses


@pytest.mark.parametrize("are_tokens", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rounds", [40, pytest.param(150, marks=pytest.mark.long)])
def test_the_bound_of_the_rule_that_is_enforced_is_never_above_it(rounds: int, rule: Any, are_tokens: bool) -> None:
    draw = random.Random(f"{rule} {are_tokens}")
    for _ in range(rounds):
        limit = draw.choice([10, 30, 100])
        found = ranges(uses_of(rule, limit, draw, are_tokens=are_tokens))
        assert getattr(found, rule).least <= limit * (1 + 1e-6), (limit, found)
        assert found.least <= limit * (1 + 1e-6)


def test_a_limit_that_is_counted_in_ten_seconds_is_no_higher_than_six_of_them() -> None:
    draw = random.Random(7)
    for _ in range(150):
        uses = uses_of("fixed", 10, draw, are_tokens=False, window_s=10.0)
        assert ranges(uses).least <= 60


def test_what_comes_back_twice_within_a_minute_is_no_fixed_minute() -> None:
    refused = [Use(at_s, at_s + 0.01, 1.0, False) for at_s in (10.0, 20.0, 30.0)]
    admitted = [Use(at_s, at_s + 0.01, 1.0, True) for at_s in (9.0, 15.0)]
    assert not ranges([*refused, *admitted]).fixed.is_excluded
    assert ranges([*refused, *admitted, Use(25.0, 25.01, 1.0, True)]).fixed.is_excluded


def test_a_window_admits_less_than_a_minute_held_and_a_refused_call_asked_for() -> None:
    admitted = [Use(at_s, at_s + 0.01, 1.0, True) for at_s in (1.0, 2.0, 3.0, 65.0)]
    assert ranges([*admitted, Use(4.0, 4.01, 2.0, False)]).sliding.most == 5.0
    # At 65.5 s the first three have left a sliding minute.
    assert ranges([*admitted, Use(4.0, 4.01, 2.0, False), Use(65.5, 65.51, 1.0, False)]).fixed.most == 2.0
    assert ranges(admitted).most == math.inf


def test_a_bucket_gives_no_more_than_two_refusals_allow_and_none_asks_for_a_long_pause() -> None:
    admitted = [Use(1.0, 1.01, 1.0, True), Use(20.0, 20.01, 4.0, True)]
    refused = [Use(2.0, 2.01, 1.0, False), Use(62.0, 62.01, 2.0, False)]
    # Less than 2 came back from the admission to the refusal.
    assert ranges([*admitted, *refused]).bucket.most == pytest.approx(60 * 2 / 42, rel=1e-3)
    assert ranges([admitted[0], *refused]).bucket.most == pytest.approx(60 * 2 / 60)
    assert ranges([*admitted, refused[0]]).bucket.most > 1e6
    assert ranges([*admitted, Use(2.0, 2.01, 1.0, False, wait_s=31.0)]).bucket.most == pytest.approx(2.0)


def test_a_rule_by_which_more_was_admitted_than_it_can_give_is_excluded() -> None:
    # One call a second of a bucket that holds ten.
    admitted = [Use(0.01 * place, 0.01 * place, 1.0, True) for place in range(10)]
    polls = [Use(float(at_s), at_s + 0.001, 1.0, True) for at_s in range(2, 50)]
    refused = [Use(at_s + 0.01, at_s + 0.011, 1.0, False) for at_s in range(1, 50)]
    found = ranges([*admitted, *polls, *refused])
    assert found.is_bucket and not found.bucket.is_excluded
    assert 57 < found.least <= 60 <= found.most < 63


def test_nothing_admitted_shows_no_limit() -> None:
    assert ranges([Use(1.0, 1.1, 1.0, False)]).least == 0
