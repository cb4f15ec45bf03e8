"""The file under the cache, damaged, cut short, replaced, or out of room: a miss or a refusal, never a wrong answer."""

from __future__ import annotations

import asyncio
import os
import pickletools
import random
from pathlib import Path

import lmdb
import msgspec
import pytest
from answers import body_of, fill, filled, found_in, key_of, run_apart
from places import small_disk

from millstream.engine.fault import LocalFault
from millstream.engine.store.cache import Cache
from millstream.engine.store.lmdb_store import file_system_of

READER = """
import sys
from pathlib import Path
from answers import body_of, found_in
from millstream.engine.fault import LocalFault
try:
    found = found_in(Path(sys.argv[1]), 200)
except LocalFault as fault:
    print("refused:", fault)
else:
    wrong = [n for n, body in enumerate(found) if body not in (None, body_of(n))]
    print("wrong", wrong, "missed", found.count(None))
"""


def read_apart(folder: Path) -> str:
    """What a process of its own says that reads the cache: a damaged page may kill it."""
    reader = run_apart(READER, folder)
    said = reader.communicate(timeout=60)[0].strip()
    return said if reader.returncode == 0 else f"ended with {reader.returncode}"


def test_damaged_answers_are_missed_and_never_wrong(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", 200)
    whole = (folder / "data.mdb").read_bytes()
    chance = random.Random(3)
    missed = 0
    for _ in range(300):
        flipped = bytearray(whole)
        # Inside a stored answer: the text itself, and the fields around it.
        number = chance.randrange(200)
        begin = whole.index(body_of(number)) - 30
        place = chance.randrange(begin, begin + len(body_of(number)) + 30)
        flipped[place] ^= 1 << chance.randrange(8)
        (folder / "data.mdb").write_bytes(flipped)
        found = found_in(folder, 200)
        assert [n for n, body in enumerate(found) if body not in (None, body_of(n))] == []
        missed += found.count(None)
    assert missed >= 250


def test_an_answer_under_another_calls_key_is_missed(tmp_path: Path) -> None:
    """What a damaged pointer does: the bytes are whole, but they are another call's."""
    folder = filled(tmp_path / "cache", 2)
    path = folder / "data.mdb"
    path.write_bytes(path.read_bytes().replace(key_of(1), key_of(7)))
    cache = Cache(folder)
    assert cache.get(key_of(7)) is None
    assert [key for key, _ in cache.entries()] == [key_of(0)]
    cache.close()


def test_a_file_cut_short_anywhere_is_refused_in_one_line_or_read_right(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", 200)
    whole = (folder / "data.mdb").read_bytes()
    for size in (1, 4096, 8192, 20_000, len(whole) // 2, len(whole) - 3 * 4096, len(whole) - 1):
        (folder / "data.mdb").write_bytes(whole[:size])
        said = read_apart(folder)
        assert said.startswith("refused: cache") or said == "wrong [] missed 0", (size, said)
        assert "\n" not in said
        if size <= len(whole) // 2:
            assert "use another with --cache" in said


def test_free_pages_that_the_store_itself_left_out_at_the_end_are_no_damage(tmp_path: Path) -> None:
    """The store gives freed pages at the end no room in the file; it did so in 32 of 9,000 commits, up to 5 pages."""
    folder = filled(tmp_path / "cache", 100)
    cache = Cache(folder)
    cache.prune()
    for number in range(4):  # what is in use moves to the front, where there is room again
        asyncio.run(fill(cache, range(number, number + 1)))
    cache.close()
    path = folder / "data.mdb"
    whole = path.stat().st_size
    os.truncate(path, whole - 4096)
    assert found_in(folder, 4) == [body_of(number) for number in range(4)]
    os.truncate(path, whole - 2 * 4096)
    cache = Cache(folder, read_only=True)
    assert cache.statistics().entries == 4
    cache.close()
    assert path.stat().st_size == whole


@pytest.mark.parametrize("content", [b"not a database", random.Random(1).randbytes(100_000), b"\0" * 50_000])
def test_a_file_of_something_else_is_refused_in_one_line_and_left_alone(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(LocalFault, match=r"^cache .* can't be opened \(.*\): .*--cache$"):
            Cache(tmp_path, read_only=read_only)
    assert (tmp_path / "data.mdb").read_bytes() == content


def test_an_empty_file_is_an_empty_cache(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    assert found_in(tmp_path, 1) == [None]


def test_a_missing_cache_is_not_made_by_looking_at_it(tmp_path: Path) -> None:
    with pytest.raises(LocalFault, match="does not exist: nothing has been stored there"):
        Cache(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_a_folder_that_can_not_be_a_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalFault, match="can't be opened"):
        Cache(tmp_path / "file")
    with pytest.raises(LocalFault, match="can't be opened"):
        Cache(tmp_path / "file" / "below")


def test_a_refused_cache_can_be_opened_once_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not a database")
    with pytest.raises(LocalFault):
        Cache(tmp_path)
    (tmp_path / "data.mdb").unlink()
    assert found_in(tmp_path, 1) == [None]


def test_answers_that_meet_a_full_disk_are_saved_in_the_spare_room_and_the_fault_is_told(tmp_path: Path) -> None:
    async def main(folder: Path) -> tuple[int, int]:
        cache = Cache(folder, spare_bytes=1 << 20)
        told, count = 0, 0
        while not told:
            try:
                await fill(cache, range(count, count + 20))
            except LocalFault as fault:
                assert "free disk space, then resume" in str(fault)
                told += 1
            count += 20
            assert count < 20_000
        # What was in flight when the disk filled up still comes in.
        await fill(cache, range(count, count + 20))
        cache.close()
        return count + 20, told

    with small_disk(tmp_path / "disk", 3 << 20) as disk:
        count, told = asyncio.run(main(disk / "cache"))
        assert told == 1 and found_in(disk / "cache", count) == [body_of(number) for number in range(count)]


def test_spare_room_leaves_no_file_and_no_room_for_it_refuses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2 << 20) as disk:
        before = os.statvfs(disk).f_bfree
        cache = Cache(disk / "cache", spare_bytes=1 << 20)
        assert before - os.statvfs(disk).f_bfree >= (1 << 20) // os.statvfs(disk).f_frsize
        assert {path.name for path in (disk / "cache").iterdir()} == {"data.mdb", "lock.mdb"}
        cache.close()
        free = os.statvfs(disk).f_bfree
        Cache(disk / "cache", spare_bytes=1 << 30).close()
        assert os.statvfs(disk).f_bfree == free


def test_changes_on_a_full_disk_are_local_faults(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        filled(disk / "cache", 100)
        filled(disk / "cache", 100, scope=b"s" * 16)
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))
        cache = Cache(disk / "cache", scope=b"s" * 16)
        faults = 0
        for change in (cache.drop_scope, cache.prune):
            try:
                change()
            except LocalFault as fault:
                assert "No space left" in str(fault)
                faults += 1
        assert faults > 0 and cache.is_faulty
        cache.close()
        with pytest.raises(LocalFault, match=r"can't be opened \(.*No space left"):
            Cache(disk / "another")


def test_stored_bytes_are_messagepack_and_no_pickle_is_ever_read(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    with lmdb.open(str(tmp_path), max_dbs=4) as environment:
        answers = environment.open_db(b"answers", create=False)
        with environment.begin(db=answers) as transaction:
            for _, stored in transaction.cursor():
                assert isinstance(msgspec.msgpack.decode(bytes(stored)[:-4]), list)
                with pytest.raises(ValueError, match=r"."):
                    list(pickletools.genops(bytes(stored)))
    source = (Path(__file__).parents[3] / "engine/store/cache.py").read_text("utf-8")
    assert "import pickle" not in source and "import shelve" not in source


MOUNTS = r"""proc /proc proc rw 0 0
/dev/vda / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/data /data nfs4 rw 0 0
/dev/vdb /data/ada/local xfs rw 0 0
server:/x /mnt/my\040files cifs rw 0 0
host /mnt/s fuse.sshfs rw 0 0
too short
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/cache", "ext4"),
        ("/datastead", "ext4"),
        ("/data", "nfs4"),
        ("/data/ada/x", "nfs4"),
        ("/data/ada/local", "xfs"),
        ("/data/ada/localities", "nfs4"),
        ("/mnt/my files/x", "cifs"),
        ("/mnt/s/y", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_innermost_mount(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTS) == kind


def test_of_two_mounts_on_one_point_the_later_counts() -> None:
    assert file_system_of("/a/b", "x /a nfs rw 0 0\ny /a ext4 rw 0 0\n") == "ext4"
    assert file_system_of("/a/b", "") == ""
