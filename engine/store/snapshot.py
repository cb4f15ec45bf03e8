"""A file that holds every response of a run and is read in place: by key, in any order, with bounded memory.

Records first, then an index sorted by kind and key, then a footer with the digest over all contents. Nothing is used
before it was checked: lengths against the file, the index against the digest, each record against the index. Writing
one: snapshot_writer.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..endpoint import Response
from ..fault import LocalFault
from ..folder_file import NotRegular, open_regular
from .entries import StoredAnswer, StoredFailure, entry_of, failed_of, with_body

MAGIC = b"millstream snapshot 1\n\0\0"
END = b"whole\n\0\0"
ANSWER, FAILURE, BODY, DERIVED = 1, 2, 3, 4
KEY_MAX = 64
# A body is at most as long as the transport accepts, and a record is hardly longer.
RECORD_MAX = 32 << 20
# Kind, length of the key, key, offset, length, crc of key and record, hash of the content.
ROW = struct.Struct(">BB64sQQI32s")
# Where the index begins, how many rows it has, the digest, the crc of the index and of these.
FOOT = struct.Struct(">QQ32sI")
_FOOT_CRC = struct.Struct(">I")
FOOT_BYTES = FOOT.size + _FOOT_CRC.size + len(END)
_ROWS_READ = 4096
_pack = msgspec.msgpack.Encoder().encode


class SnapshotFault(LocalFault):
    """Raised for a file that is no snapshot, or no whole one."""


class DamagedSnapshot(SnapshotFault):
    """Raised for a snapshot that is damaged."""


class SnapshotRow(NamedTuple):
    """One row of the index: where a record lies in the file, in bytes, and the checksum and hash that it must have."""

    kind: int
    key: bytes
    offset: int
    length: int
    crc: int
    content: bytes


def content_hash(kind: int, record: bytes) -> bytes | None:
    """Returns the SHA-256 of a record without its times, of which the digest is made; None if it can't be read."""
    if kind in (BODY, DERIVED):
        return hashlib.sha256(record).digest()
    entry: StoredAnswer | StoredFailure | None = entry_of(record) if kind == ANSWER else failed_of(record)
    if entry is None:
        return None
    fields: list[object] = [entry.identity, entry.url, _response_fields(entry.response, entry.body_hash)]
    if isinstance(entry, StoredAnswer):
        fields += [entry.params, entry.prompt_mark, entry.sample]
    else:
        fields += [entry.failure.kind, entry.failure.detail, entry.failure.status]
    return hashlib.sha256(_pack(fields)).digest()


def _response_fields(response: Response | None, body_hash: bytes) -> list[object] | None:
    if response is None:
        return None
    body = body_hash or hashlib.sha256(response.body).digest()
    return [response.status, response.stream, response.is_cut, sorted(response.headers.items()), body]


def crc_of(key: bytes, record: bytes) -> int:
    return zlib.crc32(record, zlib.crc32(key))


def row_bytes(row: SnapshotRow) -> bytes:
    return ROW.pack(row.kind, len(row.key), row.key, row.offset, row.length, row.crc, row.content)


def digest_part(row: SnapshotRow) -> bytes:
    return bytes((row.kind, len(row.key))) + row.key + row.content


def foot_bytes(index_at: int, count: int, digest: bytes, crc: int) -> bytes:
    foot = FOOT.pack(index_at, count, digest, crc)
    return foot + _FOOT_CRC.pack(zlib.crc32(foot)) + END


class Snapshot:
    """An open snapshot. Raises SnapshotFault for anything that is not as it was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = open_regular(path, through_links=True)
        except NotRegular as error:
            raise SnapshotFault(f"{path} is no snapshot but {error.kind}: name a file") from error
        except OSError as error:
            raise SnapshotFault(f"snapshot {path} can't be read ({error.strerror})") from error
        try:
            self._index_at, self.count, digest = self._foot()
            self.digest = digest.hex()
            self.counts = self._check_index(digest)
        except BaseException:
            os.close(self._fd)
            raise

    def __repr__(self) -> str:
        return f"<Snapshot {self.path} [{self.count:,} records, digest {self.digest[:12]}]>"

    def close(self) -> None:
        os.close(self._fd)

    # As a cache gives it

    def get(self, key: bytes) -> StoredAnswer | None:
        record = self._record(ANSWER, key)
        return None if record is None else with_body(entry_of(record), partial(self._record, BODY))

    def failure(self, key: bytes) -> StoredFailure | None:
        record = self._record(FAILURE, key)
        return None if record is None else with_body(failed_of(record), partial(self._record, BODY))

    def derived(self, key: bytes) -> bytes | None:
        return self._record(DERIVED, key)

    # The whole of it

    def rows(self) -> Iterator[SnapshotRow]:
        """Yields the rows of the index, by kind and key."""
        for data in self._pieces():
            yield from map(self._row, ROW.iter_unpack(data))

    def record(self, row: SnapshotRow) -> bytes:
        """Returns the bytes of one record. Raises DamagedSnapshot if they differ from what the index says."""
        record = self._read(row.offset, row.length)
        if crc_of(row.key, record) != row.crc or content_hash(row.kind, record) != row.content:
            raise self._damaged(f"record {row.key.hex()[:12]} is not what was written")
        if row.kind == BODY and row.content != row.key:
            raise self._damaged(f"body {row.key.hex()[:12]} stands under another's name")
        return record

    def _record(self, kind: int, key: bytes) -> bytes | None:
        wanted, low, high = (kind, key), 0, self.count
        while low < high:
            middle = (low + high) // 2
            row = self._row(ROW.unpack(self._read(self._index_at + middle * ROW.size, ROW.size)))
            row_key = (row.kind, row.key)
            if row_key == wanted:
                return self.record(row)
            low, high = (middle + 1, high) if row_key < wanted else (low, middle)
        return None

    def _pieces(self) -> Iterator[bytes]:
        """Yields the bytes of the index, _ROWS_READ rows at a time."""
        for begin in range(0, self.count, _ROWS_READ):
            many = min(_ROWS_READ, self.count - begin)
            yield self._read(self._index_at + begin * ROW.size, many * ROW.size)

    def _foot(self) -> tuple[int, int, bytes]:
        size = os.fstat(self._fd).st_size
        if self._read(0, min(size, len(MAGIC))) != MAGIC:
            raise SnapshotFault(f"{self.path} is no snapshot: `millstream cache export` writes them")
        foot_at = size - FOOT_BYTES
        foot = self._read(max(foot_at, 0), min(size, FOOT_BYTES))
        if foot_at < len(MAGIC) or not foot.endswith(END):
            raise self._damaged("it has been cut short")
        (crc,) = _FOOT_CRC.unpack_from(foot, FOOT.size)
        if zlib.crc32(foot[: FOOT.size]) != crc:
            raise self._damaged("its end is not what was written")
        index_at, count, digest, self._index_crc = FOOT.unpack_from(foot)
        if index_at < len(MAGIC) or index_at + count * ROW.size != foot_at:
            raise self._damaged("its index does not fit into it")
        return index_at, count, digest

    def _check_index(self, digest: bytes) -> dict[int, int]:
        """Returns the number of records of each kind. Records must lie one behind the other in the index's order, so
        that none is hidden and none too long."""
        counts = dict.fromkeys((ANSWER, FAILURE, BODY, DERIVED), 0)
        end, before, hashed, crc = len(MAGIC), (0, b""), hashlib.sha256(), 0
        for data in self._pieces():
            crc = zlib.crc32(data, crc)
        for row in self.rows():
            is_sound = row.kind in counts and (row.kind, row.key) > before and row.offset == end
            if not is_sound or row.length > min(RECORD_MAX, self._index_at - end):
                raise self._damaged("its index is not what was written")
            end, before = end + row.length, (row.kind, row.key)
            counts[row.kind] += 1
            hashed.update(digest_part(row))
        if end != self._index_at or crc != self._index_crc or hashed.digest() != digest:
            raise self._damaged("its index is not what was written")
        return counts

    def _row(self, fields: tuple[int, int, bytes, int, int, int, bytes]) -> SnapshotRow:
        kind, key_length, key, offset, length, crc, content = fields
        if key_length > KEY_MAX:
            raise self._damaged("its index is not what was written")
        return SnapshotRow(kind, key[:key_length], offset, length, crc, content)

    def _read(self, offset: int, length: int) -> bytes:
        try:
            data = os.pread(self._fd, length, offset)
        except (OSError, OverflowError) as error:
            raise SnapshotFault(f"snapshot {self.path} can't be read ({error})") from error
        if len(data) != length:
            raise self._damaged("it has been cut short")
        return data

    def _damaged(self, what: str) -> DamagedSnapshot:
        return DamagedSnapshot(f"snapshot {self.path} is damaged: {what}; take another copy, or export it again")


def digest_of(path: Path) -> str:
    """Returns the digest of a snapshot in hex, after checking its index."""
    snapshot = Snapshot(path)
    snapshot.close()
    return snapshot.digest
