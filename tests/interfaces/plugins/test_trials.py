"""Which sample a repeated call is."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from millstream.engine.call import TRIAL_MAX, Call, Message
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.interfaces.plugins.trials import Asker, Trial, TrialNumbers, digest_of, number_of

CALL = Call("openai/steady", "A or B?", temperature=0.5)
HERE = Asker("run", "sample-1", "first")
ONE_MORE = 1 << 32


def test_identical_calls_get_one_number_after_the_other() -> None:
    trials = TrialNumbers()
    assert [trials.take(CALL, HERE).number for _ in range(3)] == [0, ONE_MORE, 2 * ONE_MORE]


def test_another_call_has_a_count_of_its_own_and_a_tag_makes_none() -> None:
    trials = TrialNumbers()
    trials.take(CALL, HERE)
    assert trials.take(structs.replace(CALL, temperature=0.6), HERE).number == 0
    assert trials.take(structs.replace(CALL, tag=7, trial=9), HERE).number == ONE_MORE


def test_every_epoch_begins_with_a_number_of_its_own() -> None:
    trials = TrialNumbers()
    numbers = [trials.take(CALL, structs.replace(HERE, epoch=epoch)).number for epoch in range(1, 6)]
    assert numbers == [0, 1, 2, 3, 4]


def test_two_samples_that_ask_the_same_are_two() -> None:
    trials = TrialNumbers()
    assert trials.take(CALL, HERE).number != trials.take(CALL, structs.replace(HERE, sample="sample-2")).number


def test_the_same_run_later_asks_for_the_same_samples() -> None:
    trials = TrialNumbers()
    again = structs.replace(HERE, run="another run")
    assert [trials.take(CALL, HERE).number for _ in range(4)] == [trials.take(CALL, again).number for _ in range(4)]


def test_a_call_without_an_answer_gives_its_number_back() -> None:
    trials = TrialNumbers()
    first, second = trials.take(CALL, HERE), trials.take(CALL, HERE)
    first.give_back()
    assert trials.take(CALL, HERE).number == first.number
    assert trials.take(CALL, HERE).number == 2 * ONE_MORE != second.number


def test_a_number_that_was_given_back_goes_to_nobody_else() -> None:
    trials = TrialNumbers()
    trials.take(CALL, HERE).give_back()
    assert trials.take(CALL, structs.replace(HERE, sample="sample-2")).number == ONE_MORE
    assert trials.take(CALL, HERE).number == 0


def test_a_sample_that_is_begun_anew_asks_for_what_it_had() -> None:
    trials, other = TrialNumbers(), structs.replace(HERE, sample="sample-2")
    mine = [trials.take(CALL, HERE).number for _ in range(2)]
    trials.take(CALL, other)
    again = structs.replace(HERE, attempt="second")
    assert [trials.take(CALL, again).number for _ in range(3)] == [*mine, 3 * ONE_MORE]


def test_numbers_fit_what_a_cache_can_hold() -> None:
    assert number_of(2**32 - 1, 2**31 - 1) <= TRIAL_MAX


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_no_number_is_out_twice_at_once(seed: int, steps: int) -> None:
    chance, trials = Random(seed), TrialNumbers()
    out: list[Trial] = []
    for _ in range(steps):
        if out and chance.random() < 0.3:
            out.pop(chance.randrange(len(out))).give_back()
            continue
        taken = trials.take(CALL, structs.replace(HERE, sample=chance.choice("abc"), epoch=chance.choice((1, 2))))
        assert taken.number not in [each.number for each in out]
        out.append(taken)


@pytest.mark.parametrize(
    "other",
    [
        structs.replace(CALL, model="openai/open"),
        structs.replace(CALL, input="B or A?"),
        structs.replace(CALL, input=(Message("user", ("A or B?", Image("data:image/png;base64,AA"))),)),
        structs.replace(CALL, input=(Message("tool", (ToolResult("1", "A or B?"),)),)),
        structs.replace(CALL, input=(Message("assistant", (ToolCall("1", "A or B?"),)),)),
        structs.replace(CALL, input=(Message("assistant", (Native("openai", {"reasoning": "A or B?"}),)),)),
        structs.replace(CALL, tools=(Tool("add"),)),
        structs.replace(CALL, extra={"top_k": 4}),
    ],
)
def test_whatever_a_call_holds_makes_it_another(other: Call) -> None:
    assert digest_of(other) != digest_of(CALL)
    assert digest_of(other) == digest_of(structs.replace(other, trial=3, tag="mine"))
