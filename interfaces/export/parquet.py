"""Writes records into a Parquet file by row groups, so that a million need no more memory than ten thousand.

Owns the size of a row group. A file appears whole or not at all. Needs pyarrow, as columns does.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.folder_file import open_to_read
from ..batch.place import BatchPlace
from .batch import rows_of_batch
from .columns import record_of, schema_of, table_of
from .rows import RecordSource, records_of

ROWS_MAX = 20_000
# The most characters in a row group: a few long answers must not need the memory of many short ones.
_CHARS_MAX = 32 << 20
_COMPRESSION = "zstd"
_FRESH = ".millstream-new"


class ParquetFile(Struct, frozen=True):
    source: RecordSource
    target: Path
    statuses: Counter[str]

    @property
    def rows(self) -> int:
        return self.statuses.total()


def export(source: RecordSource, target: Path) -> ParquetFile:
    """Writes one run's table, and returns how many rows it has of each status. Raises UsageError if the file exists."""
    check_is_free(target)
    _remove_what_kills_left(target)
    fresh = target.with_name(f".{target.name}.{os.getpid()}{_FRESH}")
    statuses: Counter[str] = Counter()
    try:
        try:
            with fresh.open("xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                _write(file, source, statuses)
                file.flush()
                os.fsync(file.fileno())
                _name(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        if error.filename and str(error.filename) not in (str(fresh), str(target)):
            raise UsageError(f"{error.filename}: expected a readable file, got: {error.strerror}") from error
        raise LocalFault(
            f"{target} can't be written ({error.strerror or error}): make room, or choose another --out"
        ) from error
    return ParquetFile(source, target, statuses)


def check_is_free(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise _taken(target)


def _taken(target: Path) -> UsageError:
    return UsageError(f"{target} is there already: remove it, or choose another with --out")


def _name(fresh: Path, target: Path) -> None:
    """Renames the finished file to `target`. Raises UsageError if another export has created that meanwhile."""
    try:
        os.link(fresh, target)
    except FileExistsError:
        raise _taken(target) from None
    except OSError:  # a file system without links
        check_is_free(target)
        fresh.replace(target)


def _remove_what_kills_left(target: Path) -> None:
    """Removes unfinished files of killed exports. One that is still being written is locked, and stays."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{_FRESH}"):
        with contextlib.suppress(OSError, LocalFault), open_to_read(left) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _write(file: BinaryIO, source: RecordSource, statuses: Counter[str]) -> None:
    schema = schema_of(source.benchmark, source.metadata)
    with pq.ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for rows in _groups(_rows_of(source), statuses):
            try:
                table = table_of(rows, schema)
            except (pa.ArrowException, OverflowError) as error:
                raise UsageError(f"{source.place}: a record holds what no column can ({error})") from error
            writer.write_table(table, row_group_size=len(rows))


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
