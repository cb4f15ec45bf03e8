"""Items that were kept beside the cache: they are those of the records, and what is stale or half is not believed."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from item_runs import FEW, ONE, TWO, answer, write_records
from packed_items import whole_columns

from millstream.bench.evaluation.door.served_rows import ServedRows
from millstream.bench.evaluation.page import reporting
from millstream.bench.evaluation.page.items import Matrix, RunItems
from millstream.bench.evaluation.page.kept_items import FOLDER, LINES_LEAST, keep, load
from millstream.bench.evaluation.page.runs import read_run
from millstream.bench.task.benchmark import BENCHMARK
from millstream.bench.task.shown_items import TaskItemReader
from millstream.engine.pairs import Pair

MANIFEST: dict[str, Any] = {"specification": {"benchmark": "task", "models": [ONE, TWO], "temperatures": [None]}}
FAILURE = {"id": "same/1", "item": "same", "step": 1, "model": ONE, "temperature": None, "status": "timeout"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = write_records(tmp_path / "run", FEW)
    return write_records(folder, [FAILURE], "failures.jsonl")


def kept(run: Path) -> Path:
    """The cache folder, in which the run's items are kept."""
    keep(read_run(BENCHMARK, run, None, {}).items, MANIFEST, run.parent / "cache", 1)
    return run.parent / "cache"


def loaded(run: Path, manifest: dict[str, Any] = MANIFEST, rows: ServedRows | None = None) -> RunItems:
    items = RunItems(run, TaskItemReader(None), rows or ServedRows())
    load(items, manifest, run.parent / "cache")
    return items


def test_kept_items_are_those_of_the_records(run: Path) -> None:
    kept(run)
    one, other = Matrix([loaded(run)], {}), Matrix([read_run(BENCHMARK, run, None, {}).items], {})
    assert whole_columns(one.columns()) == whole_columns(other.columns()) and len(one.runs[0]) == len(FEW) + 1
    assert [one.details(name) for name in one.items] == [other.details(name) for name in other.items]


def test_lines_that_came_later_are_read_on_and_no_other(run: Path) -> None:
    kept(run)
    items = loaded(run)
    size = (run / "records.jsonl").stat().st_size
    assert items.read["records.jsonl"].size == size
    more = json.dumps(answer("late", TWO, "A", score=1.0)).encode()
    with (run / "records.jsonl").open("ab") as file:
        file.write(more + b"\n")
    items = loaded(run)
    assert list(items.reading([more], "records.jsonl")) == [more]
    assert whole_columns(Matrix([items], {}).columns()) == whole_columns(
        Matrix([read_run(BENCHMARK, run, None, {}).items], {}).columns()
    )
    # What is kept then covers the new line too.
    keep(items, MANIFEST, run.parent / "cache", 1)
    assert "late" in loaded(run).items


def edited(path: Path, words: bytes, others: bytes) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(words, others, 1))
    assert path.stat().st_size == len(data) and path.read_bytes() != data


def replaced(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines)))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


STALE: dict[str, Callable[[Path], object]] = {
    "a line is edited": lambda run: edited(run / "records.jsonl", b'"score": 1.0', b'"score": 0.0'),
    "the lines are others of the same size": lambda run: replaced(run / "records.jsonl"),
    "the records are cut": lambda run: cut(run / "records.jsonl"),
    "the records are gone": lambda run: (run / "records.jsonl").unlink(),
    "the failures were asked again": lambda run: (run / "failures.jsonl").write_bytes(b""),
    "a failure is edited": lambda run: edited(run / "failures.jsonl", b"timeout", b"connect"),
}


@pytest.mark.parametrize("how", STALE)
def test_items_of_other_files_are_not_believed(run: Path, how: str) -> None:
    kept(run)
    times = {path: path.stat() for path in run.iterdir()}
    STALE[how](run)
    for path, status in times.items():
        if path.exists():
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert len(loaded(run)) == 0


def test_items_of_another_specification_rows_or_data_are_not_believed(run: Path) -> None:
    kept(run)
    assert len(loaded(run)) == len(FEW) + 1
    assert len(loaded(run, {"specification": {**MANIFEST["specification"], "score": {}}})) == 0
    assert len(loaded(run, rows=ServedRows({Pair(ONE, None): {"other": "lab/other"}}))) == 0
    items = RunItems(run, TaskItemReader(None))
    items.reader.source = "of other data"
    load(items, MANIFEST, run.parent / "cache")
    assert len(items) == 0


def test_half_a_file_is_not_believed_and_one_that_a_kill_left_is_in_nobodys_way(run: Path) -> None:
    (path,) = (kept(run) / FOLDER).iterdir()
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        assert len(loaded(run)) == 0
        path.write_bytes(whole[:size] + bytes([whole[size] ^ 1]) + whole[size + 1 :])
        assert len(loaded(run)) == 0
    path.unlink()
    path.with_name(f"{path.name}.new").write_bytes(whole[: len(whole) // 2])
    assert len(loaded(run)) == 0
    assert path in (kept(run) / FOLDER).iterdir() and len(loaded(run)) == len(FEW) + 1


def test_a_cache_folder_that_takes_no_file_changes_nothing(run: Path) -> None:
    (run.parent / "cache").write_text("a file")
    before = {path: path.read_bytes() for path in run.iterdir()}
    kept(run)
    assert len(loaded(run)) == 0
    assert {path: path.read_bytes() for path in run.iterdir()} == before


def test_several_writers_at_once_leave_whole_items_or_none(run: Path) -> None:
    items = read_run(BENCHMARK, run, None, {}).items

    def write() -> None:
        for _ in range(60):
            keep(items, MANIFEST, run.parent / "cache", 1)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(len(loaded(run)))
    for writer in writers:
        writer.join()
    assert seen <= {0, len(items)}
    kept(run)
    assert len(loaded(run)) == len(items)


def test_the_oldest_are_removed_where_all_take_much_room(run: Path) -> None:
    folder = kept(run) / FOLDER
    for at, name in enumerate(("old", "older")):
        (folder / name).touch()
        os.truncate(folder / name, 600 << 20)  # a hole, which takes no room
        os.utime(folder / name, (1_000 - at, 1_000 - at))
    kept(run)
    assert "old" in os.listdir(folder) and "older" not in os.listdir(folder) and len(loaded(run)) == len(FEW) + 1


def test_a_report_keeps_the_items_of_a_large_run_for_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    line = {"item": "q", "step": 1, "model": ONE, "temperature": None, "status": "ok", "text": "A", "score": 1.0}
    records = ({**line, "id": f"q/{trial}", "trial": trial} for trial in range(LINES_LEAST))
    folder = write_records(tmp_path / "run", records)
    asked = {"score": {"mine": {"scorer": "function", "name": "mine"}}, "items": 1, "trials": LINES_LEAST}
    specification = {**MANIFEST["specification"], "models": [ONE], **asked}
    manifest = {"format": 1, "ended": None, "specification": specification}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    reporting.read(folder)
    items = RunItems(folder, BENCHMARK.item_reader(manifest))
    load(items, manifest, tmp_path / "millstream")
    assert len(items) == LINES_LEAST
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "records.jsonl"]
