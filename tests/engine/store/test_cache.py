"""Answers kept by several processes and through kills, for one run or for all, and never a wrong one."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from answers import body_of, fill, filled, found_in, key_of, put, request_of, run_apart
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.endpoint import Request, Response
from millstream.engine.store.cache import Cache
from millstream.engine.store.lmdb_store import StoreAccess


def test_what_was_put_is_found_with_all_that_came_with_it(tmp_path: Path) -> None:
    request = Request("https://a/v1", "a", b"{body}", b"{body}", b"the prompt", b'{"temperature":0}')
    response = Response(200, b"\x00\xffbytes", True, True, 12.5, 3.5, {"x-ratelimit": "7"})
    before = time.time()

    async def main() -> None:
        cache = Cache(tmp_path)
        assert cache.get(b"k" * 32) is None
        await put(cache, b"k" * 32, request, 7, response)
        cache.close()

    asyncio.run(main())
    cache = Cache(tmp_path, read_only=True)
    entry = cache.get(b"k" * 32)
    assert entry is not None and entry.response == response
    assert (entry.identity, entry.params, entry.sample) == ("a", b'{"temperature":0}', 7)
    assert before <= entry.received_at <= time.time()
    assert list(cache.entries()) == [(b"k" * 32, entry)]
    cache.close()


def test_answers_that_come_together_are_committed_together(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        puts = [put(cache, key_of(n), request_of(n), 0, Response(200, b"a")) for n in range(500)]
        await puts[0]
        assert all(done.done() for done in puts)
        cache.close()

    asyncio.run(main())


def test_a_caller_that_leaves_does_not_take_its_answer_along(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        put(cache, key_of(0), request_of(0), 0, Response(200, body_of(0))).cancel()
        await fill(cache, range(1, 3))
        cache.close()

    asyncio.run(main())
    assert found_in(tmp_path, 3) == [body_of(0), body_of(1), body_of(2)]


def test_closing_commits_what_waits(tmp_path: Path) -> None:
    async def main() -> None:
        cache = Cache(tmp_path)
        done = put(cache, key_of(0), request_of(0), 0, Response(200, body_of(0)))
        cache.close()
        assert done.done()

    asyncio.run(main())
    assert found_in(tmp_path, 1) == [body_of(0)]


def test_two_caches_on_one_folder_share_it_in_one_process(tmp_path: Path) -> None:
    async def main() -> None:
        one, other = Cache(tmp_path), Cache(tmp_path / ".." / tmp_path.name)
        await put(one, key_of(0), request_of(0), 0, Response(200, b"from one"))
        await put(other, key_of(1), request_of(1), 0, Response(200, b"from the other"))
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
from millstream.engine.store.cache import Cache
from millstream.engine.endpoint import Request, Response
from answers import body_of, key_of, put, request_of

async def main():
    cache = Cache(Path(sys.argv[1]))
    first, count = int(sys.argv[2]), int(sys.argv[3])
    print("ready", flush=True)
    for n in range(first, first + count):
        await put(cache, key_of(n), request_of(n), 0, Response(200, body_of(n)))
        print(n, flush=True)
        for other in range(0, 4 * count, 7):  # what the others have written is whole, or not there yet
            entry = cache.get(key_of(other))
            assert entry is None or entry.response.body == body_of(other), other
    cache.close()

asyncio.run(main())
"""


def writer(folder: Path, first: int, count: int) -> subprocess.Popen[str]:
    return run_apart(WRITER, folder, first, count)


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


def test_pruning_drops_what_is_old_and_what_live_runs_left_by_the_same_measure(tmp_path: Path) -> None:
    filled(tmp_path, 10)
    filled(tmp_path, 4, scope=b"a" * 16)
    cache = Cache(tmp_path)
    assert sum(cache.prune(older_than_s=3600)) == 0, "a live run that was just stopped can still go on"
    assert cache.prune(older_than_s=3600, now=time.time() + 3601).answers == 14
    asyncio.run(fill(cache, range(3)))
    assert cache.prune().answers == 3
    assert (cache.statistics().entries, cache.statistics().private_entries) == (0, 0)
    cache.close()


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
            done = put(cache, key, request_of(0), 0, Response(200, body))
            if keys.random() < 0.5:
                await done
        cache.close()

    asyncio.run(main())
    cache = Cache(folder)
    assert {key: entry.response.body for key, entry in cache.entries()} == model
    cache.close()
    shutil.rmtree(folder)


def test_a_small_commit_that_the_disk_lets_wait_holds_up_nothing_else(tmp_path: Path) -> None:
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        store = StoreAccess(tmp_path)
        with store.begin(write=True):
            is_held.set()
            may_go.wait(10)
        store.close()

    async def main() -> None:
        cache = Cache(tmp_path, spares_loop=True)
        holder = asyncio.create_task(asyncio.to_thread(hold))
        assert await asyncio.to_thread(is_held.wait, 10)
        done = [put(cache, key_of(n), request_of(n), 0, Response(200, b"new")) for n in range(3)]
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not may_go.is_set() and not any(each.done() for each in done)
        may_go.set()
        await asyncio.gather(holder, *done)
        assert all(cache.get(key_of(n)) for n in range(3))
        cache.close()

    asyncio.run(main())
