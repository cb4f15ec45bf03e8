"""A run's responses in one file: the same outcomes from it as from the wire, one digest for the same contents, and
nothing believed that was not written so."""

from __future__ import annotations

import hashlib
import random
import struct
import tracemalloc
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from answers import filled as filled_cache
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.cache import Cache, Mode, derived_key
from millstream.engine.call import WEB, Call, Outcome
from millstream.engine.endpoint import Fault, Response
from millstream.engine.entries import BODY_APART
from millstream.engine.fault import DamagedJournal, LocalFault
from millstream.engine.journal import sealed
from millstream.engine.packing import Packed, pack, take
from millstream.engine.recall import Ages
from millstream.engine.run_keys import keys_of
from millstream.engine.snapshot import (
    END,
    FOOT,
    FOOT_BYTES,
    MAGIC,
    ROW,
    Row,
    Snapshot,
    SnapshotFault,
    crc_of,
    digest_of,
    digest_part,
    foot_bytes,
    row_bytes,
)

M, S = "script/m", "search/s"
OWN = Ages(run_started=1.0)


class Site(ScriptedProvider):
    """Fails what says so, with a response where a host gave one, and answers at length what says so."""

    def __init__(self) -> None:
        super().__init__(self._fault_of)

    @staticmethod
    def _fault_of(prompt: str, at: float) -> Fault | None:
        return Fault("timeout", f"no whole page of {prompt}", "never") if "slow" in prompt else None

    async def send(self, request: object) -> Response:
        response = await super().send(request)  # type: ignore[arg-type]
        prompt = response.body.decode()
        body = response.body * (BODY_APART // 10) if "long" in prompt else response.body
        status = 404 if "gone" in prompt else 200
        return Response(status, body, latency_ms=random.random(), headers={"content-type": "text/html"})

    def decode(self, response: Response) -> object:  # type: ignore[override]
        if response.status == 404:
            return Fault("rejected", "404: there is no such page", "never", 404)
        return super().decode(response)


def outcomes(
    folder: Path,
    site: ScriptedProvider,
    calls: Iterable[Call],
    *,
    mode: Mode = "record",
    snapshot: Snapshot | None = None,
) -> list[Outcome]:
    async def main() -> list[Outcome]:
        served = {WEB: site, S: site, M: site}
        async with engine_over(served, folder, mode=mode, ages=OWN, snapshot=snapshot) as bench:
            return [await bench.scheduler.ask(call) for call in calls]

    return run_virtually(main())


def told(found: Iterable[Outcome]) -> list[object]:
    """All of an outcome that a record is made from, but how it came."""
    return [(one.call, one.status, one.reply, one.failure, one.key) for one in found]


def journal(folder: Path, found: Sequence[Outcome]) -> Path:
    """A run's folder that names these calls: some one by one, some as a turn's."""
    folder.mkdir()
    rows: dict[str, list[bytes]] = {"records.jsonl": [], "failures.jsonl": []}
    for place, one in enumerate(found):
        line = {"id": str(place), "keys": [one.key, one.key]} if place % 2 else {"id": str(place), "key": one.key}
        name = "records.jsonl" if one.failure is None else "failures.jsonl"
        rows[name].append(sealed(orjson.dumps(line)))
    for name, lines in rows.items():
        (folder / name).write_bytes(b"".join(lines))
    return folder


def packed(cache_folder: Path, run: Path, path: Path, until: float | None = None) -> Packed:
    cache = Cache(cache_folder, read_only=True)
    try:
        return pack(cache, keys_of(run), path, until=until)
    finally:
        cache.close()


NAMES = st.sampled_from(["one", "two", "long", "long two", "gone", "gone long", "slow"])
CALLS = st.lists(
    st.one_of(
        st.builds(
            lambda name, trial: Call(M, name, trial=trial), st.sampled_from(["a", "b", "long"]), st.integers(0, 2)
        ),
        st.builds(lambda name: Call(S, name), st.sampled_from(["query", "long query", "slow query"])),
        st.builds(lambda name, host: Call(WEB, f"http://h{host}.example/{name}"), NAMES, st.integers(0, 1)),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(calls=CALLS, chance=st.randoms(use_true_random=False))
def test_a_run_repeated_from_its_snapshot_has_the_same_outcomes(
    calls: list[Call], chance: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("snapshot")
    first = outcomes(base / "cache", Site(), calls)
    run = journal(base / "run", first)
    written = packed(base / "cache", run, base / "file")
    cut_off = Site()

    snapshot = Snapshot(base / "file")
    assert told(outcomes(base / "other", cut_off, calls, mode="strict", snapshot=snapshot)) == told(first)

    cache = Cache(base / "third")
    taken = take(snapshot, cache)
    assert taken.added == taken.records == snapshot.count
    assert take(snapshot, cache).added == 0, "the second time there is nothing new"
    cache.close()
    snapshot.close()
    assert told(outcomes(base / "third", cut_off, calls, mode="strict")) == told(first)
    assert cut_off.arrivals == [], "nothing was sent"

    again = packed(base / "third", run, base / "again")
    assert again.digest == written.digest == taken.digest == digest_of(base / "file")
    assert (written.missing, again.missing) == (0, 0)

    # The same contents, asked for at another time and in another order.
    shuffled = list(calls)
    chance.shuffle(shuffled)
    later = journal(base / "later run", outcomes(base / "later", Site(), shuffled))
    assert packed(base / "later", later, base / "later file").digest == written.digest


def test_one_more_response_is_another_digest(tmp_path: Path) -> None:
    calls = [Call(WEB, f"http://h.example/{n}") for n in range(5)]
    found = outcomes(tmp_path / "cache", Site(), calls)
    digests = set()
    for count in range(1, 6):
        run = journal(tmp_path / f"run {count}", found[:count])
        digests.add(packed(tmp_path / "cache", run, tmp_path / f"file {count}").digest)
    assert len(digests) == 5


def test_what_was_made_of_a_page_goes_with_it(tmp_path: Path) -> None:
    page, long = Call(WEB, "http://h.example/one"), Call(WEB, "http://h.example/long")
    found = outcomes(tmp_path / "cache", Site(), [page, long])
    kept: dict[bytes, bytes] = {}
    cache = Cache(tmp_path / "cache")
    for one in found:
        entry = cache.get(bytes.fromhex(one.key))
        assert entry is not None
        source = hashlib.sha256(entry.response.body).digest()
        kept |= {
            derived_key(source, b"text 1"): b"first " + source,
            derived_key(source, b"text 2"): b"second " + source,
        }
    others = derived_key(b"o" * 32, b"text 1")
    assert cache.add([]) == 0

    async def main() -> None:
        for key, text in {**kept, others: b"another's"}.items():
            cache.keep(key, text)
        cache.close()

    run_virtually(main())
    assert packed(tmp_path / "cache", journal(tmp_path / "run", found), tmp_path / "file").texts == 4
    snapshot = Snapshot(tmp_path / "file")
    assert {key: snapshot.derived(key) for key in kept} == kept
    assert snapshot.derived(others) is None
    other = Cache(tmp_path / "other")
    take(snapshot, other)
    assert {key: other.derived(key) for key in kept} == kept
    other.close()
    snapshot.close()


def test_what_the_cache_lost_and_what_came_later_is_told(tmp_path: Path) -> None:
    calls = [Call(M, "a"), Call(WEB, "http://h.example/long"), Call(WEB, "http://h.example/gone")]
    found = outcomes(tmp_path / "cache", Site(), calls)
    failed = outcomes(tmp_path / "cache", ScriptedProvider(Site._fault_of), [Call(M, "slow")])
    run = journal(tmp_path / "run", [*found, *failed])
    whole = packed(tmp_path / "cache", run, tmp_path / "file", until=1.0)
    assert (whole.answers, whole.failures, whole.bodies, whole.missing, whole.newer) == (2, 1, 1, 0, 3)
    assert packed(tmp_path / "cache", run, tmp_path / "file", until=4e9).newer == 0
    Cache(tmp_path / "empty").close()
    lost = packed(tmp_path / "empty", run, tmp_path / "file")
    assert (lost.answers, lost.failures, lost.missing) == (0, 0, 2), "failures may never have had an answer"


def test_a_mode_of_replay_takes_the_snapshot_then_the_cache_then_the_wire(tmp_path: Path) -> None:
    first, second, third = (Call(WEB, f"http://h.example/{n}") for n in range(3))
    site = Site()
    run = journal(tmp_path / "run", outcomes(tmp_path / "cache", site, [first]))
    packed(tmp_path / "cache", run, tmp_path / "file")
    outcomes(tmp_path / "other", site, [second])
    snapshot = Snapshot(tmp_path / "file")
    found = outcomes(tmp_path / "other", site, [first, second, third], mode="replay", snapshot=snapshot)
    snapshot.close()
    assert [one.cached for one in found] == [True, True, False]
    assert len(site.arrivals) == 3
    snapshot = Snapshot(tmp_path / "file")
    strict = outcomes(tmp_path / "other", site, [first, second], mode="strict", snapshot=snapshot)
    snapshot.close()
    assert [one.status for one in strict] == ["ok", "not_cached"]
    assert strict[1].failure is not None and "is not in the snapshot" in strict[1].failure.detail


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    run = journal(tmp_path / "run", outcomes(tmp_path / "cache", Site(), [Call(M, "a"), Call(M, "b")]))
    path = run / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"id":"1"', b'"id":"7"'))
    with pytest.raises(DamagedJournal, match=r"records\.jsonl line 2 is damaged"):
        list(keys_of(run))


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    cache = Cache(filled_cache(tmp_path / "cache", 1))
    with pytest.raises(LocalFault, match="can't be written"):
        pack(cache, [(b"k" * 32, True)], tmp_path / "nowhere" / "file")
    cache.close()


# Damage


def small(tmp_path: Path) -> tuple[bytes, list[Call], list[object]]:
    calls = [Call(M, "a"), Call(S, "query"), Call(WEB, "http://h.example/long"), Call(WEB, "http://h.example/gone")]
    found = outcomes(tmp_path / "cache", Site(), calls)
    packed(tmp_path / "cache", journal(tmp_path / "run", found), tmp_path / "file")
    return (tmp_path / "file").read_bytes(), calls, told(found)


def read_all(path: Path) -> None:
    snapshot = Snapshot(path)
    try:
        for row in snapshot.rows():
            snapshot.record(row)
    finally:
        snapshot.close()


def test_a_snapshot_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole, _, _ = small(tmp_path)
    for size in [*range(0, len(whole), 37), *range(len(whole) - 200, len(whole))]:
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(SnapshotFault, match=r"is no snapshot|is damaged"):
            Snapshot(tmp_path / "cut")
    (tmp_path / "cut").write_bytes(whole + b"x")
    with pytest.raises(SnapshotFault):
        Snapshot(tmp_path / "cut")


def test_a_bit_that_is_another_is_told_wherever_it_is(tmp_path: Path) -> None:
    whole, _, _ = small(tmp_path)
    chance = random.Random(5)
    for _ in range(1500):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        (tmp_path / "flipped").write_bytes(flipped)
        with pytest.raises(SnapshotFault):
            read_all(tmp_path / "flipped")


def test_damage_ends_a_repeated_run_and_an_import_stores_nothing(tmp_path: Path) -> None:
    whole, calls, _ = small(tmp_path)
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


@pytest.mark.parametrize("name", ["nothing", "text", "a folder"])
def test_what_is_no_snapshot_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    if name == "a folder":
        path.mkdir()
    elif name == "text":
        path.write_text("hello " * 100)
    with pytest.raises(SnapshotFault) as refused:
        Snapshot(path)
    assert "\n" not in str(refused.value)


# What an enemy writes: whole by its checksums, and wrong


def forged(path: Path, rows: list[tuple[Row, bytes]], *, count: int | None = None, index_at: int | None = None) -> Path:
    """A file whose checksums are all right."""
    body = MAGIC + b"".join(record for _, record in rows)
    index = b"".join(row_bytes(row) for row, _ in rows)
    digest = hashlib.sha256(b"".join(digest_part(row) for row, _ in rows)).digest()
    count = len(rows) if count is None else count
    path.write_bytes(body + index + foot_bytes(index_at or len(body), count, digest, zlib.crc32(index)))
    return path


def body_row(record: bytes, **changes: Any) -> Row:
    key = hashlib.sha256(record).digest()
    row = Row(3, key, len(MAGIC), len(record), crc_of(key, record), key)
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
        row = Row(1, key, len(MAGIC), len(record), crc_of(key, record), hashlib.sha256(record).digest())
        with pytest.raises(SnapshotFault):
            read_all(forged(tmp_path / "f", [(row, record)]))


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


def test_a_snapshot_is_written_and_taken_in_memory_that_does_not_grow(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        folder = filled_cache(tmp_path / f"cache {count}", count)
        keys = [(b"%032d" % number, True) for number in range(count)]
        cache, other = Cache(folder), Cache(tmp_path / f"other {count}")
        tracemalloc.start()
        pack(cache, iter(keys), tmp_path / "file")
        snapshot = Snapshot(tmp_path / "file")
        assert take(snapshot, other).records > count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        snapshot.close()
        cache.close()
        other.close()
        return most

    few, many = peak(2_000), peak(8_000)
    assert many < 1.2 * few
