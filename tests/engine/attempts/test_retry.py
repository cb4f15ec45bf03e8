"""When to send again: figures, counts and the two brakes on them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from millstream.engine.attempts.retry import Breaker, RetryPolicy
from millstream.engine.endpoint import Fault
from millstream.engine.limits import Limit, pause_of
from millstream.engine.verdict import History, Tries, verdict

POLICY = RetryPolicy()
AGAIN = Fault("server_error", "500", "retry", 500)
BILLED = Fault("timeout", "no answer", "retry", is_billed_maybe=True)
NEVER = Fault("rejected", "400", "never", 400)
TOLD = Fault("rate_limited", "429", "throttle", 429, retry_after_s=2.0)
UNTOLD = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
FILES = Fault("connect", "out of files", "wait", quota="refund")
FORBIDDEN = Fault("rejected", "403", "confirm", 403)


def may_repeat(tries: Tries, fault: Fault, key: int = 0, *, has_another: bool = False) -> bool:
    """Notes a fault, and returns whether its call is sent again."""
    is_refused, is_doubted = bool(tries.refused_by >> key & 1), bool(tries.doubted_by >> key & 1)
    history = History(
        tries.attempts, tries.maybe_billed, is_refused=is_refused, is_doubted=is_doubted, has_another=has_another
    )
    decided = verdict(fault, history)
    tries.note(decided, key)
    return decided.again not in ("never", "pending")


def test_the_defaults_are_those_that_were_promised() -> None:
    assert (POLICY.attempts_max, POLICY.billed_repeats_max) == (6, 2)
    assert (POLICY.wait_min_s, POLICY.wait_max_s) == (1.0, 60.0)
    assert (POLICY.patience_s, POLICY.breaker_failures, POLICY.probe_every_s) == (600.0, 20, 10.0)
    assert POLICY.budget_share == 0.1


@given(st.integers(0, 50), st.randoms(use_true_random=False))
def test_a_wait_lies_between_one_and_sixty_seconds_under_a_doubling_ceiling(failed: int, chance: random.Random) -> None:
    wait = POLICY.wait_s(failed, chance)
    assert 1.0 <= wait <= min(60.0, max(1.0, 2.0**failed))


def test_waits_are_spread_over_the_whole_range() -> None:
    chance = random.Random(1)
    waits = sorted(POLICY.wait_s(6, chance) for _ in range(4000))
    # Full jitter is uniform: its quartiles lie where a ruler puts them.
    for quarter in (1, 2, 3):
        assert waits[1000 * quarter] == pytest.approx(1 + 59 * quarter / 4, abs=2.5)


@given(st.lists(st.sampled_from([AGAIN, BILLED, NEVER, TOLD, UNTOLD, FILES, FORBIDDEN]), min_size=60, max_size=200))
def test_no_row_of_faults_takes_more_attempts_than_configured(faults: list[Fault]) -> None:
    tries = Tries(POLICY)
    free = billed = doubts = 0
    for sent, fault in enumerate(faults, 1):
        may = may_repeat(tries, fault)
        doubts += fault is FORBIDDEN
        free += fault in (TOLD, FILES) or (fault is FORBIDDEN and doubts == 1)
        billed += fault is BILLED
        assert (tries.sent, tries.attempts, tries.maybe_billed) == (sent, sent - free, billed)
        assert tries.attempts <= 6 and billed <= 3
        if not may:
            is_spent = tries.attempts == 6 or billed == 3
            assert fault is NEVER or is_spent
            return


def test_each_keys_first_doubt_is_free_and_so_is_each_refusal_that_another_key_may_mend() -> None:
    tries = Tries(POLICY)
    for key in range(10):
        assert may_repeat(tries, UNTOLD, key, has_another=True)
        assert may_repeat(tries, FORBIDDEN, key)
    assert (tries.attempts, tries.sent, tries.refused_by) == (0, 20, 0b1111111111)
    assert [may_repeat(tries, FORBIDDEN, 3) for _ in range(6)] == [True] * 5 + [False]


def test_a_refusal_takes_its_pause_from_the_limits_beside_it() -> None:
    empty, full = Limit("requests", 60.0, 500.0, 0.0, 30.0), Limit("tokens", 60.0, 9_000.0, 4_000.0, 50.0)
    bare = Limit("tokens", 60.0, None, None, 55.0)
    assert (pause_of([full, empty]), pause_of([full, bare]), pause_of([empty, bare])) == (30.0, 55.0, 30.0)
    assert pause_of([full]) == pause_of([]) == 0.0
    told = structs.replace(UNTOLD, retry_after_s=30.0, cuts_rate=False)
    assert verdict(UNTOLD, History(pause_s=30.0)) == verdict(told)
    for fault in (TOLD, AGAIN, FORBIDDEN, NEVER):
        assert verdict(fault, History(pause_s=30.0)) == verdict(fault)


def test_a_fault_may_have_a_lower_limit_of_its_own() -> None:
    tries = Tries(POLICY)
    empty = Fault("empty", "no choices", "retry", 200, is_repeated_once=True)
    assert may_repeat(tries, empty)
    assert not may_repeat(tries, empty)


def test_a_healthy_lane_may_retry_as_it_likes() -> None:
    breaker = Breaker(POLICY)
    for _ in range(200):
        breaker.record_success()
        breaker.record_success()
        breaker.record_failure(0.0, was_probe=False)
        assert not breaker.is_failing and breaker.repeat_in_s(0.0) == 0.0


def test_a_failing_lane_retries_a_tenth_of_its_traffic_and_one_in_ten_seconds() -> None:
    breaker = Breaker(POLICY)
    for _ in range(100):
        breaker.record_failure(0.0, was_probe=False)
    assert breaker.is_failing
    saved = 0
    while breaker.repeat_in_s(0.0) == 0.0:
        saved += 1
    assert saved <= 20 + 0.1 * 100 + 1
    granted = 0
    for second in range(1000):
        breaker.record_failure(0.0, was_probe=False)
        granted += breaker.repeat_in_s(float(second)) == 0.0
    # Each second brings a tenth of a retry, and every tenth second one is let through anyway.
    assert 95 <= granted <= 205
    assert 0 < breaker.repeat_in_s(999.5) <= 10.0


def test_what_is_saved_up_in_good_times_has_a_ceiling() -> None:
    breaker = Breaker(POLICY)
    for _ in range(100_000):
        breaker.record_success()
    for _ in range(64):
        breaker.record_failure(0.0, was_probe=False)
    granted = 0
    while breaker.repeat_in_s(0.0) == 0.0:
        granted += 1
    assert granted <= 10 * POLICY.budget_floor + 1


def test_the_breaker_opens_at_the_twentieth_failure_in_a_row_and_not_before() -> None:
    breaker = Breaker(POLICY)
    for _ in range(19):
        assert not breaker.record_failure(5.0, was_probe=False)
    breaker.record_success()
    for _ in range(19):
        assert not breaker.record_failure(5.0, was_probe=False)
    assert breaker.wait_s(5.0) == 0.0
    assert breaker.record_failure(5.0, was_probe=False)
    assert breaker.is_open
    assert breaker.wait_s(5.0) == 10.0 and breaker.wait_s(15.0) == 0.0
    # Those that were in flight when it opened neither open it again nor put the probe off.
    assert not breaker.record_failure(12.0, was_probe=False)
    assert breaker.wait_s(15.0) == 0.0


def test_one_probe_at_a_time_and_its_answer_decides() -> None:
    breaker = Breaker(POLICY)
    breaker.open(0.0, probe_in_s=10.0)
    breaker.begin_probe()
    assert breaker.wait_s(10.0) == float("inf")
    breaker.record_failure(12.0, was_probe=True)
    assert breaker.wait_s(12.0) == 10.0
    breaker.begin_probe()
    breaker.abandon_probe(23.0)
    assert breaker.wait_s(23.0) == 0.0
    breaker.begin_probe()
    assert breaker.record_success()
    assert not breaker.is_open and breaker.wait_s(23.0) == 0.0
    assert not breaker.record_success()


def test_the_least_policy_tries_once_and_never_waits_and_less_is_refused() -> None:
    least = RetryPolicy(attempts_max=1, wait_min_s=0.0, wait_max_s=0.0)
    assert least.wait_s(3, random.Random(1)) == 0.0
    with pytest.raises(ValueError, match=r"attempts_max \(0\) must be >= 1"):
        RetryPolicy(attempts_max=0)
    with pytest.raises(ValueError, match=r"wait_max_s \(1\.0\) must be >= wait_min_s \(2\.0\)"):
        RetryPolicy(wait_min_s=2.0, wait_max_s=1.0)
