"""Writes a snapshot from a cache, and imports one into a cache: record by record, in constant memory.

Owns the order of records and what belongs to a run: its answers and final failures, the bodies they name, and what was
derived from those. The form of the file: snapshot.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from msgspec import Struct

from ..fault import LocalFault
from .cache import Cache
from .entries import Stored, StoredAnswer, entry_of, failed_of, later_of
from .lmdb_store import ANSWERS, BODIES, FAILURES
from .lmdb_store import DERIVED as TEXTS
from .run_keys import SortedKeys
from .snapshot import (
    ANSWER,
    BODY,
    DERIVED,
    FAILURE,
    KEY_MAX,
    MAGIC,
    Snapshot,
    SnapshotFault,
    SnapshotRow,
    content_hash,
    crc_of,
    digest_part,
    foot_bytes,
    row_bytes,
)

_BATCH, _BATCH_BYTES = 1000, 4 << 20
_CERTAIN = b"certain"
_CLOCKS_DIFFER_S = 86_400.0
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DATABASES = {ANSWER: ANSWERS, FAILURE: FAILURES, BODY: BODIES, DERIVED: TEXTS}


class SnapshotCounts(Struct):
    """What a snapshot holds, as counts. `missing`: calls that had an answer which the cache no longer holds; `newer`:
    responses received only after the run had ended."""

    digest: str = ""
    answers: int = 0
    failures: int = 0
    bodies: int = 0
    texts: int = 0
    bytes: int = 0
    missing: int = 0
    newer: int = 0


class SnapshotImport(Struct):
    """The result of an import: the snapshot's number of records, and how many of them were added to the cache."""

    digest: str
    records: int = 0
    added: int = 0


def pack(cache: Cache, keys: Iterable[tuple[bytes, bool]], path: Path, *, until: float | None = None) -> SnapshotCounts:
    """Writes what the cache holds under these keys to a snapshot, and returns its counts. Each key has with it whether
    its call certainly had an answer; `until`: when the run ended, in seconds since 1970 (None: nothing counts as
    newer). Replaces the file at `path` only by a whole one."""
    draft = path.with_name(f"{path.name}.new")
    packed = SnapshotCounts()
    try:
        with SortedKeys(path.parent) as wanted, draft.open("wb") as file, TemporaryFile(dir=path.parent) as rows:
            for key, is_certain in keys:
                wanted.add(bytes((ANSWER,)) + key, _CERTAIN if is_certain else b"")
            writer = _Writer(file, rows)
            _write_all(cache, wanted, writer, packed, until)
            packed.digest, packed.bytes = writer.end()
        draft.replace(path)
    except OSError as error:
        raise LocalFault(f"{path} can't be written ({error.strerror}): free disk space, or choose another") from error
    finally:
        draft.unlink(missing_ok=True)
    return packed


def _write_all(cache: Cache, wanted: SortedKeys, writer: _Writer, packed: SnapshotCounts, until: float | None) -> None:
    # Kinds follow each other in the index's order: what one stage finds belongs to a later one.
    for key, mark in wanted.begin_with(bytes((ANSWER,))):
        if not _write_response(cache, key, wanted, writer, packed, until):
            packed.missing += mark == _CERTAIN
    for key, _ in wanted.begin_with(bytes((FAILURE,))):
        packed.failures += writer.write(FAILURE, key, cache.value(FAILURES, key))
    for key, _ in wanted.begin_with(bytes((BODY,))):
        packed.bodies += writer.write(BODY, key, cache.value(BODIES, key))
    for key, _ in wanted.begin_with(bytes((DERIVED,))):
        packed.texts += writer.write(DERIVED, key, cache.derived(key))


def _write_response(
    cache: Cache, key: bytes, wanted: SortedKeys, writer: _Writer, packed: SnapshotCounts, until: float | None
) -> bool:
    """Writes the later of a call's answer and failure, and notes its bodies for later. Returns whether there is any."""
    record, failed_record = cache.value(ANSWERS, key), cache.value(FAILURES, key)
    later = later_of(
        None if record is None else _whole(cache, entry_of(record)),
        None if failed_record is None else _whole(cache, failed_of(failed_record)),
    )
    if isinstance(later, StoredAnswer):
        packed.answers += writer.write(ANSWER, key, record)
    elif later is not None:
        wanted.add(bytes((FAILURE,)) + key)
    if later is None:
        return False
    packed.newer += until is not None and later.received_at > until
    if later.body_hash:
        wanted.add(bytes((BODY,)) + later.body_hash)
    if later.url and later.response is not None:
        source = later.body_hash or hashlib.sha256(later.response.body).digest()
        for text_key, _ in cache.derived_from(source):
            if len(text_key) <= KEY_MAX:
                wanted.add(bytes((DERIVED,)) + text_key)
    return True


def _whole(cache: Cache, entry: Stored | None) -> Stored | None:
    """Returns the entry; None if its body is lost."""
    return None if entry is not None and entry.body_hash and cache.value(BODIES, entry.body_hash) is None else entry


class _Writer:
    """The writer of a snapshot's file. It keeps the index in a file of its own until the end."""

    def __init__(self, file: IO[bytes], rows: IO[bytes]) -> None:
        self._file = file
        self._rows = rows
        self._offset = file.write(MAGIC)
        self._count = 0
        self._digest = hashlib.sha256()
        self._crc = 0

    def write(self, kind: int, key: bytes, record: bytes | None) -> bool:
        """Writes a record, and returns whether there is one: it may have been dropped meanwhile."""
        if record is None:
            return False
        content = content_hash(kind, record)
        assert content is not None, "what the cache gave can be read"
        row = SnapshotRow(kind, key, self._offset, len(record), crc_of(key, record), content)
        packed = row_bytes(row)
        self._file.write(record)
        self._rows.write(packed)
        self._offset += len(record)
        self._count += 1
        self._digest.update(digest_part(row))
        self._crc = zlib.crc32(packed, self._crc)
        return True

    def end(self) -> tuple[str, int]:
        """Writes index and footer, and returns the digest in hex and the size of the whole file in bytes."""
        self._rows.seek(0)
        shutil.copyfileobj(self._rows, self._file)
        self._file.write(foot_bytes(self._offset, self._count, self._digest.digest(), self._crc))
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest(), self._file.tell()


def take(snapshot: Snapshot, cache: Cache) -> SnapshotImport:
    """Adds a snapshot's records to the cache, where it lacks them; returns how many. Checks all before it adds one."""
    latest = time.time() + _CLOCKS_DIFFER_S
    for row in snapshot.rows():
        _check_record(snapshot, row, latest)
    taken = SnapshotImport(snapshot.digest)
    batch: list[tuple[bytes, bytes, bytes]] = []
    size = 0
    for row in snapshot.rows():
        batch.append((_DATABASES[row.kind], row.key, snapshot.record(row)))
        size += row.length
        if size >= _BATCH_BYTES or len(batch) == _BATCH:
            taken.added += cache.add(batch)
            batch, size = [], 0
        taken.records += 1
    taken.added += cache.add(batch)
    return taken


def _check_record(snapshot: Snapshot, row: SnapshotRow, latest: float) -> None:
    """Raises SnapshotFault for a record that no run can have stored, even if it is undamaged: one received after
    `latest` (seconds since 1970), or with control characters in its address."""
    record = snapshot.record(row)
    entry = entry_of(record) if row.kind == ANSWER else failed_of(record) if row.kind == FAILURE else None
    if entry is None:
        return
    if entry.received_at > latest:
        raise SnapshotFault(
            f"snapshot {snapshot.path}: record {row.key.hex()[:12]} came in the future: set this machine's clock, "
            f"or take a snapshot from somebody you trust"
        )
    if _CONTROL.search(entry.url):
        raise SnapshotFault(
            f"snapshot {snapshot.path}: the address of record {row.key.hex()[:12]} holds control characters: "
            f"take a snapshot from somebody you trust"
        )
