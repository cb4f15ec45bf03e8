"""Reads text tables: files with a text on each line, and CSV files with named columns.

Owns how lines and cells are read, and errors that name file and line. Knows no setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...engine.runs.data_file import DatasetError, csv_rows, read_text


class Cells(NamedTuple):
    """A row of a CSV file: the number of its first line, from 1, and its cells by column name."""

    line: int
    by_name: Mapping[str, str]


def read_lines(path: Path) -> list[str]:
    """Returns every line without surrounding white space. Only a newline ends a line: a text may contain the other
    characters at which `str.splitlines` splits. Trailing empty lines are ignored; others are an error, since lines of
    several files correspond."""
    lines = [line.strip() for line in read_text(path).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise DatasetError(f"{path}: expected a text on each line, got an empty file")
    for number, line in enumerate(lines, 1):
        if not line:
            raise DatasetError(f"{path} line {number}: expected a text, got an empty line before later ones")
    return lines


def read_columns(path: Path, columns: Sequence[str]) -> list[Cells]:
    """Returns the rows of a CSV file. Columns are found by name in the header, in any order; others are ignored. Cells
    are unchanged, and rows without text are skipped."""
    rows: list[Cells] = []
    header: list[str] | None = None
    for line, row in csv_rows(
        read_text(path),
        lambda line, error: DatasetError(f"{path} line {line}: expected a row of CSV, got something else: {error}"),
    ):
        if header is None:
            header = _header(row, columns, f"{path} line {line}")
        else:
            rows.append(Cells(line, _cells(row, header, columns, f"{path} line {line}")))
    if not rows:
        raise DatasetError(f"{path}: expected a header with {', '.join(columns)} and rows below it, got no row")
    return rows


def check_same_length(tables: Mapping[Path, int]) -> None:
    """Raises DatasetError unless all files have the same number of lines, since line n of each corresponds."""
    if len(set(tables.values())) > 1:
        numbers = ", ".join(f"{path.name} has {number:,}" for path, number in tables.items())
        raise DatasetError(f"{next(iter(tables)).parent}: expected files of the same number of rows, but {numbers}")


def _header(row: Sequence[str], columns: Sequence[str], where: str) -> list[str]:
    header = [cell.strip() for cell in row]
    for column in columns:
        if header.count(column) != 1:
            found = "none of that name" if column not in header else f"{header.count(column)} of that name"
            raise DatasetError(f"{where}: expected one column {column}, got {found}: {', '.join(header)}")
    return header


def _cells(row: Sequence[str], header: Sequence[str], columns: Sequence[str], where: str) -> dict[str, str]:
    if len(row) != len(header):
        raise DatasetError(f"{where}: expected {len(header)} cells, as the header has, got {len(row)}")
    cells = dict(zip(header, row, strict=True))
    for column in columns:
        if not cells[column].strip():
            raise DatasetError(f"{where}: {column}: expected a text, got an empty cell")
    return {column: cells[column] for column in columns}
