"""What one process learned of a lane, another starts with: written whole, seldom, and never the key."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import make_read_only, small_disk

from millstream.engine.lane import Lane
from millstream.engine.lanes.lane_files import FORGOTTEN_AFTER_S, LaneMemory, LaneNote, notes_in, read_note
from millstream.engine.limits import Limit

LANE = Lane("a/b", rpm=100, concurrency=7)
NOTE = LaneNote("a/b", "A_KEY", "http://h/v1", LANE)
REQUESTS, TOKENS = Limit("requests", 60.0, 500.0, 499.0, 0.1), Limit("tokens", 60.0, 9_000.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def test_the_next_process_starts_with_what_this_one_learned(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "x.lane"
    memory = LaneMemory(NOTE, path, clock=clock)
    assert memory.limits == ()
    assert memory.see([REQUESTS, TOKENS])
    memory.close()
    clock.now += 3_600
    assert LaneMemory(NOTE, path, clock=clock).limits == (REQUESTS, TOKENS)
    note = read_note(path)
    assert note is not None
    assert (note.model, note.key, note.address, note.declared) == ("a/b", "A_KEY", "http://h/v1", LANE)
    assert [seen.at for seen in note.seen] == [1_700_000_000.0] * 2 and note.opened_at == clock.now


@pytest.mark.parametrize("later_s", [FORGOTTEN_AFTER_S, -FORGOTTEN_AFTER_S, 1e9])
def test_what_nothing_has_told_for_a_day_is_forgotten(later_s: float, tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "x.lane"
    memory = LaneMemory(NOTE, path, clock=clock)
    memory.see([REQUESTS])
    memory.close()
    clock.now += later_s
    assert LaneMemory(NOTE, path, clock=clock).limits == ()


def test_the_latest_word_on_an_amount_replaces_all_earlier_ones_on_it(tmp_path: Path) -> None:
    memory = LaneMemory(NOTE, clock=Clock())
    memory.see([REQUESTS, Limit("requests", 86_400.0, 10_000.0), TOKENS])
    assert memory.see([Limit("requests", 60.0, 700.0)])
    assert not memory.see([Limit("requests", 60.0, 700.0, 3.0, 4.0)])
    assert {(limit.of, limit.window_s, limit.limit) for limit in memory.limits} == {
        ("requests", 60.0, 700.0),
        ("tokens", 60.0, 9_000.0),
    }
    assert not memory.see([Limit("tokens", 60.0, None, 0.0, 3.0)])
    assert TOKENS in memory.limits


def test_it_is_written_seldom_whatever_comes(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "x.lane"
    memory = LaneMemory(NOTE, path, clock=clock)
    written = set()
    for number in range(10_000):  # a thousand seconds, ten answers each, a new limit with every one
        clock.now += 0.1
        memory.see([Limit("requests", 60.0, 500.0 + number)])
        written.add(path.read_bytes())
    assert 190 <= len(written) <= 205
    for _ in range(10_000):
        clock.now += 0.1
        memory.see([Limit("requests", 60.0, 10_499.0)])
        written.add(path.read_bytes())
    assert len(written) <= 205 + 20


def test_what_came_last_is_there_after_the_end(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "x.lane"
    memory = LaneMemory(NOTE, path, clock=clock)
    memory.see([Limit("requests", 60.0, 1.0)])
    memory.see([Limit("requests", 60.0, 2.0)])
    memory.close()
    assert LaneMemory(NOTE, path, clock=clock).limits == (Limit("requests", 60.0, 2.0),)
    assert [one.name for one in tmp_path.iterdir()] == ["x.lane"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"model": 3}', b'{"model":"a/b","key":"K"}'])
def test_a_file_of_something_else_is_nothing_known(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.lane"
    path.write_bytes(content)
    assert read_note(path) is None
    assert LaneMemory(NOTE, path, clock=Clock()).limits == ()
    assert read_note(path) is not None


def test_a_full_or_read_only_disk_costs_no_more_than_the_note(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        clock = Clock()
        memory = LaneMemory(NOTE, disk / "x.lane", clock=clock)
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))
        before = (disk / "x.lane").read_bytes()
        clock.now += 100
        memory.see([REQUESTS])
        assert memory.limits == (REQUESTS,)
        assert (disk / "x.lane").read_bytes() == before
        assert sorted(one.name for one in disk.iterdir()) == ["filler", "x.lane"]
        make_read_only(disk)
        memory.close()


def test_all_lanes_of_a_cache_are_found_by_model_and_key(tmp_path: Path) -> None:
    for number, (model, key) in enumerate([("b/c", "K1"), ("a/b", "K2"), ("a/b", "K1")]):
        LaneMemory(LaneNote(model, key, "http://h", Lane(model)), tmp_path / f"{number}.lane", clock=Clock())
    (tmp_path / "broken.lane").write_bytes(b"x")
    (tmp_path / "0.ledger").write_bytes(b"x")
    assert [(note.model, note.key) for _, note in notes_in(tmp_path)] == [("a/b", "K1"), ("a/b", "K2"), ("b/c", "K1")]
    assert list(notes_in(tmp_path / "none")) == []
