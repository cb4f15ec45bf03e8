"""One call's times, by a clock that the test sets."""

from __future__ import annotations

import pytest

from millstream.bench.load.timing import CallTimes, Stopwatch
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage

CALL = Call("sim/steady", "A")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def set(self, now: float) -> None:
        self.now = now


def told(due: float, *events: tuple[float, str | None], ends: float, outcome: Outcome, free: float = 0.0) -> CallTimes:
    """Begun at second 1."""
    clock = Clock()
    clock.set(1.0)
    watch = Stopwatch(due, clock, free)
    for at, piece in events:
        clock.set(at)
        watch(piece)
    clock.set(ends)
    return watch.stopped(outcome)


def answered(**more: float) -> Outcome:
    return Outcome(CALL, reply=Reply("A", Usage(7, 5)), attempts=1, **more)  # type: ignore[arg-type]


def test_latency_and_first_token_count_from_when_the_call_was_due() -> None:
    timed = told(0.5, (2.0, None), (3.0, "a"), (3.5, "b"), (5.0, "c"), ends=6.0, outcome=answered())
    assert (timed.latency_s, timed.service_s, timed.first_token_s) == (5.5, 4.0, 2.5)
    assert timed.gaps == (0.5, 1.5) and timed.token_s == 0.5
    assert (timed.own_delay_s, timed.held_s) == (0.5, 1.0)


def test_a_call_that_waited_for_a_place_was_not_delayed_by_our_loop() -> None:
    timed = told(0.25, (1.0, None), ends=2.0, outcome=answered(), free=0.9)
    assert timed.own_delay_s == pytest.approx(0.1) and timed.latency_s == 1.75


def test_a_timer_that_fires_early_makes_the_call_due_then() -> None:
    timed = told(1.0004, (1.0, None), ends=2.0, outcome=answered())
    assert (timed.due, timed.latency_s, timed.own_delay_s) == (1.0, 1.0, 0.0)


def test_what_a_failed_attempt_said_is_void() -> None:
    events = ((2.0, None), (3.0, "x"), (3.1, "y"), (7.0, None), (8.0, "a"), (8.25, "b"))
    timed = told(1.0, *events, ends=9.0, outcome=Outcome(CALL, reply=Reply("ab"), attempts=2))
    assert (timed.sent, timed.first, timed.gaps) == (2.0, 8.0, (0.25,))
    assert (timed.attempts, timed.token_s) == (2, None)


def test_storing_an_answer_is_no_part_of_its_latency() -> None:
    timed = told(1.0, (2.0, None), ends=2.6, outcome=answered(latency_ms=500.0))
    assert timed.ended == 2.5
    # Nor does it end before its last piece, or after it was handed over.
    assert told(1.0, (2.0, None), (2.55, "a"), ends=2.6, outcome=answered(latency_ms=500.0)).ended == 2.55
    assert told(1.0, (2.0, None), ends=2.6, outcome=answered(latency_ms=900.0)).ended == 2.6


def test_a_failure_keeps_its_kind_and_a_call_that_never_left_has_no_service() -> None:
    timed = told(1.0, ends=2.0, outcome=Outcome(CALL, failure=Failure("timeout", "late")))
    assert (timed.status, timed.is_answered, timed.service_s, timed.attempts) == ("timeout", False, None, 0)


def test_a_call_given_up_is_unfinished() -> None:
    clock = Clock()
    watch = Stopwatch(0.0, clock)
    watch(None)
    clock.set(4.0)
    assert (watch.given_up().status, watch.given_up().latency_s, watch.given_up().attempts) == ("unfinished", 4.0, 1)
