"""The index: what it ranks first, held against a plain reckoning of BM25, and how it takes texts."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.providers.search.bm25 import K1, B, Postings, TextIndex, words_of

TEXTS = [
    "the whale is a mammal of the sea",
    "the sea is blue",
    "a blue whale is a whale, and blue",
    "nothing of the kind",
]


def index_of(texts: Iterable[str]) -> TextIndex:
    postings = Postings()
    for text in texts:
        postings.add(text)
    return postings.index()


def plainly(texts: list[str], query: str) -> dict[int, float]:
    """BM25 as it is written in books."""
    documents = [Counter(words_of(text)) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) if sum(lengths) else 1.0
    scores: dict[int, float] = {}
    for word in sorted(set(words_of(query))):
        holding = sum(1 for document in documents if word in document)
        rarity = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for number, document in enumerate(documents):
            if document[word]:
                damped = document[word] + K1 * (1 - B + B * lengths[number] / mean)
                scores[number] = scores.get(number, 0.0) + rarity * document[word] * (K1 + 1) / damped
    return scores


def test_the_document_that_says_it_most_stands_first() -> None:
    assert index_of(TEXTS).ranked("blue whale") == [2, 1, 0]


def test_a_word_that_nobody_says_finds_nothing() -> None:
    assert index_of(TEXTS).ranked("submarine") == []
    assert index_of(TEXTS).ranked("?!") == []
    assert index_of([]).ranked("whale") == []
    assert index_of(["", "  "]).ranked("whale") == []


def test_equals_stand_in_their_order() -> None:
    index = index_of(["sea whale", "whale sea", "land", "whale sea"])
    assert index.ranked("whale") == [0, 1, 3]


def test_neither_case_nor_order_nor_repetition_of_a_query_changes_the_ranking() -> None:
    index = index_of(TEXTS)
    land = index_of(["whale on land", "blue", "whale at sea"])
    assert land.ranked("blue whale") == land.ranked("whale whale whale blue") == [1, 0, 2]
    assert index.ranked("BLUE Whale") == index.ranked("whale blue blue") == index.ranked("blue, whale!")


def test_words_are_those_of_every_script() -> None:
    assert words_of("Straße ÄRGER naïve") == ["strasse", "ärger", "naïve"]
    assert words_of("鯨は海 sea") == ["鯨", "は", "海", "sea"]
    assert words_of("синий кит") == ["синий", "кит"]
    assert words_of("snake_case 2026-11") == ["snake", "case", "2026", "11"]
    assert words_of("x" * 1_000) == ["x" * 64]


@settings(max_examples=80, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join), min_size=1, max_size=12),
    query=st.lists(st.sampled_from("abcdefghi"), min_size=1, max_size=4).map(" ".join),
)
def test_the_ranking_is_that_of_the_formula(texts: list[str], query: str) -> None:
    scores = plainly(texts, query)
    expected = sorted(scores, key=lambda number: (-round(scores[number], 9), number))
    assert index_of(texts).ranked(query) == expected


def test_a_text_of_megabytes_is_read_in_pieces_and_whole() -> None:
    spaced = "whale " * 300_000 + "submarine"
    solid = "x" * 3_000_000 + " submarine"
    began = time.process_time()
    assert index_of([spaced, solid, "sea"]).ranked("submarine") == [1, 0]
    assert len(words_of(spaced)) == 300_001
    assert time.process_time() - began < 20
