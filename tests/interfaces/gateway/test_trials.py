"""Numbers of trials: none is given twice, none is left out, and what can't be counted is refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.interfaces.gateway.trials import RequestTrials, TrialCounter
from millstream.providers.llm.serve_dialect import RequestRefusal


def take(trials: TrialCounter, key: bytes = b"key", count: int = 1, scope: str = "ann") -> RequestTrials:
    return trials.take(scope, key, count, b"{}")


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.integers(0, 5)), max_size=60))
def test_no_number_is_held_or_answered_twice_and_none_is_left_out(steps: list[tuple[int, bool, int]]) -> None:
    trials, held, answered = TrialCounter(), list[RequestTrials](), list[int]()
    for count, is_answered, place in steps:
        held.append(take(trials, count=count))
        out = [*answered, *(number for taken in held for number in taken.numbers)]
        assert len(set(out)) == len(out)
        if place < len(held):
            taken = held.pop(place)
            trials.end(taken, is_answered=is_answered)
            answered += taken.numbers if is_answered else ()
    for taken in held:
        trials.end(taken, is_answered=True)
        answered += taken.numbers
    # What is missing comes next, the lowest first.
    missing = sorted(set(range(max(answered, default=-1) + 1)) - set(answered))
    following = [take(trials).numbers[0] for _ in range(len(missing) + 1)]
    assert following == [*missing, max(answered, default=-1) + 1]


def test_callers_runs_and_questions_are_counted_apart() -> None:
    trials = TrialCounter()
    assert [take(trials).numbers[0] for _ in range(2)] == [0, 1]
    assert take(trials, scope="bob").numbers == take(trials, scope="ann\0tuesday").numbers == (0,)
    assert take(trials, b"other").numbers == (0,)


def test_a_full_count_refuses_new_questions_and_goes_on_with_those_it_has() -> None:
    trials = TrialCounter(questions_max=2)
    first = take(trials, b"a")
    take(trials, b"b")
    with pytest.raises(RequestRefusal, match="2 different questions") as refused:
        take(trials, b"c")
    assert refused.value.problem.status == 503
    assert take(trials, b"a").numbers == (1,)
    trials.end(take(trials, b"b"), is_answered=False)
    assert "2 questions" in repr(trials)
    trials.end(first, is_answered=False)


def test_a_question_that_brought_nothing_takes_no_room() -> None:
    trials = TrialCounter(questions_max=1)
    trials.end(take(trials, b"a"), is_answered=False)
    assert take(trials, b"b").numbers == (0,)


def test_a_named_request_keeps_its_number_until_all_who_share_it_failed() -> None:
    trials = TrialCounter()
    first = trials.take("ann", b"key", 1, b"{}", "name")
    second = trials.take("ann", b"key", 1, b"{}", "name")
    assert first is second
    trials.end(first, is_answered=False)
    assert take(trials).numbers == (1,)
    trials.end(second, is_answered=False)
    assert take(trials).numbers == (0,)
    assert trials.take("ann", b"key", 1, b"{}", "name").numbers == (2,)


def test_the_same_body_may_be_another_question_where_the_path_says_the_model() -> None:
    trials = TrialCounter()
    trials.end(trials.take("ann", b"of one model", 1, b"{}", "name"), is_answered=True)
    with pytest.raises(RequestRefusal) as refused:
        trials.take("ann", b"of another", 1, b"{}", "name")
    assert (refused.value.problem.status, refused.value.problem.kind) == (422, "conflict")
    assert take(trials, b"of another").numbers == (0,)


def test_ten_thousand_that_hang_up_at_once_are_given_back_at_once() -> None:
    trials = TrialCounter()
    gone, answered = [take(trials) for _ in range(20_000)], take(trials)
    began = time.process_time()
    for taken in gone:
        trials.end(taken, is_answered=False)
    assert time.process_time() - began < 2
    trials.end(answered, is_answered=True)
    assert [take(trials).numbers[0] for _ in range(3)] == [0, 1, 2]


def test_the_oldest_names_are_forgotten_and_give_nobody_anothers_number() -> None:
    trials = TrialCounter(repeated_max=2)
    numbers = [trials.take("ann", b"key", 1, b"{}", name).numbers[0] for name in ("a", "b", "c", "a")]
    assert numbers == [0, 1, 2, 3]
    assert trials.take("ann", b"key", 1, b"{}", "c").numbers == (2,)
