"""Claims about prompts read in part: a server that cuts is found by what it reports, an honest one never is."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.call import Call
from millstream.engine.estimate import prompt_weight, weight_of
from millstream.engine.pairs import Pair
from millstream.metrics.read_in_part import ReadInPart, RunReads

PAIR = Pair("x/m", None)


def read(*prompts: tuple[int, int], characters: float = 4.0, is_literal: bool = False) -> ReadInPart | None:
    reads = RunReads(is_literal=is_literal, characters_of=lambda model: characters)
    reads.add(PAIR, prompts)
    return reads.of(PAIR)


def test_prompts_of_which_under_a_third_was_read_are_cut() -> None:
    assert read((57_574, 4_096), (24_000, 2_000)) == ReadInPart(2, 1, 4_096, is_unread=False)
    assert read((57_574, 4_096), (60_000, 4_000), (8_000, 2_000)) == ReadInPart(3, 2, 4_096, is_unread=True)


def test_prompts_of_different_lengths_with_one_largest_count_are_cut() -> None:
    # None of them is under a third of its estimate.
    plateau = [(chars, 4_096 + chars % 7) for chars in range(33_000, 49_000, 1_000)]
    short = [(5_000, 1_250)] * 10
    assert read(*plateau[:-4], *short) == ReadInPart(22, 0, 4_102, is_unread=False)  # they differ by less than half
    found = read((20_000, 4_096), *plateau, *short)
    assert found is not None and (found.cut, found.is_unread) == (17, True)


@pytest.mark.parametrize("characters", [1.0, 1.5, 2.5, 4.0, 6.5])
def test_an_honest_server_is_never_said_to_cut(characters: float) -> None:
    chance = Random(characters)
    prompts = [(chars, round(chars / characters)) for chars in (chance.randint(4_100, 200_000) for _ in range(500))]
    found = read(*prompts)
    assert found is not None and found.cut == 0 and found.remark("x/m") is None


def test_an_honest_server_with_several_languages_is_not_said_to_cut() -> None:
    chance, prompts = Random(7), []
    for _ in range(2_000):
        chars = chance.randint(4_100, 60_000)
        prompts.append((chars, round(chars / chance.choice((1.2, 2.4, 4.0, 5.0)))))
    found = read(*prompts)
    assert found is not None and not found.is_unread and found.remark("x/m") is None


def test_short_prompts_and_prompts_without_a_report_are_not_decided() -> None:
    assert read() is None
    assert read((4_000, 10), (3_999, 1)) is None
    assert read((4_001, 10)) == ReadInPart(1, 1, 10, is_unread=True)
    assert read((3_200, 10)) is None
    assert read((3_200, 10), characters=3.1) == ReadInPart(1, 1, 10, is_unread=True)


def test_a_remark_begins_above_1_of_20_and_a_score_ends_above_a_half() -> None:
    def of(cut: int, whole: int, **more: bool) -> ReadInPart:
        prompts = [(40_000, 1_000)] * cut + [(40_000, 10_000)] * (whole - cut)
        found = read(*prompts, **more)
        assert found is not None
        return found

    assert of(1, 20).remark("x/m") is None
    for cut, whole in ((2, 20), (10, 20)):
        sentence = of(cut, whole).remark("x/m")
        assert sentence is not None and sentence.startswith(f"x/m: the server read {cut} of {whole} prompts")
        assert "OLLAMA_CONTEXT_LENGTH" in sentence and "--window" in sentence
    assert (of(11, 20).remark("x/m") or "").startswith("x/m has no score: the server read 11 of 20 prompts")
    assert of(20, 20, is_literal=True) == ReadInPart(20, 20, 1_000, is_unread=False)


def test_white_space_weighs_one_character_where_few_tokens_are_reported() -> None:
    blank = Call("x/m", "a" + " " * 50_000 + "b\n\n\n\nc")
    assert prompt_weight(blank, tokens=300) == 5
    assert prompt_weight(blank, tokens=50_000) == 50_007
    assert prompt_weight(Call("x/m", "word " * 1_000), tokens=1_000) == 5_000
    assert prompt_weight(Call("x/m", "法" * 10), tokens=10) == 40


@given(
    st.text(st.sampled_from("ab \n\t\x1c\x7f\u00a0\u2003’法")) | st.text(st.sampled_from("ab  \n\t\r\v\f\x1c\x1f\x7f"))
)
def test_the_weight_without_white_space_is_that_of_the_words_with_spaces_between(text: str) -> None:
    assert prompt_weight(Call("x/m", text), tokens=0) == weight_of(" ".join(text.split()))
