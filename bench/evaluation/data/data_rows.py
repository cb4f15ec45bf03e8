"""Reads the rows of a task: from CSV, JSON lines, a JSON list, Parquet, a folder of Hugging Face, or an iterable.

Owns the formats of files and where in them a row stands. `rows` checks the rows; `hugging_face` knows the folders.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ....engine.runs.data_file import BYTES_MAX, DatasetError, csv_rows, decode, opened, parse
from ..door.defect import benchmark_code

_SHOWN_CHARS = 60


class TaskError(DatasetError):
    """Raised for a task that can't be run as declared; the message names the part, what was expected, what it has, and
    what to do."""


class RowEntry(NamedTuple):
    """A row's content before it is checked, and its place in the data."""

    content: Any
    where: str


def shown(value: Any) -> str:
    """Returns a value as messages show it: its `repr`, cut at 60 characters."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


Data: TypeAlias = str | os.PathLike[str] | Iterable[Mapping[str, Any]]

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow")
_PACKED = ".gz"
_FILE_BYTES_MAX = 16 * BYTES_MAX
# A list is parsed whole, and takes ten times its size then.
_WHOLE_BYTES_MAX = 4 * BYTES_MAX
_LARGE = "give --limit, or the rows as JSON lines in several files"
# A column of one long text, repeated, is small in its file: so few rows are unpacked at once.
_BATCH_ROWS = 32
_LFS = b"version https://git-lfs.github.com/spec/"


def entries_of_iterable(rows: Iterable[Any]) -> Iterator[RowEntry]:
    """Yields the rows of an iterable of mappings, numbered from 1."""
    if isinstance(rows, Mapping | bytes) or not isinstance(rows, Iterable):
        raise TaskError(f"data: expected a path, or an iterable of mappings, got {shown(rows)}")
    with benchmark_code("data"):
        for number, content in enumerate(rows, 1):
            yield RowEntry(content, f"row {number}")


def suffix_of(path: Path) -> str:
    """Returns the lower-case file suffix that decides the format; a `.gz` after it is left out."""
    name = path.name.lower().removesuffix(_PACKED)
    return Path(name).suffix


def entries_of_file(path: Path) -> Iterator[RowEntry]:
    """Yields the rows of one file, read by its suffix. Raises TaskError for an unknown suffix or an unreadable file."""
    suffix = suffix_of(path)
    if suffix in (".parquet", ".arrow"):
        yield from _entries_of_table(path, suffix)
    elif suffix in (".csv", ".tsv"):
        yield from _entries_of_csv(_lines(path), path, "\t" if suffix == ".tsv" else None)
    elif suffix in (".jsonl", ".ndjson"):
        yield from _entries_of_lines(_lines(path), path)
    elif suffix == ".json":
        yield from _entries_of_json("".join(_lines(path, _WHOLE_BYTES_MAX)), path)
    else:
        raise TaskError(f"{path}: expected a file that ends with {', '.join(SUFFIXES)} (and .gz), or a folder of these")


def _lines(path: Path, most: int = _FILE_BYTES_MAX) -> Iterator[str]:
    """Yields the lines of a file with their newlines, unpacked as they are read: the first rows of a large file take as
    long as those of a small one."""
    place = 0
    is_packed = path.name.lower().endswith(_PACKED)
    with opened(path) as packed, gzip.open(packed) if is_packed else packed as file:
        try:
            # Only a newline ends a line: JSON texts may hold the other characters that splitlines() splits at.
            for line in iter(partial(file.readline, most + 1), b""):
                if place == 0:
                    _check_is_no_pointer(line, path)
                if place + len(line) > most:
                    raise TaskError(f"{path}: expected at most {most >> 20:,} MiB, got more: {_LARGE}")
                yield decode(line, path, place)
                place += len(line)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TaskError(f"{path}: expected a gzip file, got something else: {error}") from error


def _check_is_no_pointer(first: bytes, path: Path) -> None:
    if first.startswith(_LFS):
        raise TaskError(f"{path}: a pointer of Git LFS, not the data: run git lfs pull in its folder")


def _entries_of_lines(lines: Iterable[str], path: Path) -> Iterator[RowEntry]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path} line {number}"
            yield RowEntry(parse(line, where), where)


def _entries_of_json(text: str, path: Path) -> Iterator[RowEntry]:
    first, _, rest = text.lstrip().partition("\n")
    if first.startswith("{") and rest.lstrip().startswith("{"):
        yield from _entries_of_lines(io.StringIO(text, newline="\n"), path)
        return
    root = parse(text, str(path))
    if not isinstance(root, list):
        raise TaskError(f"{path}: expected a list of objects, or one object a line, got {shown(root)}")
    for at, content in enumerate(root):
        yield RowEntry(content, f"{path}: [{at}]")


def _entries_of_csv(lines: Iterator[str], path: Path, delimiter: str | None) -> Iterator[RowEntry]:
    """Yields the rows of a CSV file whose first line names the columns. `delimiter` None: semicolons separate the cells
    if that line has some and no comma, as where a comma is the decimal sign; else commas do."""
    first = next(lines, "")
    delimiter = delimiter or (";" if ";" in first and "," not in first else ",")
    # The limit holds for all readers of the interpreter: it is raised and never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), _FILE_BYTES_MAX))
    header: list[str] | None = None
    for line, cells in csv_rows(
        chain([first], lines),
        lambda line, error: TaskError(f"{path} line {line}: expected a row of cells, got something else: {error}"),
        delimiter,
    ):
        where = f"{path} line {line}"
        if header is None:
            header = _header(cells, where)
        elif len(cells) != len(header):
            hint = ": its first line begins with #, but such a file has no comments" if first.startswith("#") else ""
            raise TaskError(f"{where}: expected {len(header)} cells, as the first line has, got {len(cells)}{hint}")
        else:
            yield RowEntry(dict(zip(header, cells, strict=True)), where)


def _header(cells: list[str], where: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    for name, uses in Counter(names).items():
        if not name or uses > 1:
            problem = f"{shown(name)} {uses} times" if name else "a column without a name"
            raise TaskError(f"{where}: expected a name for each column, each once, got {problem}")
    return names


def _entries_of_table(path: Path, suffix: str) -> Iterator[RowEntry]:
    with opened(path) as file:
        _check_is_no_pointer(file.read(len(_LFS)), path)
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError as error:
        raise TaskError(
            f"{path}: {suffix[1:]} files need pyarrow, which is not installed: pip install pyarrow"
        ) from error
    numbers = count(1)
    try:
        with pq.ParquetFile(path) if suffix == ".parquet" else pa.memory_map(str(path)) as file:
            of_file = file.iter_batches(_BATCH_ROWS) if suffix == ".parquet" else pa.ipc.open_stream(file)
            for batch in of_file:
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    for content in batch.slice(start, _BATCH_ROWS).to_pylist():
                        yield RowEntry(content, f"{path} row {next(numbers)}")
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise DatasetError(f"{path}: expected a {suffix[1:]} file, got something else: {reason}") from error
