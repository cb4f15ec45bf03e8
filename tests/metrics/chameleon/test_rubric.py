"""Certainty words as numbers."""

from __future__ import annotations

import pytest

from millstream.metrics.chameleon.rubric import WORDS, confidence_of


def test_every_word_has_its_number_whatever_its_case() -> None:
    listed = {word: number for number, words in WORDS.items() for word in words}
    assert len(listed) == 19
    assert set(WORDS) == {1.0, 0.67, 0.33}
    for word, number in listed.items():
        assert confidence_of(f"The answer {word.upper()} agrees.") == number


@pytest.mark.parametrize(
    ("rationale", "number"),
    [
        ("", 0.67),
        ("It agrees.", 0.67),
        ("It clearly agrees, though the evidence is mostly old.", 0.67),
        ("It clearly and explicitly agrees but might change.", 0.33),
        ("Clearly.", 1.0),
        # Whole words alone.
        ("It is unlikely, and mayhem reigns.", 0.67),
        ("An unclearly worded maybe.", 0.67),
        ("most-likely", 0.67),
        ("'possibly'", 0.33),
    ],
)
def test_of_several_words_the_lowest_counts_and_none_is_067(rationale: str, number: float) -> None:
    assert confidence_of(rationale) == number


@pytest.mark.parametrize(
    ("rationale", "number"),
    [
        ("It does not clearly agree.", 0.33),
        ("There is no clear stance.", 0.33),
        ("It hardly agrees.", 0.33),
        ("It isn't certain, and it isn’t definite.", 0.33),
        ("It does not take a clear side.", 0.33),
        ("The stance is not so strong as it seems.", 0.33),
        ("It agrees without being explicit.", 0.33),
        ("Clearly it agrees, yet it never strongly does.", 0.33),
        # No negation of the word, or none at all.
        ("No reservation is made: it clearly agrees.", 1.0),
        ("It does not hedge and clearly agrees.", 1.0),
        ("It not only clearly agrees.", 1.0),
        ("No doubt it clearly agrees.", 1.0),
        ("It is a clear stance.", 0.67),
        ("It is not a question of taste, and the answer strongly agrees.", 1.0),
        ("The noted strong wording notwithstanding.", 0.67),
    ],
)
def test_a_word_under_a_negation_counts_as_033(rationale: str, number: float) -> None:
    assert confidence_of(rationale) == number
