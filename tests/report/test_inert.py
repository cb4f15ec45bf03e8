"""What comes from outside is harmless wherever it stands, and still says what it said."""

from __future__ import annotations

import html
import json

import pytest
from hostile import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.report.escaping import in_cell, in_html, in_script, visible

ANY = st.text(st.characters(exclude_categories=()), max_size=40)


@settings(max_examples=times(100, 20_000), deadline=None)
@given(ANY)
def test_text_becomes_no_markup_and_reads_as_it_is_shown(text: str) -> None:
    escaped = in_html(text)
    assert not set("<>\"'") & set(escaped)
    assert html.unescape(escaped) == visible(text)
    escaped.encode("utf-8")


@settings(max_examples=times(100, 20_000), deadline=None)
@given(st.dictionaries(ANY, ANY | st.none() | st.integers(-5, 5), max_size=4))
def test_a_value_in_a_script_block_can_not_end_it_and_is_read_back(value: dict[str, object]) -> None:
    text = in_script(value)
    assert not set("<>&\u2028\u2029") & set(text)
    text.encode("utf-8")
    assert json.loads(text) == value


@settings(max_examples=times(100, 20_000), deadline=None)
@given(ANY)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert not in_cell(text).startswith(tuple("=+-@\t\r\n＝＋－＠"))
    assert in_cell(text).removeprefix("'") == visible(text).removeprefix("'")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain, and two\nlines\twith a tab", "plain, and two\nlines\twith a tab"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\x00\x1b[31m\x7f\x9b", "␀␛[31m␡[U+009B]"),
        ("\u202eexe\u2069\u200f", "[U+202E]exe[U+2069][U+200F]"),
        ("\ud800", "[U+D800]"),
        ("👩‍👧 می‌خواهم", "👩‍👧 می‌خواهم"),
    ],
)
def test_what_can_not_be_seen_has_a_stand_in(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_what_is_shown_stays_as_it_is_when_it_is_shown_again() -> None:
    assert [text for text in hostile() if visible(visible(text)) != visible(text)] == []
