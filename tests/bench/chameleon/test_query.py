"""A query out of what a model wrote."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.chameleon.retrieval import CHARS_MAX, WORDS_MAX, query_from, query_in


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("salt blood pressure trials", "salt blood pressure trials"),
        ('"salt blood pressure trials"', "salt blood pressure trials"),
        ("“salt trials”", "salt trials"),
        ("`salt trials`", "salt trials"),
        ("Query: salt trials", "salt trials"),
        ('Search query: "salt trials"', "salt trials"),
        ("Web search query: salt trials", "salt trials"),
        ("**Query:** salt trials", "salt trials"),
        ("**salt trials**", "salt trials"),
        ("- salt trials", "salt trials"),
        ("1. salt trials", "salt trials"),
        ("Here is a query:\n\nsalt trials\n", "salt trials"),
        ("Sure! Here's the query: salt trials", "salt trials"),
        ("```\nsalt trials\n```", "salt trials"),
        ("\n\n  salt   trials \nsugar trials", "salt trials"),
        ('"salt trials" "blood pressure"', '"salt trials" "blood pressure"'),
        ("site:who.int salt", "site:who.int salt"),
        ("what's known of salt", "what's known of salt"),
        ("'what's known'", "what's known"),
        ("2024 salt guidelines", "2024 salt guidelines"),
        ("", ""),
        ("```\n```", ""),
        ("?!", ""),
    ],
)
def test_labels_quotes_and_fences_are_left_out(text: str, query: str) -> None:
    assert query_in(text) == query


def test_more_than_twelve_words_are_taken_up_to_a_bound() -> None:
    twenty = " ".join(f"w{number}" for number in range(20))
    assert query_in(twenty) == twenty
    assert len(query_in("word " * 500).split()) == WORDS_MAX
    assert len(query_in("x" * 1_000)) == CHARS_MAX
    assert len(query_in(("x" * 30 + " ") * 40)) <= CHARS_MAX


def test_the_question_stands_in_where_no_query_was_written() -> None:
    assert query_from("How much\n salt?") == "How much salt?"


@given(st.text(max_size=300))
def test_a_query_is_one_bounded_line_whatever_was_written(text: str) -> None:
    query = query_in(text)
    assert len(query) <= CHARS_MAX
    assert query == " ".join(query.split())
    assert query_in(query) == query or not query


@pytest.mark.parametrize("piece", ["*", "1. ", "- ", '"', "_", "query: ", "query: \n", "**a**: "])
def test_a_long_line_of_nothing_but_wrapping_is_read_at_once(piece: str) -> None:
    began = time.process_time()

    query_in(piece * (300_000 // len(piece)) + "a")

    assert time.process_time() - began < 8
