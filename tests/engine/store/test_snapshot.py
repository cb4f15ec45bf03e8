"""A run's responses in one file: the same outcomes from it as from the wire, and one digest for the same contents."""

from __future__ import annotations

import hashlib
import random
import tracemalloc
from pathlib import Path

import pytest
from answers import filled as filled_cache
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ScriptedProvider
from snapshots import M, S, Site, journal, outcomes, packed, told
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call
from millstream.engine.fault import DamagedJournal, LocalFault
from millstream.engine.store.cache import Cache, derived_key
from millstream.engine.store.run_keys import keys_of
from millstream.engine.store.snapshot import Snapshot, digest_of
from millstream.engine.store.snapshot_writer import pack, take

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
