"""What is taken from what is stored: searches and pages grow old, their failures count for the run they came in."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import lmdb
import pytest
from answers import body_of, key_of, put, request_of
from msgspec import structs
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call, Failure, Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.store.cache import Cache, Mode
from millstream.engine.store.cache_policy import DAY_S, Ages, CachePolicy
from millstream.engine.store.entries import BODY_APART, StoredAnswer, StoredFailure, derived_key

M, S = "script/m", "search/s"
URL = "http://h.example/page"
NOW = 1_000_000.0
GONE = Fault("rejected", "404: there is no such page", "never", 404)
BUSY = Fault("search_failed", "no engine answered", "retry", 200)


class Stored:
    """What a cache would give, without one."""

    def __init__(self, answered_at: float | None = None, failed_at: float | None = None) -> None:
        self.answered_at, self.failed_at = answered_at, failed_at

    def get(self, key: bytes) -> StoredAnswer | None:
        at = self.answered_at
        return None if at is None else StoredAnswer("i", b"{}", 0, 0, at, Response(200, b"answer"))

    def failure(self, key: bytes) -> StoredFailure | None:
        return None if self.failed_at is None else StoredFailure("i", self.failed_at, Failure("connect", "down"))

    def derived(self, key: bytes) -> bytes | None:
        return None


def found(mode: Mode, stored: Stored, ages: Ages, snapshot: Stored | None = None) -> str:
    recall = CachePolicy(stored, mode, ages, snapshot=snapshot, clock=lambda: NOW)  # type: ignore[arg-type]
    one = recall.retrieval(b"k" * 32)
    return "nothing" if one is None else "answer" if isinstance(one, StoredAnswer) else "failure"


STARTED = Ages(run_started=NOW - 7200)


@pytest.mark.parametrize(
    ("mode", "stored", "expected"),
    [
        ("record", Stored(NOW - DAY_S + 1), "answer"),
        ("record", Stored(NOW - DAY_S - 1), "nothing"),
        ("replay", Stored(0.0), "answer"),
        ("strict", Stored(0.0), "answer"),
        ("record", Stored(failed_at=NOW - 7201), "nothing"),
        ("record", Stored(failed_at=NOW - 7199), "failure"),
        ("live", Stored(failed_at=NOW - 7199), "failure"),
        ("replay", Stored(failed_at=0.0), "failure"),
        ("strict", Stored(failed_at=0.0), "failure"),
        # The later of both, as far as each counts.
        ("record", Stored(NOW - 7300, NOW - 7100), "failure"),
        ("record", Stored(NOW - 7300, NOW - 7250), "answer"),
        ("record", Stored(NOW - 100, NOW - 200), "answer"),
        ("replay", Stored(100.0, 200.0), "failure"),
        ("replay", Stored(200.0, 100.0), "answer"),
    ],
)
def test_what_counts_depends_on_mode_and_age(mode: Mode, stored: Stored, expected: str) -> None:
    assert found(mode, stored, STARTED) == expected


def test_what_is_the_runs_own_never_grows_old() -> None:
    old = NOW - 10 * DAY_S
    assert found("record", Stored(old), Ages(run_started=old)) == "answer"
    assert found("record", Stored(old), Ages(run_started=old + 1)) == "nothing"
    assert found("record", Stored(old), Ages(run_started=NOW, max_age_s=11 * DAY_S)) == "answer"


def test_after_a_retry_earlier_failures_are_asked_again_and_answers_are_not() -> None:
    ages = Ages(run_started=NOW - 10 * DAY_S, retry_started=NOW - 60)
    assert found("record", Stored(failed_at=NOW - 61), ages) == "nothing"
    assert found("record", Stored(failed_at=NOW - 59), ages) == "failure"
    assert found("record", Stored(NOW - 9 * DAY_S, NOW - 61), ages) == "answer"


def test_a_snapshot_goes_before_the_cache_and_in_mode_strict_in_its_place() -> None:
    empty, held = Stored(), Stored(1.0)
    assert found("replay", held, STARTED, snapshot=Stored(failed_at=0.5)) == "failure"
    assert found("replay", held, STARTED, snapshot=empty) == "answer"
    assert found("strict", held, STARTED, snapshot=empty) == "nothing"
    assert found("strict", empty, STARTED, snapshot=held) == "answer"


# Through the scheduler


def asked(
    folder: Path,
    provider: ScriptedProvider,
    *calls: Call,
    mode: Mode = "record",
    scope: bytes = b"",
    ages: Ages | None = None,
) -> list[Outcome]:
    async def main() -> list[Outcome]:
        served = {WEB: provider, S: provider, M: provider}
        async with engine_over(served, folder, mode=mode, scope=scope, ages=ages) as bench:
            return [await bench.scheduler.ask(call) for call in calls]

    return run_virtually(main())


def test_a_run_killed_in_a_turn_meets_the_same_pages_and_asks_none_again(tmp_path: Path) -> None:
    """The first process has done a part of what the second one does."""
    provider = ScriptedProvider(lambda prompt, at: GONE if "gone" in prompt else BUSY if "quiet" in prompt else None)
    turn = [Call(S, "query"), Call(S, "quiet"), Call(WEB, URL), Call(WEB, f"{URL}/gone"), Call(M, "prompt")]
    ages = Ages(run_started=1.0)
    first = asked(tmp_path, provider, *turn, ages=ages)
    sent = len(provider.arrivals)
    second = asked(tmp_path, provider, *turn, ages=ages)
    assert len(provider.arrivals) == sent
    assert [one.status for one in second] == [one.status for one in first]
    assert [one.status for one in first] == ["ok", "search_failed", "ok", "rejected", "ok"]
    assert [one.failure for one in second] == [one.failure for one in first]
    assert [one.key for one in second] == [one.key for one in first]
    assert all(one.cached and one.attempts == 0 for one in second)


def test_a_page_that_is_repeated_tells_how_long_it_took_and_nothing_else_does(tmp_path: Path) -> None:
    calls = [Call(WEB, URL), Call(S, "query"), Call(M, "prompt")]

    class Timed(ScriptedProvider):
        async def send(self, request: Request, cleared: Cleared) -> Response:
            return structs.replace(await super().send(request, cleared), latency_ms=812.5)

    first, second = (asked(tmp_path, Timed(), *calls, ages=Ages(run_started=1.0)) for _ in range(2))
    assert [one.latency_ms for one in first] == [812.5] * 3
    assert [one.latency_ms for one in second] == [812.5, None, None]


def test_a_host_that_was_given_up_fails_the_same_pages_again(tmp_path: Path) -> None:
    busy = Fault("rate_limited", "429: a pause of 60 s", "throttle", 429, retry_after_s=60.0)
    provider = ScriptedProvider(lambda prompt, at: busy)
    first = asked(tmp_path, provider, Call(WEB, URL), Call(WEB, f"{URL}/2"), ages=Ages(run_started=1.0))
    second = asked(tmp_path, provider, Call(WEB, URL), Call(WEB, f"{URL}/2"), ages=Ages(run_started=1.0))
    assert [one.failure for one in second] == [one.failure for one in first]
    assert {one.status for one in first} == {"rate_limited"}
    assert len(provider.arrivals) == 1


# Bodies and what was made of them


def long(number: int, size: int = 3 * BODY_APART) -> bytes:
    return (b"body %d " % number) * (size // 7)


def filled(folder: Path, bodies: list[bytes], *, scope: bytes = b"") -> Cache:
    async def main() -> Cache:
        cache = Cache(folder, scope=scope)
        puts = [put(cache, key_of(n), request_of(n), 0, Response(200, body)) for n, body in enumerate(bodies)]
        await asyncio.gather(*puts)
        return cache

    return asyncio.run(main())


def test_a_long_body_lies_once_whatever_names_it(tmp_path: Path) -> None:
    cache = filled(tmp_path, [long(1)] * 50 + [long(2)] + [b"short"] * 20)
    assert cache.statistics().bodies == 2
    assert [entry.response.body for _, entry in cache.entries()] == [long(1)] * 50 + [long(2)] + [b"short"] * 20
    entry = cache.get(key_of(7))
    assert entry is not None and entry.response.body == long(1)
    cache.close()


@pytest.mark.parametrize("size", [BODY_APART - 1, BODY_APART, 1 << 18, 5 << 20])
def test_a_body_of_any_size_is_found_as_it_came(tmp_path: Path, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    cache = filled(tmp_path, [body[:size]])
    entry = cache.get(key_of(0))
    assert entry is not None and entry.response.body == body[:size]
    cache.close()


def test_a_body_whose_bytes_are_damaged_is_missed_and_stored_anew(tmp_path: Path) -> None:
    filled(tmp_path, [long(1), long(2)]).close()
    path = tmp_path / "data.mdb"
    path.write_bytes(path.read_bytes().replace(b"body 1 body 1 ", b"body 1 bodY 1 "))
    cache = filled(tmp_path, [])
    assert cache.get(key_of(0)) is None and cache.get(key_of(1)) is not None
    assert [key for key, _ in cache.entries()] == [key_of(1)]
    cache.close()
    cache = filled(tmp_path, [long(1)])
    entry = cache.get(key_of(0))
    assert entry is not None and entry.response.body == long(1)
    cache.close()


def test_a_body_goes_with_the_last_that_names_it(tmp_path: Path) -> None:
    filled(tmp_path, [long(1), long(1), long(2)]).close()
    own = filled(tmp_path, [long(2)], scope=b"a" * 16)
    assert own.statistics().bodies == 3, "a live run's are its own"
    own.drop_scope()
    assert own.statistics().bodies == 2
    own.close()

    async def main() -> None:
        cache = Cache(tmp_path)
        half = time.time()
        await put(cache, key_of(9), request_of(9), 0, Response(200, long(2)))
        dropped = cache.prune(older_than_s=0, now=half)
        assert (dropped.answers, dropped.bodies) == (3, 1)
        entry = cache.get(key_of(9))
        assert entry is not None and entry.response.body == long(2)
        assert cache.prune().bodies == 1 and cache.statistics().bodies == 0
        cache.close()

    asyncio.run(main())


def test_what_was_made_of_a_body_is_kept_and_found_at_once_and_later(tmp_path: Path) -> None:
    source = b"s" * 32
    one, other = derived_key(source, b"text 1"), derived_key(source, b"text 2")

    async def main() -> None:
        cache = Cache(tmp_path)
        cache.keep(one, b"the text")
        assert cache.derived(one) == b"the text" and cache.derived(other) is None
        await asyncio.sleep(0.1)
        assert cache.statistics().texts == 1
        cache.keep(other, b"x" * (1 << 19))
        cache.close()

    asyncio.run(main())
    cache = Cache(tmp_path)
    assert cache.derived(one) == b"the text" and cache.derived(other) == b"x" * (1 << 19)
    assert cache.derived_from(source) == sorted([(one, b"the text"), (other, b"x" * (1 << 19))])
    assert cache.derived_from(b"t" * 32) == []
    assert cache.prune(older_than_s=3600).texts == 0
    assert cache.prune().texts == 2 and cache.derived(one) is None
    cache.close()


def test_a_cache_of_an_older_version_is_read_and_written(tmp_path: Path) -> None:
    filled(tmp_path, [body_of(1), long(0)]).close()
    with lmdb.open(str(tmp_path), max_dbs=8) as environment:
        for name in (b"derived", b"bodies", b"failures"):
            db = environment.open_db(name)
            with environment.begin(write=True) as transaction:
                transaction.drop(db)
    cache = Cache(tmp_path, read_only=True)
    entry = cache.get(key_of(0))
    assert entry is not None and entry.response.body == body_of(1)
    assert cache.failure(key_of(0)) is None and cache.derived(b"k" * 64) is None
    cache.close()
    filled(tmp_path, [long(5)]).close()
