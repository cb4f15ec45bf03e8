"""Writes records into a Parquet file, or a folder of several, by row groups, so that a million need no more memory than
ten thousand.

Owns the size of a row group and the names of a folder's files. A file or folder appears whole or not at all. Needs
pyarrow, as columns does.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ..batch.place import BatchPlace
from .batch import rows_of_batch
from .columns import record_of, schema_of, table_of
from .rows import RecordSource, records_of

ROWS_MAX = 20_000
# The most characters in a row group: a few long answers must not need the memory of many short ones.
_CHARS_MAX = 32 << 20
_COMPRESSION = "zstd"
_FRESH = ".millstream-new"
# Names with a sixth digit would no longer sort in the order of the rows.
_PARTS_MAX = 100_000


class ParquetTable(Struct, frozen=True):
    """What was written. `parts`: how many files the folder `target` has; None: `target` is one file."""

    source: RecordSource
    target: Path
    statuses: Counter[str]
    parts: int | None

    @property
    def rows(self) -> int:
        return self.statuses.total()


def export(source: RecordSource, target: Path, rows_per_file: int | None = None) -> ParquetTable:
    """Writes one run's table, as a file or as a folder of files of so many rows, and returns how many rows it has of
    each status. Raises UsageError if `target` exists."""
    check_is_free(target)
    _remove_what_kills_left(target)
    fresh = target.with_name(f".{target.name}.{os.getpid()}{_FRESH}")
    statuses: Counter[str] = Counter()
    try:
        try:
            fresh.mkdir()
            with _locked(fresh, fcntl.LOCK_EX) as folder:
                parts = _write_parts(fresh, source, statuses, rows_per_file)
                os.fsync(folder)
                _name(fresh if rows_per_file is not None else parts[0], target)
        finally:
            _remove(fresh)
    except OSError as error:
        place = Path(error.filename or target)
        if place != target and fresh not in (place, place.parent):
            raise UsageError(f"{error.filename}: expected a readable file, got: {error.strerror}") from error
        raise LocalFault(
            f"{target} can't be written ({error.strerror or error}): make room, or choose another --out"
        ) from error
    return ParquetTable(source, target, statuses, None if rows_per_file is None else len(parts))


def check_is_free(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise _taken(target)


def _taken(target: Path) -> UsageError:
    return UsageError(f"{target} is there already: remove it, or choose another with --out")


def _name(fresh: Path, target: Path) -> None:
    """Renames what is finished to `target`. Raises UsageError if another export has created that meanwhile."""
    try:
        os.link(fresh, target)
    except FileExistsError:
        raise _taken(target) from None
    except OSError:  # a folder, which replaces only an empty one; or a file system without links
        check_is_free(target)
        fresh.replace(target)


def _remove(fresh: Path) -> None:
    if fresh.is_dir():
        shutil.rmtree(fresh)
    else:
        fresh.unlink(missing_ok=True)


def _remove_what_kills_left(target: Path) -> None:
    """Removes unfinished files and folders of killed exports. One that is still being written is locked, and stays."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{_FRESH}"):
        with contextlib.suppress(OSError), _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _remove(left)


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


def _write_parts(fresh: Path, source: RecordSource, statuses: Counter[str], rows_per_file: int | None) -> list[Path]:
    """Writes the folder's files, one of all rows without a limit, and returns them."""
    parts: list[Path] = []
    for rows in _cut(_rows_of(source), rows_per_file):
        if len(parts) == _PARTS_MAX:
            raise UsageError(
                f"--rows-per-file: expected enough for {source.place} to need at most {_PARTS_MAX:,} files, got "
                f"{rows_per_file:,}"
            )
        parts.append(fresh / f"part-{len(parts):05}")
        with parts[-1].open("xb") as file:
            _write(file, source, rows, statuses)
    if rows_per_file is not None:
        # Only now, since a pattern like `tables/*/*.parquet` finds hidden folders too.
        parts = [part.rename(part.with_suffix(".parquet")) for part in parts]
    return parts


def _cut(rows: Iterator[dict[str, Any]], rows_per_file: int | None) -> Iterator[Iterator[dict[str, Any]]]:
    """Yields the rows of each file, to be taken before the next one's. The first file has none if there are none."""
    yield islice(rows, rows_per_file)
    for row in rows:
        yield islice(chain((row,), rows), rows_per_file)


def _write(file: BinaryIO, source: RecordSource, rows: Iterator[dict[str, Any]], statuses: Counter[str]) -> None:
    """Writes one file through to the disk. All files of a folder have the same schema."""
    schema = schema_of(source.benchmark, source.metadata)
    with pq.ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for group in _groups(rows, statuses):
            try:
                table = table_of(group, schema)
            except (pa.ArrowException, OverflowError) as error:
                raise UsageError(f"{source.place}: a record holds what no column can ({error})") from error
            writer.write_table(table, row_group_size=len(group))
    file.flush()
    os.fsync(file.fileno())


def _rows_of(source: RecordSource) -> Iterator[dict[str, Any]]:
    if source.benchmark == "batch":
        return rows_of_batch(BatchPlace(source.place, source.errors))
    return records_of(source, msgspec.json.Decoder(record_of(source.benchmark)).decode)


def _groups(rows: Iterator[dict[str, Any]], statuses: Counter[str]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    chars = 0
    for row in rows:
        status = row.get("status")
        statuses[status if isinstance(status, str) else "ok"] += 1
        group.append(row)
        chars += len(row.get("text") or "")
        if len(group) >= ROWS_MAX or chars >= _CHARS_MAX:
            yield group
            group, chars = [], 0
    if group:
        yield group
