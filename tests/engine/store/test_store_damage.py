"""A damaged cache is refused in one line or works as a whole one does: no signal, no wrong answer, no traceback."""

from __future__ import annotations

import asyncio
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import cache_damage
import lmdb
import pytest
from answers import body_of, fill, filled, found_in, key_of, run_apart
from scripted import ScriptedProvider, engine_over, prompts
from torture import record, times

from millstream.engine.call import Outcome
from millstream.engine.fault import LocalFault
from millstream.engine.run import run_calls
from millstream.engine.store.cache import Cache
from millstream.engine.store.lmdb_store import store_fault
from millstream.engine.store.page_proof import check_pages, read_meta

# The long run: 300 and more.
CASES = times(26, 3000)
NAMES = (b"answers", b"private", b"derived", b"bodies", b"failures")
REFUSED = re.compile(r"refused cache \S+ can't be (opened|used) \(.*\): .*--cache")


@pytest.mark.timeout(60 + CASES)
def test_a_damaged_cache_is_refused_or_whole_and_kills_nobody(tmp_path: Path) -> None:
    source = cache_damage.prepare(tmp_path / "source")
    program = subprocess.run(
        [sys.executable, cache_damage.__file__, source, tmp_path / "damaged", "0", str(CASES)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    lines = program.stdout.splitlines()
    ends = [line.partition(": ")[2] for line in lines]
    bad = [line for line, end in zip(lines, ends, strict=True) if end != "whole" and not REFUSED.fullmatch(end)]
    assert (program.returncode, bad, len(lines)) == (0, [], CASES)
    assert CASES / 4 < ends.count("whole") < 3 * CASES / 4
    worst = f"{CASES - ends.count('whole')} damaged caches were refused, the others worked as a whole one; no signal"
    record("2", CASES, CASES, worst, f"0-{CASES - 1}")


# --- what is refused before anybody maps the file ---


def test_every_state_that_the_store_itself_leaves_is_sound(tmp_path: Path) -> None:
    """The pages that are checked are those of LMDB as it is: deep trees, large values, splits, merges, free lists."""
    chance = random.Random(5)
    with lmdb.open(str(tmp_path), map_size=1 << 30, max_dbs=8, sync=False, metasync=False) as environment:
        databases = [environment.open_db(name) for name in NAMES]
        keys: list[bytes] = []
        for _ in range(120):
            with environment.begin(write=True) as transaction:
                for _ in range(chance.choice((1, 20, 200))):
                    if chance.random() < 0.7 or not keys:
                        keys.append(chance.randbytes(chance.choice((32, 48, chance.randint(1, 511)))))
                        value = bytes(chance.choice((0, 700, 3_000, 9_000)))
                        transaction.put(keys[-1], value, db=chance.choice(databases))
                    else:
                        transaction.delete(chance.choice(keys), db=chance.choice(databases))
            check_pages(tmp_path / "data.mdb", NAMES)


def test_a_database_that_no_cache_has_is_refused(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), max_dbs=8) as environment:
        environment.open_db(b"something")
    with pytest.raises(LocalFault, match="holds a database that is not one of a cache"):
        Cache(tmp_path)


def test_a_cache_that_was_closed_and_not_touched_is_not_read_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", 50)
    path = folder / "data.mdb"
    damaged = bytearray(path.read_bytes())
    damaged[2 * 4096 :] = bytes(len(damaged) - 2 * 4096)
    path.write_bytes(damaged)
    with pytest.raises(LocalFault, match="is damaged"):
        Cache(folder)
    found = path.stat()
    (folder / "closed").write_text(f"{found.st_ino} {found.st_size} {found.st_ctime_ns}")
    said = run_apart("import sys; from answers import *; print(found_in(Path(sys.argv[1]), 1))", folder)
    assert "is damaged: page" not in said.communicate(timeout=20)[0]


def test_a_cache_whose_process_was_killed_is_read_through_and_opened(tmp_path: Path) -> None:
    program = (
        "import sys, os, signal; from answers import *\n"
        "cache = Cache(Path(sys.argv[1])); asyncio.run(fill(cache, range(50))); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = run_apart(program, tmp_path / "cache")
    killed.communicate(timeout=20)
    assert killed.returncode == -9 and not (tmp_path / "cache" / "closed").exists()
    assert found_in(tmp_path / "cache", 50) == [body_of(number) for number in range(50)]
    assert (tmp_path / "cache" / "closed").exists()


def test_a_cache_that_another_process_writes_is_opened_beside_it(tmp_path: Path) -> None:
    """No process looks at pages that another one changes meanwhile: that would look like damage."""
    filled(tmp_path / "cache", 50)
    program = (
        "import sys; from answers import *\n"
        "for turn in range(30):\n"
        "    cache = Cache(Path(sys.argv[1])); asyncio.run(fill(cache, range(50 + turn)))\n"
        "    assert cache.get(key_of(7)).response.body == body_of(7); cache.close()\n"
        "print('done')"
    )
    beside = [run_apart(program, tmp_path / "cache") for _ in range(3)]
    assert [process.communicate(timeout=60)[0] for process in beside] == ["done\n"] * 3


def test_a_cache_in_a_folder_that_cant_be_written_is_looked_at_and_read(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", 5)
    (folder / "closed").unlink()
    os.chmod(folder, 0o555)
    try:
        cache = Cache(folder, read_only=True)
        assert cache.statistics().entries == 5
        cache.close()
    finally:
        os.chmod(folder, 0o755)


# --- damage met while a cache is open ---


def break_root(folder: Path) -> None:
    """Make the first page of the answers one of no kind, under a process that has the file open."""
    path = folder / "data.mdb"
    fd = os.open(path, os.O_RDWR)
    meta = read_meta(fd)
    assert meta is not None
    page = os.pread(fd, 4096, meta.main.root * 4096)
    (root,) = struct.unpack_from("=Q", page, page.index(b"answers") + len(b"answers") + 40)
    os.pwrite(fd, b"\0\0", root * 4096 + 10)
    os.close(fd)


def test_damage_met_in_a_run_is_called_damage_and_stops_it_with_all_that_was_received(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.005)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path / "cache") as bench:
            with pytest.raises(LocalFault, match=r"can't be used \(\S+/data.mdb is damaged: .*\): move that file away"):
                async for outcome in run_calls(bench.scheduler, prompts(5_000)):
                    found.append(outcome)
                    if len(found) == 300:
                        break_root(tmp_path / "cache")

    asyncio.run(main())
    assert 300 <= len(found) == len(provider.arrivals) < 5_000
    assert all(outcome.reply is not None for outcome in found)


def test_damage_met_by_every_way_to_read_is_told_with_the_file(tmp_path: Path) -> None:
    folder = filled(tmp_path / "cache", 100)
    cache = Cache(folder)
    break_root(folder)
    for read in (
        lambda: cache.get(key_of(3)),
        lambda: list(cache.entries()),
        lambda: cache.value(b"answers", key_of(3)),
    ):
        with pytest.raises(LocalFault, match=r"/data.mdb is damaged: .*CORRUPTED"):
            read()
    with pytest.raises(LocalFault, match=r"/data.mdb is damaged"):
        asyncio.run(fill(cache, range(3)))
    assert cache.is_faulty
    cache.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (lmdb.CorruptedError("x"), "is damaged: x"),
        (lmdb.PageNotFoundError("x"), "is damaged: x"),
        (lmdb.BadTxnError("x"), "is damaged: x"),
        (lmdb.MapFullError("x"), "free disk space, then resume"),
        (lmdb.DiskError("x"), "free disk space, then resume"),
        (OSError(28, "No space left on device"), "free disk space, then resume"),
        (lmdb.Error("mdb_txn_commit: File too large"), "free disk space, then resume"),
        (lmdb.Error("x: Input/output error"), "check its disk and its permissions"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_full_disk_and_damage_have_words_of_their_own(error: Exception, said: str, tmp_path: Path) -> None:
    assert said in str(store_fault(tmp_path, error))
