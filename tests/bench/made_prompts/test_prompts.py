"""Prompts of the wanted lengths, and none that a cache could know."""

from __future__ import annotations

import math
from itertools import islice
from random import Random

import pytest
from scipy import stats  # type: ignore[import-untyped]

from millstream.bench.made_prompts.lengths import FixedLength, Lengths, LognormalLength, UniformLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls, from_texts, in_any_order, of_lengths
from millstream.engine.call import Message
from millstream.engine.estimate import TokenEstimate, call_weight


@pytest.mark.parametrize(
    "lengths", [FixedLength(8), FixedLength(300), UniformLength(10, 5_000), LognormalLength(400, 4_000)]
)
def test_prompts_are_as_long_as_the_engine_reckons_and_no_two_begin_alike(lengths: Lengths) -> None:
    texts = by_length(lengths, Random(1))
    made = list(islice(calls("sim/steady", texts, CallParameters(), Random(2)), 2_000))
    estimate, drawn = TokenEstimate(), Random(1)
    expected = by_length(lengths, drawn)
    assert [estimate.tokens_of(call, call_weight(call)).input for call in made] == [
        round(len(next(expected)) / 4) for _ in made
    ]
    assert len({str(call.input)[:25] for call in made}) == 2_000
    assert len({call.trial for call in made}) == 2_000


def test_a_fixed_length_is_met_to_the_token_however_long() -> None:
    for tokens in (8, 9, 1_000, 150_000):
        assert len(next(by_length(FixedLength(tokens), Random(1)))) == 4 * tokens


def test_drawn_lengths_follow_their_law() -> None:
    random = Random(4)
    uniform = [UniformLength(10, 1_009).draw(random) for _ in range(20_000)]
    assert stats.kstest(uniform, "uniform", args=(9.5, 1_000)).pvalue > 0.001
    lognormal = [LognormalLength(1_000, 8_000).draw(random) for _ in range(20_000)]
    sigma = math.log(8) / stats.norm.ppf(0.99)
    assert stats.kstest(lognormal, "lognorm", args=(sigma, 0, 1_000)).pvalue > 0.001


def test_two_tests_share_no_prompt_and_no_trial() -> None:
    one, other = (
        list(islice(calls("sim/steady", by_length(FixedLength(20), Random(seed)), CallParameters(), Random(seed)), 500))
        for seed in (1, 2)
    )
    assert not {call.input for call in one} & {call.input for call in other}
    assert not {call.trial for call in one} & {call.trial for call in other}


def test_given_texts_come_round_again_each_time_behind_another_word() -> None:
    said = list(islice(from_texts(["one", "two"], Random(3)), 6))
    assert sorted(str(text).split(" ", 1)[1] for text in said) == ["one"] * 3 + ["two"] * 3
    assert len({str(text).split(" ")[0] for text in said}) == 6


def test_a_conversation_begins_with_another_word_each_time_and_goes_on_as_it_was() -> None:
    talk = (Message("system", "be kind"), Message("user", "hello"))
    one, other = islice(from_texts([talk], Random(3)), 2)
    for said in (one, other):
        assert not isinstance(said, str)
        assert [message.role for message in said] == ["system", "user"]
        assert said[0].words.endswith(" be kind") and said[1].words == "hello"
    assert one[0] != other[0]


def test_prompts_as_they_are_come_unchanged_and_all_before_any_comes_again() -> None:
    said = list(islice(in_any_order(["one", "two", "three"], Random(3)), 6))
    assert sorted(said[:3]) == sorted(said[3:]) == ["one", "three", "two"]


def test_lengths_given_one_by_one_are_met_and_none_is_shorter_than_its_head() -> None:
    texts = list(of_lengths([100, 0, 8, 31_000], Random(1)))
    assert [len(text) for text in texts] == [400, 32, 32, 124_000]
    assert len({text[:25] for text in texts}) == 4


def test_the_same_seed_with_other_heads_gives_the_same_prompts_behind_other_words() -> None:
    one, other = (list(islice(by_length(UniformLength(20, 90), Random(1), Random(heads)), 50)) for heads in (2, 3))
    assert [text[25:] for text in one] == [text[25:] for text in other]
    assert not {text[:25] for text in one} & {text[:25] for text in other}


def test_an_answer_may_have_a_length_of_its_own_in_each_call() -> None:
    made = calls("sim/steady", ["a", "b", "c"], CallParameters(max_tokens=5), Random(1), answers=[7, 1, 9])
    assert [(call.input, call.max_tokens) for call in made] == [("a", 7), ("b", 1), ("c", 9)]


def test_what_is_wanted_stands_in_every_call() -> None:
    call = next(calls("sim/steady", ["a"], CallParameters(max_tokens=5, temperature=0.5, stream=False), Random(1)))
    assert (call.max_tokens, call.temperature, call.stream, call.input) == (5, 0.5, False, "a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedLength(7), r"tokens \(7 tokens\) must be >= 8"),
        (lambda: UniformLength(20, 10), r"high \(10 tokens\) must be >= low \(20\)"),
        (lambda: LognormalLength(100, 50), r"p99 \(50 tokens\) must be >= median \(100\)"),
        (lambda: LognormalLength(100, 500, 400), r"most \(400 tokens\) must be >= p99 \(500\)"),
        (lambda: CallParameters(max_tokens=0), r"max_tokens \(0\) must be >= 1"),
        (lambda: next(from_texts([], Random(1))), "0 came"),
    ],
)
def test_an_impossible_length_is_refused_with_the_numbers(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
