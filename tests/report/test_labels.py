"""Claims about names on axes: one line, nothing unseen, cut, and never two the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.report.labels import issue_labels, labels, named_list, one_line, width_of

# Lone surrogates too, which no JSON holds but a program may hand over.
hostile = st.text(st.characters(categories=None), max_size=60)


@given(hostile)
def test_a_label_holds_nothing_that_cannot_be_seen(text: str) -> None:
    shown = one_line(text, 20)
    assert 0 < len(shown) <= 20
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for sign in shown)


@given(st.lists(hostile | st.just("x" * 400) | st.just("x" * 401), max_size=12))
def test_every_name_has_a_label_of_its_own(names: list[str]) -> None:
    for found in (labels(names, 10), issue_labels(names, 10)):
        assert list(found) == list(dict.fromkeys(names))
        assert len(set(found.values())) == len(found)


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    shown = one_line("provider/" + "a" * 300 + "-8b", 24)
    assert len(shown) == 24
    assert shown.startswith("provider/")
    assert shown.endswith("a-8b")
    assert "…" in shown


def test_a_million_signs_are_cut_before_they_are_looked_at() -> None:
    assert len(one_line("x" * 1_000_000, 30)) == 30


def test_an_issue_reads_as_words_and_an_odd_one_stays_as_it_is() -> None:
    found = issue_labels(["US-penny", "MAID-medical-aid-in-dying", "golf", "<b>-x", "a--b"])
    assert list(found.values()) == ["US penny", "MAID medical aid in dying", "Golf", "<b>-x", "a--b"]


def test_issues_that_would_read_alike_keep_their_ids() -> None:
    assert list(issue_labels(["Golf", "golf"]).values()) == ["Golf", "golf"]


def test_names_in_a_sentence_are_a_few_and_how_many_more() -> None:
    names = ["a", "b", "c", "d", "e"]
    assert [named_list(names[:number]) for number in range(1, 6)] == [
        "a",
        "a and b",
        "a, b and c",
        "a, b, c and 1 more",
        "a, b, c and 2 more",
    ]
    assert len(named_list(["x" * 500])) == 60


# Advance widths in the fonts that browsers draw with where they have no narrower one.
@pytest.mark.parametrize(
    ("label", "width"),
    [("One-sided con", 87), ("meta-llama/llama-3.1-405b", 158), ("WWWWMMMM", 89), ("Society & Holidays (1)", 139)],
)
def test_a_label_is_given_the_room_that_a_wide_font_takes(label: str, width: int) -> None:
    assert width <= width_of(label, 12) <= 1.25 * width


def test_full_width_letters_take_a_whole_square() -> None:
    assert width_of("模型", 12) == 24


def test_no_name_at_all_is_said() -> None:
    assert one_line(" \n") == "(empty)"
