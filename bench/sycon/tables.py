"""Reads text tables: files with a text on each line, and CSV files with named columns.

Owns that texts of several files correspond, and errors that name file and line. Knows no setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...engine.runs.data_file import DatasetError, read_text
from ..evaluation.data.data_rows import RowEntry, entries_of_file


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


def read_columns(path: Path, columns: Sequence[str]) -> list[RowEntry]:
    """Returns the rows of a CSV file, which has these columns, in any order, and a text in each of them."""
    rows = list(entries_of_file(path))
    if not rows:
        raise DatasetError(f"{path}: expected a header with {', '.join(columns)} and rows below it, got no row")
    for cells, where in rows:
        for column in columns:
            if column not in cells:
                raise DatasetError(f"{where}: expected a column {column}, got none: {', '.join(cells)}")
            if not cells[column].strip():
                raise DatasetError(f"{where}: {column}: expected a text, got an empty cell")
    return rows


def check_same_length(tables: Mapping[Path, int]) -> None:
    """Raises DatasetError unless all files have the same number of lines, since line n of each corresponds."""
    if len(set(tables.values())) > 1:
        numbers = ", ".join(f"{path.name} has {number:,}" for path, number in tables.items())
        raise DatasetError(f"{next(iter(tables)).parent}: expected files of the same number of rows, but {numbers}")
