"""Prompts of the wanted lengths, and none that a cache could know."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from scipy import stats  # type: ignore[import-untyped]

from millstream.bench.load.lengths import Fixed, Lengths, Lognormal, Uniform
from millstream.bench.load.prompts import Wanted, by_length, calls, from_texts, read_prompts
from millstream.engine.estimate import TokenEstimate


@pytest.mark.parametrize("lengths", [Fixed(8), Fixed(300), Uniform(10, 5_000), Lognormal(400, 4_000)])
def test_prompts_are_as_long_as_the_engine_reckons_and_no_two_begin_alike(lengths: Lengths) -> None:
    texts = by_length(lengths, Random(1))
    made = list(islice(calls("sim/steady", texts, Wanted(), Random(2)), 2_000))
    estimate, drawn = TokenEstimate(), Random(1)
    expected = by_length(lengths, drawn)
    assert [estimate.input_of(call) for call in made] == [round(len(next(expected)) / 4) for _ in made]
    assert len({str(call.input)[:25] for call in made}) == 2_000
    assert len({call.trial for call in made}) == 2_000


def test_a_fixed_length_is_met_to_the_token_however_long() -> None:
    for tokens in (8, 9, 1_000, 150_000):
        assert len(next(by_length(Fixed(tokens), Random(1)))) == 4 * tokens


def test_drawn_lengths_follow_their_law() -> None:
    random = Random(4)
    uniform = [Uniform(10, 1_009).draw(random) for _ in range(20_000)]
    assert stats.kstest(uniform, "uniform", args=(9.5, 1_000)).pvalue > 0.001
    lognormal = [Lognormal(1_000, 8_000).draw(random) for _ in range(20_000)]
    sigma = math.log(8) / stats.norm.ppf(0.99)
    assert stats.kstest(lognormal, "lognorm", args=(sigma, 0, 1_000)).pvalue > 0.001


def test_two_tests_share_no_prompt_and_no_trial() -> None:
    one, other = (
        list(islice(calls("sim/steady", by_length(Fixed(20), Random(seed)), Wanted(), Random(seed)), 500))
        for seed in (1, 2)
    )
    assert not {call.input for call in one} & {call.input for call in other}
    assert not {call.trial for call in one} & {call.trial for call in other}


def test_given_texts_come_round_again_each_time_behind_another_word() -> None:
    said = list(islice(from_texts(["one", "two"], Random(3)), 6))
    assert sorted(text.split(" ", 1)[1] for text in said) == ["one"] * 3 + ["two"] * 3
    assert len({text.split(" ")[0] for text in said}) == 6


def test_what_is_wanted_stands_in_every_call() -> None:
    call = next(calls("sim/steady", ["a"], Wanted(max_tokens=5, temperature=0.5, stream=False), Random(1)))
    assert (call.max_tokens, call.temperature, call.stream, call.input) == (5, 0.5, False, "a")


def test_a_file_of_prompts_may_hold_text_and_json(tmp_path: Path) -> None:
    file = tmp_path / "prompts"
    file.write_text('plain text\n\n"a \\n string"\n{"prompt": "in an object", "id": 1}\n')
    assert read_prompts(file) == ["plain text", "a \n string", "in an object"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds 0 prompts"),
        ('fine\n{"prompt": ', "line 2 begins like JSON and is none"),
        ('{"text": "x"}', "line 1 must be text, or an object whose `prompt` is text"),
        ('{"prompt": 3}', "line 1 must be text"),
    ],
)
def test_a_file_without_prompts_is_refused_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "prompts"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_prompts(file)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fixed(7), r"tokens \(7 tokens\) must be >= 8"),
        (lambda: Uniform(20, 10), r"high \(10 tokens\) must be >= low \(20\)"),
        (lambda: Lognormal(100, 50), r"p99 \(50 tokens\) must be >= median \(100\)"),
        (lambda: Lognormal(100, 500, 400), r"most \(400 tokens\) must be >= p99 \(500\)"),
        (lambda: Wanted(max_tokens=0), r"max_tokens \(0\) must be >= 1"),
        (lambda: next(from_texts([], Random(1))), "0 came"),
    ],
)
def test_an_impossible_length_is_refused_with_the_numbers(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
