"""Text on a terminal: tables in bands, sentences in lines, and nothing divided within a word or a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.interfaces.terminal.fitting import fitted
from millstream.report.text import table

ROWS = [
    ("model", "OM", "95% interval", "issues", "from cache"),
    ("sim/open", "0.431", "0.40 to 0.46", "107 of 107", "1,234,567"),
    ("sim/contrary", "-", "none", "0 of 107", "0"),
]
# The first column has 12 characters; the others 5, 12, 10 and 10, each after two blanks: 12 + 7 + 14 = 33 fit in 40,
# a third of 12 more (45) does not; 12 + 12 + 12 = 36 fit.
BANDS = """\
model            OM  95% interval
sim/open      0.431  0.40 to 0.46
sim/contrary      -          none

model             issues  from cache
sim/open      107 of 107   1,234,567
sim/contrary    0 of 107           0"""


def test_a_wide_table_becomes_bands_with_the_first_column_in_each() -> None:
    assert fitted(table(ROWS), 40) == BANDS


def test_what_fits_stays_as_it_is() -> None:
    assert fitted(table(ROWS), 57) == table(ROWS)
    assert max(map(len, table(ROWS).split("\n"))) == 57


def test_sentences_around_a_table_are_folded_and_the_table_is_not_torn() -> None:
    before, after = (
        "sim: scores of a run with many more words than fit",
        "no interval: fewer than two issues were asked",
    )
    assert fitted(f"{before}\n{table(ROWS)}\n{after}", 40) == (
        f"sim: scores of a run with many more\nwords than fit\n{BANDS}\nno interval: fewer than two issues were\nasked"
    )


def test_a_line_that_is_folded_keeps_its_indent() -> None:
    assert fitted("  connect, all 66: the server refuses", 24) == "  connect, all 66: the\n  server refuses"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "66 prompts are pending; go on: millstream resume 'runs/ü 1'",
            ["66 prompts are pending; go on:", "millstream resume 'runs/ü 1'"],
        ),
        (
            "once it is there: millstream retry runs/a --patience 5; else another folder",
            ["once it is there:", "millstream retry runs/a --patience 5;", "else another folder"],
        ),
        ("pass what `millstream data benchmark` makes", ["pass what", "`millstream data benchmark` makes"]),
    ],
)
def test_a_command_to_paste_stays_on_one_line(text: str, lines: list[str]) -> None:
    assert fitted(text, 34).split("\n") == lines


@given(st.lists(st.text("ab1,", min_size=1, max_size=30), min_size=1, max_size=20), st.integers(20, 60))
def test_no_word_is_divided_and_no_line_is_longer_than_the_width(words: list[str], width: int) -> None:
    lines = fitted(" ".join(words), width).split("\n")
    assert [word for line in lines for word in line.split()] == words
    assert all(len(line) <= width or " " not in line for line in lines)


def test_a_second_column_of_sentences_is_folded_beside_the_first() -> None:
    # 8 characters of the name and 2 blanks leave 20 of 30: "prove that nothing is" has 21.
    rows = "  run     run a benchmark, the task of a file\n  verify  prove that nothing is missing"
    assert fitted(rows, 30) == (
        "  run     run a benchmark, the\n          task of a file\n  verify  prove that nothing\n          is missing"
    )


def test_a_column_that_is_too_wide_has_a_band_of_its_own() -> None:
    rows = [("a", "key", "address"), ("x", "the key of x or of y: not set", "http://x"), ("z", "set", "")]
    # The first column takes 1 of 24, the second 29 after two blanks: folded to 21; the third follows in its own band.
    assert fitted(table(rows, (0, 1, 2)), 24) == (
        "a  key\nx  the key of x or of y:\n   not set\nz  set\n\na  address\nx  http://x\nz"
    )
