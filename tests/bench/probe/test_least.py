"""No provider enforces less than the least quota that agrees with its answers, by whichever rule it counts."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from millstream.bench.probe.least import Use, least, most
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
        bounds = least(uses_of(rule, limit, draw, are_tokens=are_tokens))
        assert getattr(bounds, rule) <= limit * (1 + 1e-6), (limit, bounds)
        assert bounds.of_all <= limit * (1 + 1e-6)


def test_a_limit_that_is_counted_in_ten_seconds_is_no_higher_than_six_of_them() -> None:
    draw = random.Random(7)
    for _ in range(150):
        uses = uses_of("fixed", 10, draw, are_tokens=False, window_s=10.0)
        assert least(uses).of_all <= 60


def test_what_comes_back_twice_within_a_minute_is_no_fixed_minute() -> None:
    refused = [Use(at_s, at_s + 0.01, 1.0, False) for at_s in (10.0, 20.0, 30.0)]
    admitted = [Use(at_s, at_s + 0.01, 1.0, True) for at_s in (9.0, 15.0)]
    assert not least([*refused, *admitted]).is_fixed_excluded
    assert least([*refused, *admitted, Use(25.0, 25.01, 1.0, True)]).is_fixed_excluded


def test_a_window_admits_less_than_a_minute_held_and_a_refused_call_asked_for() -> None:
    admitted = [Use(at_s, at_s + 0.01, 1.0, True) for at_s in (1.0, 2.0, 3.0, 65.0)]
    assert most([*admitted, Use(4.0, 4.01, 2.0, False)]) == 5.0
    # At 65.5 s the first three have left a sliding minute.
    assert most([*admitted, Use(4.0, 4.01, 2.0, False), Use(65.5, 65.51, 1.0, False)]) == 2.0
    assert most(admitted) == math.inf


def test_nothing_admitted_shows_no_limit() -> None:
    assert least([Use(1.0, 1.1, 1.0, False)]).of_all == 0
