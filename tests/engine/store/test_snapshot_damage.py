"""A snapshot that is cut, damaged or forged: told in one line, within bounds, and never believed."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from snapshots import M, S, Site, journal, outcomes, packed

from millstream.engine.call import WEB, Call, Failure
from millstream.engine.endpoint import Response
from millstream.engine.store.cache import Cache
from millstream.engine.store.entries import StoredAnswer, StoredFailure, encode
from millstream.engine.store.lmdb_store import ANSWERS, FAILURES
from millstream.engine.store.snapshot import (
    END,
    FOOT,
    FOOT_BYTES,
    MAGIC,
    ROW,
    Snapshot,
    SnapshotFault,
    SnapshotRow,
    content_hash,
    crc_of,
    digest_part,
    foot_bytes,
    row_bytes,
)
from millstream.engine.store.snapshot_writer import take


def small(tmp_path: Path) -> tuple[bytes, list[Call]]:
    calls = [Call(M, "a"), Call(S, "query"), Call(WEB, "http://h.example/long"), Call(WEB, "http://h.example/gone")]
    found = outcomes(tmp_path / "cache", Site(), calls)
    packed(tmp_path / "cache", journal(tmp_path / "run", found), tmp_path / "file")
    return (tmp_path / "file").read_bytes(), calls


def read_all(path: Path) -> None:
    snapshot = Snapshot(path)
    try:
        for row in snapshot.rows():
            snapshot.record(row)
    finally:
        snapshot.close()


def test_a_snapshot_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole, _ = small(tmp_path)
    for size in [*range(0, len(whole), 37), *range(len(whole) - 200, len(whole))]:
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(SnapshotFault, match=r"is no snapshot|is damaged"):
            Snapshot(tmp_path / "cut")
    (tmp_path / "cut").write_bytes(whole + b"x")
    with pytest.raises(SnapshotFault):
        Snapshot(tmp_path / "cut")


def test_a_bit_that_is_another_is_told_wherever_it_is(tmp_path: Path) -> None:
    whole, _ = small(tmp_path)
    chance = random.Random(5)
    for _ in range(1500):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        (tmp_path / "flipped").write_bytes(flipped)
        with pytest.raises(SnapshotFault):
            read_all(tmp_path / "flipped")


def test_damage_ends_a_repeated_run_and_an_import_stores_nothing(tmp_path: Path) -> None:
    whole, calls = small(tmp_path)
    (tmp_path / "file").write_bytes(whole.replace(b"answer to a", b"answer to b"))
    snapshot = Snapshot(tmp_path / "file")
    with pytest.raises(SnapshotFault, match="is not what was written"):
        outcomes(tmp_path / "other", Site(), calls, mode="strict", snapshot=snapshot)
    cache = Cache(tmp_path / "third")
    with pytest.raises(SnapshotFault):
        take(snapshot, cache)
    assert cache.statistics().entries == 0
    cache.close()
    snapshot.close()


@pytest.mark.parametrize("name", ["nothing", "text", "a folder", "a pipe"])
def test_what_is_no_snapshot_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    if name == "a folder":
        path.mkdir()
    elif name == "a pipe":
        os.mkfifo(path)
    elif name == "text":
        path.write_text("hello " * 100)
    with pytest.raises(SnapshotFault) as refused:
        Snapshot(path)
    assert "\n" not in str(refused.value)


# What an enemy writes: whole by its checksums, and wrong


def forged(
    path: Path, rows: list[tuple[SnapshotRow, bytes]], *, count: int | None = None, index_at: int | None = None
) -> Path:
    """A file whose checksums are all right."""
    body = MAGIC + b"".join(record for _, record in rows)
    index = b"".join(row_bytes(row) for row, _ in rows)
    digest = hashlib.sha256(b"".join(digest_part(row) for row, _ in rows)).digest()
    count = len(rows) if count is None else count
    path.write_bytes(body + index + foot_bytes(index_at or len(body), count, digest, zlib.crc32(index)))
    return path


def body_row(record: bytes, **changes: Any) -> SnapshotRow:
    key = hashlib.sha256(record).digest()
    row = SnapshotRow(3, key, len(MAGIC), len(record), crc_of(key, record), key)
    return row._replace(**changes)


def test_a_forged_file_that_is_sound_is_read(tmp_path: Path) -> None:
    read_all(forged(tmp_path / "f", [(body_row(b"bytes"), b"bytes")]))


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 1 << 60},
        {"length": (1 << 64) - 1},
        {"offset": 0},
        {"offset": 1 << 63},
        {"kind": 0},
        {"kind": 9},
        {"key": b"k" * 32},
        {"key": b"k" * 64},
        {"content": b"c" * 32},
        {"crc": 0},
    ],
    ids=str,
)
def test_no_forged_row_is_believed(tmp_path: Path, changes: dict[str, int | bytes]) -> None:
    path = forged(tmp_path / "f", [(body_row(b"bytes", **changes), b"bytes")])
    tracemalloc.start()
    with pytest.raises(SnapshotFault):
        read_all(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("count", [0, 2, 1 << 40, (1 << 64) - 1])
def test_no_forged_number_of_rows_is_believed(tmp_path: Path, count: int) -> None:
    path = forged(tmp_path / "f", [(body_row(b"bytes"), b"bytes")], count=count)
    with pytest.raises(SnapshotFault):
        Snapshot(path)


@pytest.mark.parametrize("index_at", [1, len(MAGIC), 1 << 40, (1 << 64) - ROW.size])
def test_no_forged_place_of_the_index_is_believed(tmp_path: Path, index_at: int) -> None:
    path = forged(tmp_path / "f", [(body_row(b"bytes"), b"bytes")], index_at=index_at)
    with pytest.raises(SnapshotFault):
        Snapshot(path)


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    for record in (b"", b"\x93\x01", b"\x80", b"\xc1" * 50, b"\x91" * 5000):
        key = b"k" * 32
        row = SnapshotRow(1, key, len(MAGIC), len(record), crc_of(key, record), hashlib.sha256(record).digest())
        with pytest.raises(SnapshotFault):
            read_all(forged(tmp_path / "f", [(row, record)]))


def told_row(entry: StoredAnswer) -> tuple[SnapshotRow, bytes]:
    """With the time of a sound one in its content hash, which knows none."""
    record, key = encode(entry), b"k" * 32
    content = content_hash(1, encode(replace(entry, received_at=1.0)))
    assert content is not None
    return SnapshotRow(1, key, len(MAGIC), len(record), crc_of(key, record), content), record


PAGE = StoredAnswer("h.example", b"{}", 0, 0, 1.0, Response(200, b"<p>"), url="http://h.example/")
TO_COME = time.time() + 10 * 86_400
NO_TIMES = [1e300, float("inf"), float("nan"), -1e18, 4e11]


@pytest.mark.parametrize(
    "entry",
    [
        *(replace(PAGE, received_at=at) for at in NO_TIMES),
        replace(PAGE, received_at=TO_COME),
        replace(PAGE, url="http://h.example/\r\nWARC-Type: warcinfo"),
    ],
    ids=lambda entry: f"{'to come' if entry.received_at == TO_COME else entry.received_at} {entry.url!r}",
)
def test_no_import_takes_a_time_or_an_address_that_can_not_be(tmp_path: Path, entry: StoredAnswer) -> None:
    cache = Cache(tmp_path / "cache")
    sound = Snapshot(forged(tmp_path / "sound", [told_row(PAGE)]))
    hostile = Snapshot(forged(tmp_path / "hostile", [told_row(entry)]))
    with pytest.raises(SnapshotFault) as refused:
        take(hostile, cache)
    assert "\n" not in str(refused.value)
    assert cache.statistics().entries == 0
    assert take(sound, cache).added == 1
    for snapshot in (sound, hostile):
        snapshot.close()
    cache.close()


@pytest.mark.parametrize("at", NO_TIMES)
def test_an_entry_of_no_time_that_lies_in_a_cache_is_none_and_goes_with_the_old(tmp_path: Path, at: float) -> None:
    cache = Cache(tmp_path / "cache")
    cache.add([(ANSWERS, b"k" * 32, encode(replace(PAGE, received_at=at)))])
    failed = StoredFailure("h.example", at, Failure("rejected", "404"), url="http://h.example/")
    cache.add([(FAILURES, b"k" * 32, encode(failed))])
    assert cache.get(b"k" * 32) is None and cache.failure(b"k" * 32) is None and not list(cache.entries())
    pruned = cache.prune(older_than_s=1e9)
    assert (pruned.answers, pruned.failures) == (1, 1)
    cache.close()


def test_a_row_twice_or_out_of_order_is_refused(tmp_path: Path) -> None:
    one, other = sorted((body_row(b"one"), body_row(b"two")), key=lambda row: row.key)
    records = {row.key: text for text in (b"one", b"two") for row in (body_row(text),)}
    second = len(MAGIC) + 3
    for rows in ([other, one], [one, one]):
        placed = [rows[0], rows[1]._replace(offset=second)]
        with pytest.raises(SnapshotFault):
            Snapshot(forged(tmp_path / "f", [(row, records[row.key]) for row in placed]))


def test_the_form_of_the_file_is_what_it_was() -> None:
    """Snapshots outlive versions: whoever changes these changes the magic too."""
    assert (ROW.size, FOOT.size, FOOT_BYTES, len(MAGIC), END) == (118, 52, 64, 24, b"whole\n\0\0")
    assert struct.calcsize(">I") == 4
