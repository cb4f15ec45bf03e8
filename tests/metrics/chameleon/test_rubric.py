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
