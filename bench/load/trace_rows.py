"""Reads the rows of a trace by column name, from CSV, JSON lines or plain numbers, lazily.

Owns the accepted formats and the errors, which name the line. `traces` interprets the rows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...configuration.errors import UsageError
from ...engine.runs.data_file import DatasetError, csv_rows, decode, opened

Row = Mapping[str, Any]

_LINE_MAX = 1 << 20
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
# Fields that every line of a load test's calls.jsonl has.
_OWN = ("due", "begun", "ended")


class Where(NamedTuple):
    """The place of a line, formatted only for an error message; `line` counts from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"--replay: {self.path}: line {self.line}"


def rows_of(path: Path) -> Iterator[tuple[Where, Row]]:
    """Yields each row with its line. The columns of a CSV file without a header are named `column 1` and so on; a
    single one has an empty name."""
    lines = _lines(path)
    head = []
    for line in lines:
        head.append(line)
        if not line.isspace():
            break
    first = head[-1].strip() if head else ""
    if first.startswith("["):
        raise UsageError(
            f"--replay: {path}: expected CSV, JSON lines or a number a line, got a JSON list: write an object a line"
        )
    every = chain(head, lines)
    yield from _of_json(every, path) if first.startswith("{") else _of_csv(first, every, path)


def is_own(row: Row) -> bool:
    """Returns whether the row is a line of a load test's calls.jsonl."""
    return all(name in row for name in _OWN)


def is_number(value: object) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: object) -> float:
    """Returns the number that a value is or spells; NaN if it is none."""
    return float(str(value)) if is_number(value) else math.nan


def is_time(value: object) -> bool:
    return is_number(value) or date_of(value) is not None


def date_of(value: object) -> datetime | None:
    """Returns the date that an ISO text spells; None if it is none. Without a zone UTC is assumed, which does not
    change differences."""
    try:
        date = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return date.replace(tzinfo=UTC) if date is not None and date.tzinfo is None else date


def _lines(path: Path) -> Iterator[str]:
    place = 0
    with opened(path) as file:
        for number, data in enumerate(iter(partial(file.readline, _LINE_MAX), b""), 1):
            if len(data) == _LINE_MAX:
                raise UsageError(f"{Where(path, number)}: expected fewer than {_LINE_MAX:,} bytes, got more")
            text = decode(data, path, place)
            place += len(data)
            if "\0" in text:
                raise UsageError(f"{Where(path, number)}: expected text, got a binary file")
            yield text


def _of_json(lines: Iterable[str], path: Path) -> Iterator[tuple[Where, Row]]:
    is_ours = False
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        where, text = Where(path, number), line.strip()
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            if is_ours and not line.endswith("\n"):
                return  # the last line of a killed test
            raise UsageError(f"{where}: expected a JSON object, got none ({error})") from error
        if not isinstance(row, dict):
            raise UsageError(f"{where}: expected a JSON object, got {text[:40]}")
        is_ours = is_ours or is_own(row)
        yield where, row


def _of_csv(first: str, lines: Iterable[str], path: Path) -> Iterator[tuple[Where, Row]]:
    """Yields the rows of a CSV file. A first line without any time is the header."""
    names: list[str] | None = None
    for number, row in csv_rows(
        (line.strip("\r\n ") + "\n" for line in lines),
        lambda line, error: DatasetError(f"{path}: line {line}: expected CSV, got something else ({error})"),
        max(",;\t", key=first.count),
    ):
        cells = [cell.strip() for cell in row]
        if names is None:
            is_header = not any(map(is_time, cells))
            numbered = [f"column {at}" for at in range(1, len(cells) + 1)] if len(cells) > 1 else [""]
            names = cells if is_header else numbered
            if is_header:
                continue
        yield Where(path, number), dict(zip(names, cells, strict=False))
