"""Answers kept: by several processes, through kills, damage and full disks, and never a wrong one."""

from __future__ import annotations

import asyncio
import os
import pickletools
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lmdb
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import small_disk
from scripted import ScriptedProvider, engine_over, prompts

from millstream.engine.cache import Cache
from millstream.engine.call import Outcome
from millstream.engine.endpoint import Request, Response
from millstream.engine.fault import LocalFault
from millstream.engine.run import run_calls
from millstream.engine.store import file_system_of


def key_of(number: int) -> bytes:
    return b"%032d" % number


def request_of(number: int) -> Request:
    return Request("script://", "script://", b"b", b"b", b"prompt %d" % number, b"{}")


def body_of(number: int) -> bytes:
    """Every fifth is long enough to lie on pages of its own."""
    return b"answer %d " % number * (2_000 if number % 5 == 0 else 20)


async def fill(cache: Cache, numbers: range) -> None:
    puts = [cache.put(key_of(n), request_of(n), 0, Response(200, body_of(n), latency_ms=1.5)) for n in numbers]
    await asyncio.gather(*puts)


def filled(folder: Path, count: int, scope: bytes = b"") -> Path:
    cache = Cache(folder, scope=scope)
    asyncio.run(fill(cache, range(count)))
    cache.close()
    return folder


def found_in(folder: Path, count: int) -> list[bytes | None]:
    cache = Cache(folder)
    try:
        entries = [cache.get(key_of(n)) for n in range(count)]
        return [None if entry is None else entry.response.body for entry in entries]
    finally:
        cache.close()


def test_what_was_put_is_found_with_all_that_came_with_it(tmp_path: Path) -> None:
    request = Request("https://a/v1", "a", b"{body}", b"{body}", b"the prompt", b'{"temperature":0}')
    response = Response(200, b"\x00\xffbytes", True, True, 12.5, 3.5, {"x-ratelimit": "7"})
    before = time.time()

    async def main() -> None:
        cache = Cache(tmp_path)
        assert cache.get(b"k" * 32) is None
        await cache.put(b"k" * 32, request, 7, response)
        cache.close()

    asyncio.run(main())
    cache = Cache(tmp_path, read_only=True)
    entry = cache.get(b"k" * 32)
    assert entry is not None and entry.response == response
    assert (entry.identity, entry.params, entry.sample) == ("a", b'{"temperature":0}', 7)
    assert before <= entry.received_at <= time.time()
    assert list(cache.entries()) == [(b"k" * 32, entry)]
    cache.close()


def test_an_answer_is_found_before_its_commit_and_confirmed_after_it(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        done = cache.put(key_of(1), request_of(1), 0, Response(200, b"new"))
        entry = cache.get(key_of(1))
        assert entry is not None and entry.response.body == b"new" and not done.done()
        assert cache.statistics().entries == 0
        await done
        assert cache.statistics().entries == 1
        cache.close()

    asyncio.run(main())


def test_answers_that_come_together_are_committed_together(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        puts = [cache.put(key_of(n), request_of(n), 0, Response(200, b"a")) for n in range(500)]
        await puts[0]
        assert all(done.done() for done in puts)
        cache.close()

    asyncio.run(main())


def test_a_caller_that_leaves_does_not_take_its_answer_along(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        cache.put(key_of(0), request_of(0), 0, Response(200, body_of(0))).cancel()
        await fill(cache, range(1, 3))
        cache.close()

    asyncio.run(main())
    assert found_in(tmp_path, 3) == [body_of(0), body_of(1), body_of(2)]


def test_closing_commits_what_waits(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        done = cache.put(key_of(0), request_of(0), 0, Response(200, body_of(0)))
        cache.close()
        assert done.done()

    asyncio.run(main())
    assert found_in(tmp_path, 1) == [body_of(0)]


def test_two_caches_on_one_folder_share_it_in_one_process(tmp_path: Path) -> None:
    async def main() -> None:
        one, other = Cache(tmp_path), Cache(tmp_path / ".." / tmp_path.name)
        await one.put(key_of(0), request_of(0), 0, Response(200, b"from one"))
        await other.put(key_of(1), request_of(1), 0, Response(200, b"from the other"))
        seen = [cache.get(key_of(n)) for cache in (one, other) for n in (0, 1)]
        assert [entry.response.body for entry in seen if entry] == [b"from one", b"from the other"] * 2
        one.close()
        last = other.get(key_of(0))
        assert last is not None and last.response.body == b"from one"
        other.close()

    asyncio.run(main())
    assert found_in(tmp_path, 2) == [b"from one", b"from the other"]


WRITER = """
import asyncio, sys
from pathlib import Path
from millstream.engine.cache import Cache
from millstream.engine.endpoint import Request, Response
sys.path.insert(0, sys.argv[4])
from test_cache import body_of, key_of, request_of

async def main():
    cache = Cache(Path(sys.argv[1]))
    first, count = int(sys.argv[2]), int(sys.argv[3])
    print("ready", flush=True)
    for n in range(first, first + count):
        await cache.put(key_of(n), request_of(n), 0, Response(200, body_of(n)))
        print(n, flush=True)
        for other in range(0, 4 * count, 7):  # what the others have written is whole, or not there yet
            entry = cache.get(key_of(other))
            assert entry is None or entry.response.body == body_of(other), other
    cache.close()

asyncio.run(main())
"""


def writer(folder: Path, first: int, count: int) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(here.parent / "support")])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(first), str(count), str(here)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def test_four_processes_write_and_read_at_once(tmp_path: Path) -> None:
    started = [writer(tmp_path, first, 60) for first in (0, 60, 120, 180)]
    for one in started:
        one.communicate(timeout=60)
        assert one.returncode == 0
    assert found_in(tmp_path, 240) == [body_of(n) for n in range(240)]


def test_killed_while_writing_nothing_that_was_confirmed_is_lost(tmp_path: Path) -> None:
    chance = random.Random(11)
    for round_number in range(6):
        folder = tmp_path / str(round_number)
        one = writer(folder, 0, 10_000)
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.08))
        one.send_signal(signal.SIGKILL)
        said = one.stdout.read()
        one.stdout.close()
        assert one.wait(30) == -signal.SIGKILL
        confirmed = [int(line) for line in said.splitlines(keepends=True) if line.endswith("\n")]
        assert confirmed == list(range(len(confirmed)))
        found = found_in(folder, len(confirmed) + 2)
        assert found[: len(confirmed)] == [body_of(n) for n in confirmed]
        # At most the one that was being written is there besides.
        assert found[len(confirmed)] in (None, body_of(len(confirmed))) and found[len(confirmed) + 1] is None


READER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_cache import body_of, found_in
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
    here = Path(__file__).parent
    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(here.parent / "support")])
    done = subprocess.run(
        [sys.executable, "-c", READER, str(folder), str(here)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=60,
        check=False,
    )
    return f"died of {-done.returncode}" if done.returncode < 0 else done.stdout.strip() or done.stderr


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


def test_pages_that_the_store_itself_left_out_at_the_end_are_no_damage(tmp_path: Path) -> None:
    """The store gives freed pages at the end no room in the file; it did so in 32 of 9,000 commits, up to 5 pages."""
    folder = filled(tmp_path / "cache", 100)
    cache = Cache(folder)
    cache.prune()
    cache.close()
    path = folder / "data.mdb"
    whole = path.stat().st_size
    os.truncate(path, whole - 4096)
    assert found_in(folder, 1) == [None]
    os.truncate(path, whole - 4096)
    cache = Cache(folder, read_only=True)
    assert cache.statistics().entries == 0
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


def test_what_a_live_run_keeps_is_its_own_and_goes_when_it_ends(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    filled(tmp_path, 5, scope=b"a" * 16)
    filled(tmp_path, 7, scope=b"b" * 16)
    live = Cache(tmp_path, scope=b"a" * 16)
    assert live.get(key_of(4)) is not None and live.get(key_of(5)) is None
    assert (live.statistics().entries, live.statistics().private_entries) == (3, 12)
    live.drop_scope()
    assert live.get(key_of(4)) is None
    assert (live.statistics().entries, live.statistics().private_entries) == (3, 7)
    live.close()
    shared = Cache(tmp_path)
    assert shared.get(key_of(2)) is not None and shared.get(key_of(3)) is None
    shared.drop_scope()
    assert shared.statistics().entries == 3
    shared.close()


def test_pruning_drops_what_is_old_and_what_dead_live_runs_left(tmp_path: Path) -> None:
    filled(tmp_path, 10)
    filled(tmp_path, 4, scope=b"a" * 16)
    cache = Cache(tmp_path)
    assert cache.prune(older_than_s=3600) == 4
    assert cache.statistics().entries == 10
    assert cache.prune(older_than_s=3600, now=time.time() + 3601) == 10
    asyncio.run(fill(cache, range(3)))
    assert cache.prune() == 3
    assert (cache.statistics().entries, cache.statistics().private_entries) == (0, 0)
    cache.close()


def test_one_answer_can_be_removed(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    cache = Cache(tmp_path)
    cache.remove(key_of(1))
    cache.remove(key_of(99))
    cache.close()
    assert found_in(tmp_path, 3) == [body_of(0), None, body_of(2)]


def test_statistics_tell_the_folder_the_entries_and_the_bytes(tmp_path: Path) -> None:
    cache = Cache(filled(tmp_path, 10))
    told = cache.statistics()
    cache.close()
    assert (told.path, told.entries) == (str(tmp_path), 10)
    assert told.bytes == (tmp_path / "data.mdb").stat().st_size


def test_a_full_disk_stops_the_run_and_the_answers_still_reach_the_caller(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.005)
    found: list[Outcome] = []

    async def main(folder: Path) -> None:
        async with engine_over({"script/m": provider}, folder) as bench:
            with pytest.raises(
                LocalFault, match=r"can't be written \(.*No space left.*\): free disk space, then resum"
            ):
                async for outcome in run_calls(bench.scheduler, prompts(100_000)):
                    found.append(outcome)
            assert bench.lane("script/m").in_flight == 0

    with small_disk(tmp_path / "disk", 512 << 10) as disk:
        asyncio.run(main(disk / "cache"))
    assert len(found) == len(provider.arrivals) < 10_000
    assert all(outcome.reply is not None for outcome in found)


def test_changes_on_a_full_disk_are_local_faults(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        filled(disk / "cache", 100)
        filled(disk / "cache", 100, scope=b"s" * 16)
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))
        cache = Cache(disk / "cache", scope=b"s" * 16)
        faults = 0
        changes: list[Callable[[], object]] = [partial(cache.remove, key_of(n)) for n in range(100)]
        for change in (*changes, cache.drop_scope, cache.prune):
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
    source = (Path(__file__).parents[2] / "engine/cache.py").read_text("utf-8")
    assert "import pickle" not in source and "import shelve" not in source


MOUNTS = r"""proc /proc proc rw 0 0
/dev/vda / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/ada/local xfs rw 0 0
server:/x /mnt/my\040files cifs rw 0 0
host /mnt/s fuse.sshfs rw 0 0
too short
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/cache", "ext4"),
        ("/homestead", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/x", "nfs4"),
        ("/home/ada/local", "xfs"),
        ("/home/ada/localities", "nfs4"),
        ("/mnt/my files/x", "cifs"),
        ("/mnt/s/y", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_innermost_mount(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTS) == kind


def test_of_two_mounts_on_one_point_the_later_counts() -> None:
    assert file_system_of("/a/b", "x /a nfs rw 0 0\ny /a ext4 rw 0 0\n") == "ext4"
    assert file_system_of("/a/b", "") == ""


def test_a_hundred_thousand_answers_are_written_and_found_quickly(tmp_path: Path) -> None:
    count = 100_000

    async def main() -> tuple[float, float]:
        cache = Cache(tmp_path)
        request, response = request_of(1), Response(200, b"x" * 300)
        began = time.process_time()
        for begin in range(0, count, 1000):
            await asyncio.gather(*(cache.put(key_of(n), request, 0, response) for n in range(begin, begin + 1000)))
        written = time.process_time() - began
        began = time.process_time()
        assert all(cache.get(key_of(n)) for n in range(count))
        read = time.process_time() - began
        cache.close()
        return written, read

    written, read = asyncio.run(main())
    # Our own processor time; ten times what two busy cores took.
    assert written < 40
    assert read < 10


@settings(max_examples=30, deadline=None)
@given(
    bodies=st.lists(st.binary(max_size=3000), min_size=1, max_size=40),
    keys=st.randoms(use_true_random=False),
)
def test_a_cache_is_a_map_of_the_latest_answer_of_each_key(
    bodies: list[bytes], keys: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("map")
    model: dict[bytes, bytes] = {}

    async def main() -> None:
        cache = Cache(folder)
        for body in bodies:
            key = key_of(keys.randrange(8))
            model[key] = body
            done = cache.put(key, request_of(0), 0, Response(200, body))
            if keys.random() < 0.5:
                await done
        cache.close()

    asyncio.run(main())
    cache = Cache(folder)
    assert {key: entry.response.body for key, entry in cache.entries()} == model
    cache.close()
    shutil.rmtree(folder)
