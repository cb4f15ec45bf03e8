"""Tables as CSV: read back they hold what they held, and no spreadsheet computes a text of theirs."""

from __future__ import annotations

import csv

import numpy as np
from hostile import hostile
from hypothesis import given
from hypothesis import strategies as st

from millstream.report.csv_files import csv_of
from millstream.report.escaping import visible
from millstream.report.table import Cell, Column, Table

COLUMNS = (Column("model", "Model"), Column("om", "OM", "score"), Column("answers", "Answers", "count"))


def table(*rows: tuple[Cell, ...]) -> Table:
    return Table("t", "T", "", COLUMNS, rows)


def read(data: bytes) -> list[list[str]]:
    csv.field_size_limit(10_000_000)
    return list(csv.reader(data.decode("utf-8").splitlines(keepends=True), strict=True))


@given(st.lists(st.tuples(st.none() | st.text(max_size=20), st.none() | st.floats(allow_nan=False), st.integers())))
def test_rows_are_read_back(rows: list[tuple[str | None, float | None, int]]) -> None:
    header, *found = read(csv_of(table(*rows)))
    assert header == ["model", "om", "answers"]
    for (model, score, answers), line in zip(rows, found, strict=True):
        assert line[0].removeprefix("'") == visible(model or "").removeprefix("'")
        assert (None if line[1] == "" else float(line[1])) == score
        assert int(line[2]) == answers


def test_values_are_written_as_a_program_reads_them() -> None:
    rows = ((None, np.float64(1 / 3), True), ("x", -2.5, 1_000_000))
    assert read(csv_of(table(*rows)))[1:] == [["", repr(1 / 3), "true"], ["x", "-2.5", "1000000"]]


def test_hostile_texts_keep_to_their_cells() -> None:
    texts = hostile()
    _, *found = read(csv_of(table(*((text, None, at) for at, text in enumerate(texts)))))
    assert [len(line) for line in found] == [3] * len(texts)
    assert [line[0] for line in found if line[0][:1] in "=+-@\t\r\n＝＋－＠" and line[0]] == []
    assert [int(line[2]) for line in found] == list(range(len(texts)))
