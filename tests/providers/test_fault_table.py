"""The table of faults that the documentation shows: made from the decisions, and put where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_table import BEGIN, END, HEAD, ROWS, STATUSES, FaultRow, main, table, with_table

from millstream.engine.endpoint import Response
from millstream.providers.llm.faults import fault_of


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


# What was promised: Y tried again, N never, STOP the lane stops; K the quota is kept, R given back, S as counted; B
# where it may have been billed; what is recorded; the exit code.
PROMISED: dict[str, tuple[str, str, str, int]] = {
    "unreachable": ("Y", "R", "connect dns", 3),
    "hung up": ("Y", "KB", "disconnected", 3),
    "broken body": ("Y", "KB", "incomplete", 3),
    "longer body": ("-", "S", "ok", 0),
    "late": ("Y", "KB", "timeout", 3),
    "truncated JSON": ("Y", "KB", "bad_json incomplete", 3),
    "error within": ("Y", "K", "server_error", 3),
    "told to wait": ("Y", "K", "", 4),
    "throttled": ("Y", "K", "rate_limited", 3),
    "empty account": ("STOP", "K", "", 4),
    "server error": ("Y", "K", "server_error", 3),
    "overloaded": ("Y", "K", "server_error", 3),
    "gateway": ("Y", "KB", "server_error", 3),
    "rejected": ("N", "K", "rejected", 3),
    "dead key": ("STOP", "K", "", 4),
    "filtered": ("-", "S", "refused", 0),
    "cut by length": ("-", "S", "ok", 0),
    "empty": ("Y", "S", "empty", 3),
    "too large": ("N", "KB", "too_large", 3),
    "no text": ("-", "S", "ok", 0),
    "ended stream": ("-", "S", "ok", 0),
    "cut stream": ("Y", "KB", "incomplete", 3),
    "redirect": ("STOP", "K", "redirect", 4),
}
STATUSES_PROMISED = {
    "throttled": {429},
    "empty account": {402},
    "server error": {500, 503, 408, 409},
    "overloaded": {529},
    "gateway": {502, 504},
    "rejected": {400, 404, 413, 422},
    "dead key": {401, 403},
    "redirect": {301, 302, 307, 308},
}
SHORT = {None: "-", "retry": "Y", "throttle": "Y", "never": "N", "stop": "STOP", "confirm": "STOP"}
QUOTAS = {"keep": "K", "refund": "R", "settle": "S"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_what_was_promised(row: FaultRow) -> None:
    fault, promised = row.fault, PROMISED[row.name]
    action = None if fault is None else fault.action
    quota = "S" if fault is None else QUOTAS[fault.quota] + ("B" if fault.is_billed_maybe else "")
    assert (SHORT[action], quota, " ".join(row.recorded), row.exit_code) == promised
    assert set(row.statuses) >= STATUSES_PROMISED.get(row.name, set())
    assert (fault is not None and fault.cuts_rate) == (row.name in ("throttled", "overloaded"))
    assert (fault is not None and fault.is_repeated_once) == (row.name == "empty")


def test_rows_are_told_apart_by_their_names() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) == len(PROMISED)
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
