"""What answers are read as: equal texts, letters and numbers; what leaves a doubt is unreadable, never wrong."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest

from millstream.bench.task.letters import letter_in
from millstream.bench.task.numbers import Decimal, Which, number_in
from millstream.bench.task.texts import is_anywhere, is_at_end, is_at_start, normalised

PARIS = ["Paris", "paris", " PARIS\n", "Paris.", "**Paris**", '"Paris"', "“Paris”", "(Paris)", "Ｐａｒｉｓ", "_Paris_!"]


@pytest.mark.parametrize("text", PARIS)
def test_case_space_width_and_marks_at_the_ends_make_no_difference(text: str) -> None:
    assert normalised(text) == "paris"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Côte d’Ivoire", "Co\u0302te  d'Ivoire"),
        ("New‑York", "new-york"),
        ("ﬁne", "FINE"),
        ("Straße", "STRASSE"),
        ("CO₂", "co2"),
    ],
)
def test_forms_of_the_same_characters_are_equal(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("São", "Sao"), ("-5", "5"), (".5", "5"), ("50%", "50"), ("$5", "5"), ("10²", "102"), ("C#", "C"), ("3.5", "35")],
)
def test_signs_that_carry_a_meaning_make_a_difference(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    ("wanted", "text", "start", "end", "anywhere"),
    [
        ("paris", "paris, the capital of france", True, False, True),
        ("paris", "it is paris", False, True, True),
        ("paris", "comparison", False, False, False),
        ("3", "13", False, False, False),
        ("3", "3.5", False, False, False),
        ("300", "1,300", False, False, False),
        ("5", "-5", False, False, False),
        ("3", "it is 3, i think", False, False, True),
        ("東京", "首都は東京です", False, False, True),
        ("c++", "c++ of course", True, False, True),
    ],
)
def test_a_wanted_text_stands_in_an_answer_as_whole_words(
    wanted: str, text: str, start: bool, end: bool, anywhere: bool
) -> None:
    found = (is_at_start(wanted, text), is_at_end(wanted, text), is_anywhere(wanted, text))
    assert found == (start, end, anywhere)


LETTERS: dict[str, str | None] = {
    "B": "B",
    "b": "B",
    "(B)": "B",
    "**B.**": "B",
    "Option B": "B",
    "B. Paris": "B",
    "(B) Paris is the capital": "B",
    "Paris": "B",
    "The answer is B": "B",
    "The correct answer is: **(B)** Paris": "B",
    "The best choice is B, because A is wrong": "B",
    "I choose option B": "B",
    "Answer: A. No, wait.\nAnswer: B": "B",
    "Let me think about A and C.\n\nB": "B",
    "so $\\boxed{\\text{B}}$": "B",
    "A. London\nB. Paris": None,
    "The answer is A or B": None,
    "Answer: A, B": None,
    "The answer is not B": None,
    "Option A is right; option B is wrong": None,
    "I think it is B": None,
    "The answer is a good one": None,
    "A man walked into a bar": None,
    "E": None,
    "\\boxed{42}": None,
    "I cannot say": None,
}


@pytest.mark.parametrize("text", LETTERS)
def test_an_answer_has_a_letter_only_where_it_names_one_for_certain(text: str) -> None:
    assert letter_in(text, "ABCD", ("London", "Paris", "Rome", "Bern")) == LETTERS[text]


NUMBERS: dict[str, Any] = {
    "42": 42,
    "It is 42.": 42,
    "1,234,567.5": Fraction(2469135, 2),
    "1'000": 1000,
    "1\u202f000": 1000,
    ".5": Fraction(1, 2),
    "1/2": Fraction(1, 2),
    "5e-1": Fraction(1, 2),
    "−5": -5,
    "-$5": -5,
    "$1,200.50 a month": Fraction(2401, 2),
    "about 3 km": 3,
    "3 million people": 3_000_000,
    "2 hundred thousand": 200_000,
    "1.5 × 10^6": 1_500_000,
    "$1.5 \\times 10^{6}$": 1_500_000,
    "She has 16 and eats 3.\nSo 13 are left.": 13,
    "16 - 3 = 13\n#### 13": 13,
    "7 x 6 = 42": 42,
    "so \\boxed{-3}": -3,
    "5 and 3 make 8.\n**Answer:** 8 apples": 8,
    "The answer is **1,000**": 1000,
    "1,23": None,
    "1,234,56": None,
    "1.2.3": None,
    "10²": None,
    "5k": None,
    "3 bn": None,
    "between 3 and 4": None,
    "5-7": None,
    "12:30": None,
    "2020-05-06": None,
    "1/2/2020": None,
    "1/0": None,
    "1e999999999": None,
    "COVID-19": None,
    "CO2": None,
    "none": None,
    "√5": None,
    "\\boxed{2\\sqrt{3}}": None,
    "sqrt(5)": None,
    "\\sqrt{16} = 4": 4,
    "\\frac{5}{5}": None,
    "0x1F": None,
    "7x6": None,
    "9c3d8c35a073": None,
    "the prompt 582c4c56": None,
    "1e5a3": None,
    "9c3d8c35a073 is 4": 4,
    "The answer is 4 (9c3d8c35a073)": 4,
    "5m2": 5,
    "12kg": 12,
    "5 thousandths": None,
    "The answer is 3½": None,
    "3 ¼ cups": None,
    "5 dozen": None,
    "$1.2m": None,
    "1.2 m": Fraction(6, 5),
    "$5 more": 5,
    "The answer is not 7": None,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_an_answer_has_a_number_only_where_it_gives_one_for_certain(text: str) -> None:
    found = number_in(text)
    assert (None if found is None else found.value) == NUMBERS[text]


@pytest.mark.parametrize(
    ("text", "decimal", "which", "value"),
    [
        ("1.234,5", ",", "answer", Fraction(2469, 2)),
        ("1,5", ",", "answer", Fraction(3, 2)),
        ("1.5", ",", "answer", None),
        ("3 of 4 or 5", ".", "first", 3),
        ("3 of 4 or 5", ".", "last", 5),
        ("3 of 4 or 5k", ".", "last", None),
    ],
)
def test_the_decimal_sign_and_the_place_can_be_said(text: str, decimal: Decimal, which: Which, value: Any) -> None:
    found = number_in(text, decimal, which)
    assert (None if found is None else found.value) == value


@pytest.mark.parametrize(("text", "is_percent"), [("50%", True), ("50 percent", True), ("50", False)])
def test_a_percent_sign_is_told_apart(text: str, is_percent: bool) -> None:
    found = number_in(text)
    assert found is not None and found.is_percent is is_percent


def test_looking_for_another_text_in_each_row_costs_little() -> None:
    began = time.process_time()
    for number in range(3_000):
        assert is_anywhere(f"capital {number}", f"it is capital {number}, i think")
    # A pattern compiled for each row took 30 s here.
    assert time.process_time() - began < 2.0
