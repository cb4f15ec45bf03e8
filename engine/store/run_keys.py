"""The cache keys of all calls that a run's journals name, each once and in order, however many there are.

Kept on disk while they are sorted, in a temporary folder. What they lead to is unknown here.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ..fault import DamagedJournal, LocalFault
from ..runs.journal import is_intact, read_lines
from ..runs.run_folder import FAILURES, RECORDS
from .entries import KEY_BYTES
from .lmdb_store import reason_of


class _LineKeys(Struct):
    """The cache keys in a journal line: `key` of one call, or `keys` of a turn's calls."""

    key: str | None = None
    keys: tuple[str, ...] = ()


def keys_of(folder: Path) -> Iterator[tuple[bytes, bool]]:
    """Yields the cache keys of all records, then of all final failures, duplicates included, each with whether the call
    certainly has an answer. Raises DamagedJournal at the first bad line."""
    decode = msgspec.json.Decoder(_LineKeys).decode
    for name in (RECORDS, FAILURES):
        path = folder / name
        for number, line in enumerate(read_lines(path), 1):
            if not is_intact(line, must_be_sealed=False):
                raise DamagedJournal(f"{path} line {number} is damaged: resume with --set-aside-damaged")
            try:
                named = decode(line)
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise DamagedJournal(f"{path} line {number} is no record ({error}): verify {folder}") from error
            for key in (named.key or "", *named.keys):
                if (key_bytes := _key(key)) is not None:
                    yield key_bytes, name == RECORDS


def _key(text: str) -> bytes | None:
    """Returns a cache key's bytes; None for a call that was never sent, which has none."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None


class SortedKeys:
    """A sorted set of keys on disk, each with a mark. Use as a context manager; leaving it deletes the files."""

    def __init__(self, beside: Path) -> None:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix=".millstream-", dir=beside)
        except OSError as error:
            raise LocalFault(f"{beside} can't be written ({error.strerror}): choose another folder") from error
        try:
            self._table = sqlite3.connect(Path(self._folder.name) / "keys", isolation_level=None)
        except sqlite3.Error as error:
            raise self._fault(error) from error
        self._do("pragma journal_mode = off")  # nobody reads it after a kill
        self._do("pragma cache_size = -32768")  # in KiB
        self._do("create table keys (key blob primary key, mark blob) without rowid")
        self._do("begin")

    def __enter__(self) -> SortedKeys:
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()
        self._folder.cleanup()

    def add(self, key: bytes, mark: bytes = b"") -> None:
        """Adds a key with a mark; a key that is added again keeps its first mark."""
        self._do("insert or ignore into keys values (?, ?)", key, mark)

    def begin_with(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yields the keys that begin with `prefix`, without it and sorted, with their marks; perhaps not those added
        meanwhile."""
        size = len(prefix)
        found = "select substr(key, ?), mark from keys where key >= ? and substr(key, 1, ?) = ? order by key"
        yield from self._do(found, size + 1, prefix, size, prefix)

    def _do(self, statement: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._table.execute(statement, values)
        except sqlite3.Error as error:
            raise self._fault(error) from error

    def _fault(self, error: sqlite3.Error) -> LocalFault:
        folder = Path(self._folder.name)
        return LocalFault(f"{folder} can't be written ({reason_of(error, folder)}): free disk space first")
