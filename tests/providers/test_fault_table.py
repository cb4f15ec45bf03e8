"""The table of faults that the documentation shows: made from the decisions, and put where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.engine.endpoint import Response
from millstream.providers.fault_table import BEGIN, END, HEAD, ROWS, main, table, with_table
from millstream.providers.llm.faults import MEANINGS, fault_of

STATUSES = sorted({*MEANINGS, 301, 302, 307, 308, 400, 402, 404, 405, 413, 422, 429})


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_in_the_one_row_that_tells_what_becomes_of_it(status: int) -> None:
    fault = fault_of(Response(status, b""))
    rows = [row for row in ROWS if status in row.statuses and "{" in row.comes]
    assert len(rows) == 1, [row.name for row in rows]
    assert rows[0].is_of(fault)
    assert str(status) in rows[0].cells[0]


def test_a_wait_that_is_told_has_a_row_of_its_own() -> None:
    (row,) = [row for row in ROWS if row.is_of(fault_of(Response(429, b"", headers={"retry-after": "7"})))]
    assert (row.name, row.exit_code) == ("told to wait", 4)


def test_rows_are_told_apart_by_their_names() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(len(row.cells) == len(HEAD) and all(row.cells) for row in ROWS)


def test_the_table_is_written_into_its_place_and_nothing_else_is_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}| old |\n{END}behind\n", "utf-8")
    assert main([str(page)]) == 0
    assert page.read_text("utf-8") == f"before\n{BEGIN}{table()}{END}behind\n"
    assert main([]) == 0 and capsys.readouterr().out == table()


def test_a_page_without_a_place_for_it_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing", "utf-8")
    assert main([str(page)]) == 2 and page.read_text("utf-8") == "nothing"
    assert "the page has no place for the table" in capsys.readouterr().err
    assert main([str(tmp_path / "none.md")]) == 2
    with pytest.raises(ValueError, match="no place"):
        with_table(BEGIN)
