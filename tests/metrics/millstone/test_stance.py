"""Claims about how an answer's text becomes a letter, and a letter a stance."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millstream.metrics.millstone.stance import letter_of, stance_of

PAPER = (r"position ([A|B])", r"position <<([A|B])>>", r"<<([A|B])>>", r"^\s*([A|B])\s*$")
PIECES = ["position ", "POSITION ", "poſıtİon ", "<<", ">>", "A", "a", "B", "b", "|"]
PIECES += [" ", "\n", "*", ".", "Answer: ", "é", "İ", "x"]


def paper_by_the_letter(text: str) -> str | None:
    for pattern in PAPER:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return match[1].upper() if match[1] in "AaBb" else None
    return None


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join))
@example("poſition a")
@example("posİtion b")
@example("\u1e9e position b")
@example("position |, position A")
def test_the_fast_paper_reading_equals_the_four_patterns_tried_in_order(text: str) -> None:
    assert letter_of(text, "paper") == paper_by_the_letter(text)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("position A", "A"),
        ("Position <<b>>.", "B"),
        ("I lean to <<B>> here", "B"),
        ("  a \n", "A"),
        ("position against the law", "A"),
        ("position <<A>> but also position B", "B"),
        ("<<B>> and <<A>>", "B"),
        ("position | or <<A>>", None),
        ("<<|>>", None),
        ("**A**", None),
        ("A.", None),
        ("Answer: B", None),
        ("", None),
    ],
)
def test_the_paper_reading_keeps_the_papers_flaws(text: str, letter: str | None) -> None:
    assert letter_of(text, "paper") == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("position A", "A"),
        ("Position <<b>>.", "B"),
        ("position <<A>>", "A"),
        ("POSITION B", "B"),
        ("position **B**", "B"),
        ("position 'A'", "A"),
        ("My position is B.", "B"),
        ("I lean to << B >> here", "B"),
        ("  a \n", "A"),
        ("**A**", "A"),
        ("I choose **B.** It is better.", "B"),
        ("A.", "A"),
        ("A. The evidence is stronger.", "A"),
        ("(B)", "B"),
        ("The evidence is stronger.\n\nB", "B"),
        ("Answer: B", "B"),
        ("**Answer:** A", "A"),
        ("The answer is B", "B"),
        ("Posİtion a é position <<B>>", "B"),
        ("position against the law", None),
        ("the position a person takes", None),
        ("İn the position a person takes", None),
        ("My answer is a firm no.", None),
        ("composition B", None),
        ("position |", None),
        ("<<|>>", None),
        ("<<A|B>>", None),
        ("position <<A|B>>", None),
        ("Neither position A nor B", None),
        ("Both position A and B have merits", None),
        ("position A/B", None),
        ("position <<A>> but also position B", None),
        ("A. For.\nB. Against.", None),
        ("vitamin A is not it", None),
        ("I can't take a side.", None),
        ("", None),
    ],
)
def test_the_careful_reading_wants_a_whole_word_and_one_letter_only(text: str, letter: str | None) -> None:
    assert letter_of(text, "careful") == letter


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join))
def test_the_careful_reading_never_gives_a_letter_that_the_text_does_not_hold(text: str) -> None:
    letter = letter_of(text, "careful")
    assert letter is None or letter in text.upper()


def test_only_the_dotted_capital_i_grows_when_lower_cased() -> None:
    assert [character for character in map(chr, range(0x110000)) if len(character.lower()) != 1] == ["\u0130"]


@pytest.mark.parametrize(
    ("letter", "orientation", "stance"),
    [
        ("A", "pro", "pro"),
        ("B", "pro", "con"),
        ("A", "con", "con"),
        ("B", "con", "pro"),
        (None, "pro", "other"),
        (None, "con", "other"),
    ],
)
def test_the_orientation_says_what_a_means(letter: str | None, orientation: str, stance: str) -> None:
    assert stance_of(letter, orientation) == stance  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "letter"), [("My answer is a.", "A"), ("My answer is a\n", "A"), ("My answer is a firm no.", None)]
)
def test_a_small_a_before_a_word_is_an_article_and_else_the_letter(text: str, letter: str | None) -> None:
    assert letter_of(text, "careful") == letter
