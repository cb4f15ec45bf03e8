"""A batch's output after kills at every byte: what has row and note is done, and all else is asked again."""

from __future__ import annotations

import shutil
from pathlib import Path
from zlib import crc32

import orjson
import pytest

from millstream.configuration.errors import UsageError
from millstream.engine.fault import DamagedJournal, RunHeld
from millstream.interfaces.batch.batch_store import BatchStore
from millstream.interfaces.batch.place import BatchPlace
from millstream.interfaces.batch.requests import BadLine
from millstream.interfaces.batch.rows import Note, NotedRow, row_id, row_of_broken

TAG = "0123456789abcdef"
LAST = 9
SPECIFICATION = {"benchmark": "batch", "input": "a file"}


def opened(out: Path, *, errors: Path | None = None, retry: bool = False) -> BatchStore:
    return BatchStore(BatchPlace(out, errors), SPECIFICATION, TAG, LAST, retry=retry)


def answer(line: int, text: str = "A") -> NotedRow:
    row = orjson.dumps({"id": row_id(TAG, line), "custom_id": f"r{line}", "response": {"body": text}, "error": None})
    return NotedRow(row, Note(id=f"r{line}", line=line, row_crc=crc32(row), status="ok", cost=0.25))


def failure(line: int) -> NotedRow:
    return row_of_broken(BadLine(line, f"r{line}", "timeout", f"no answer {line}"), TAG)


def lines_done(store: BatchStore) -> dict[int, int]:
    return {line: kind for line, kind in enumerate(store.done) if kind}


def written(out: Path, *rows: NotedRow) -> None:
    with opened(out) as store:
        for row in rows:
            store.keep(row)
        store.flush()


def ids(path: Path) -> list[int]:
    return [int(orjson.loads(row)["id"][-8:], 16) for row in path.read_bytes().splitlines()]


def test_rows_are_found_again_with_what_they_cost(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    written(out, answer(1), failure(3), answer(7))
    with opened(out) as store:
        assert (lines_done(store), store.already, store.spent) == ({1: 1, 3: 2, 7: 1}, 3, 0.5)
        ended = store.count()
    assert (ended.ok, ended.failed, ended.cost) == (2, {"timeout": 1}, 0.5)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_kill_at_any_byte_of_the_output_leaves_whole_rows_and_the_rest_to_be_asked(step: int, tmp_path: Path) -> None:
    """At every byte beside the end of a line, and at every `step`-th of the others."""
    written(tmp_path / "out.jsonl", *(answer(line) for line in range(1, 6)))
    whole = (tmp_path / "out.jsonl").read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    beside = {end + by for end in ends[1:] for by in (-2, -1, 0, 1)}
    for cut in sorted({*range(ends[1], len(whole) + 1, step), *beside} & {*range(ends[1], len(whole) + 1)}):
        out = tmp_path / f"{cut}.jsonl"
        out.write_bytes(whole[:cut])
        shutil.copytree(tmp_path / "out.jsonl.millstream", tmp_path / f"{cut}.jsonl.millstream")
        with opened(out) as store:
            kept = sum(end <= cut for end in ends)
            assert lines_done(store) == dict.fromkeys(range(1, kept + 1), 1)
            for line in range(kept + 1, 6):
                store.keep(answer(line))
            store.flush()
            assert store.count().ok == 5
        assert out.read_bytes() == whole
        shutil.rmtree(tmp_path / f"{cut}.jsonl.millstream")


def test_a_power_cut_at_any_byte_of_the_notes_leaves_no_row_that_is_believed_without_one(tmp_path: Path) -> None:
    written(tmp_path / "out.jsonl", *(answer(line) for line in range(1, 6)))
    notes = (tmp_path / "out.jsonl.millstream/records.jsonl").read_bytes()
    rows = (tmp_path / "out.jsonl").read_bytes()
    ends = [at + 1 for at, byte in enumerate(notes) if byte == 10]
    for cut in range(ends[2], len(notes) + 1, 7):
        out = tmp_path / f"{cut}.jsonl"
        out.write_bytes(rows)
        shutil.copytree(tmp_path / "out.jsonl.millstream", tmp_path / f"{cut}.jsonl.millstream")
        (tmp_path / f"{cut}.jsonl.millstream/records.jsonl").write_bytes(notes[:cut])
        with opened(out) as store:
            kept = sum(end <= cut for end in ends)
            assert lines_done(store) == dict.fromkeys(range(1, kept + 1), 1)
        assert ids(out) == list(range(1, kept + 1))
        shutil.rmtree(tmp_path / f"{cut}.jsonl.millstream")


def test_a_note_that_lost_its_row_does_not_stand_against_the_row_that_came_later(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with opened(out) as store:
        store.note(failure(1).note)
        store.note(answer(2, "lost").note)
        store.flush()
    written(out, answer(1), failure(2))
    with opened(out) as store:
        assert lines_done(store) == {1: 1, 2: 2}
        ended = store.count()
    # What was paid for the lost one was paid.
    assert (ended.ok, ended.failed, ended.cost) == (1, {"timeout": 1}, 0.5)


def test_a_retry_that_is_killed_before_it_asks_has_dropped_failures_alone(tmp_path: Path) -> None:
    out, errors = tmp_path / "out.jsonl", tmp_path / "errors.jsonl"
    with opened(out, errors=errors) as store:
        for row in (answer(1), failure(2), failure(3)):
            store.keep(row)
        store.flush()
    assert (ids(out), ids(errors)) == ([1], [2, 3])
    # Killed between the notes' retirement and the rows' removal, whatever comes next finds out.
    beside = tmp_path / "out.jsonl.millstream"
    (beside / "failures.jsonl").rename(beside / "failures-1.jsonl")
    for retry in (False, True, False):
        with opened(out, errors=errors, retry=retry) as store:
            assert lines_done(store) == {1: 1}
        assert (ids(out), ids(errors)) == ([1], [])
    assert len((beside / "replaced.jsonl").read_bytes().splitlines()) == 2


def test_the_inputs_order_is_made_of_whole_rows_and_only_where_it_is_another(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    written(out, *(answer(line, "x" * line) for line in (4, 1, 9, 2)))
    with opened(out) as store:
        store.close_rows()
        store.put_in_order()
        first = out.stat().st_ino
        assert ids(out) == [1, 2, 4, 9]
        store.put_in_order()
        assert out.stat().st_ino == first
    with opened(out) as store:
        assert lines_done(store) == dict.fromkeys((1, 2, 4, 9), 1)


@pytest.mark.parametrize("row", [b"my notes", answer(12).row, answer(1).row.replace(TAG.encode(), b"f" * 16), b""])
def test_a_row_of_nobody_refuses(tmp_path: Path, row: bytes) -> None:
    out = tmp_path / "out.jsonl"
    written(out, answer(1))
    with out.open("ab") as file:
        file.write(row + b"\n")
    with pytest.raises(DamagedJournal, match="line 2 is no row of this batch"):
        opened(out)


def test_an_output_is_held_by_one_and_belongs_to_one_input(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with opened(out), pytest.raises(RunHeld, match="wait until it has ended"):
        opened(out)
    with pytest.raises(UsageError, match=r"another batch \(input: a file in that run, another in this\)"):
        BatchStore(BatchPlace(out), {**SPECIFICATION, "input": "another"}, TAG, LAST)
