"""The cache keys of all calls that a run's journals name, each once and in order, however many there are.

Kept on disk while they are sorted, in a temporary folder. What they lead to is unknown here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import lmdb
import msgspec
from msgspec import Struct

from ..fault import DamagedJournal, LocalFault
from ..runs.journal import is_intact, read_lines
from ..runs.run_folder import FAILURES, RECORDS
from .entries import KEY_BYTES
from .lmdb_store import allocate_locks, reason_of

_BATCH = 4096
_MAP_SIZE = 1 << 36


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
            allocate_locks(Path(self._folder.name) / "lock.mdb")
            self._environment = lmdb.open(self._folder.name, map_size=_MAP_SIZE, sync=False)
        except (OSError, lmdb.Error) as error:
            fault = self._unwritable(error)
            self._folder.cleanup()
            raise fault from error
        self._waiting: list[tuple[bytes, bytes]] = []

    def __enter__(self) -> SortedKeys:
        return self

    def __exit__(self, *_: object) -> None:
        self._environment.close()
        self._folder.cleanup()

    def add(self, key: bytes, mark: bytes = b"") -> None:
        """Adds a key with a mark; a key that is added again keeps its first mark."""
        self._waiting.append((key, mark))
        if len(self._waiting) >= _BATCH:
            self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            with self._environment.begin(write=True) as transaction:
                for key, mark in waiting:
                    transaction.put(key, mark, overwrite=False)
        except lmdb.Error as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: Exception) -> LocalFault:
        folder = Path(self._folder.name)
        return LocalFault(f"{folder} can't be written ({reason_of(error, folder)}): free disk space first")

    def begin_with(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yields the keys that begin with `prefix`, without it and sorted, with their marks; perhaps not those added
        meanwhile."""
        self._write()
        with self._environment.begin() as transaction, transaction.cursor() as cursor:
            is_there = cursor.set_range(prefix)
            while is_there and (key := bytes(cursor.key())).startswith(prefix):
                yield key[len(prefix) :], bytes(cursor.value())
                is_there = cursor.next()
