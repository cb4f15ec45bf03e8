"""Data much larger than what is asked of it: `--limit N` reads N rows, and rows that no memory holds are refused."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from watched_memory import run_watched

import millstream as ms
from millstream.bench.task.questions import questions_of
from millstream.bench.task.rows import RowEntry, TaskError, rows_of

HOLE = 40 << 30
PARQUET = """import millstream as ms

long = ms.Task(data="long.parquet", prompt="{text}", score=ms.match("{text}"))
"""


def first_rows(path: Path) -> list[str]:
    task = ms.Task(data=str(path), prompt="Say {a}", score=ms.match("{a}"))
    return [str(question.input) for question in questions_of(task, path.parent, 3)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv"])
def test_the_first_rows_of_a_file_with_a_hole_of_40_gib_are_read_without_the_rest(tmp_path: Path, name: str) -> None:
    rows = [json.dumps({"a": number}) for number in range(4)] if name == "a.jsonl" else ["a", *map(str, range(4))]
    with (tmp_path / name).open("wb") as file:
        file.write("\n".join([*rows, ""]).encode())
        file.truncate(HOLE)
    assert first_rows(tmp_path / name) == ["Say 0", "Say 1", "Say 2"]


def test_a_packed_file_is_unpacked_no_further_than_its_first_rows(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with gzip.open(packed, "wb") as file:
        for number in range(100_000):
            file.write(json.dumps({"a": number, "b": f"{number:x}" * 20}).encode() + b"\n")
    # Cut in the middle: whoever unpacks all of it fails.
    (tmp_path / "a.jsonl.gz").write_bytes(packed.getvalue()[: len(packed.getvalue()) // 2])
    assert first_rows(tmp_path / "a.jsonl.gz") == ["Say 0", "Say 1", "Say 2"]


@pytest.mark.process
def test_a_small_table_of_100_gb_is_planned_for_three_rows_in_little_memory(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"text": texts}), tmp_path / "long.parquet", compression="zstd")
    assert (tmp_path / "long.parquet").stat().st_size < 1 << 20
    (tmp_path / "long.py").write_text(PARQUET)
    where = ("--model", "sim/open", "--base-url", "http://127.0.0.1:9", "--cache", "cache")
    watched = run_watched(tmp_path, "plan", "long.py", "--limit", "3", *where)
    assert watched.done.code == 0 and "3 rows" in watched.done.out
    assert watched.peak_mb < 400


def test_more_text_than_the_memory_should_hold_is_refused_and_the_limit_is_named() -> None:
    text = "x" * (64 << 20)
    entries = (RowEntry({"a": text}, f"row {number}") for number in range(1, 1_000))
    with pytest.raises(
        TaskError, match="row 17: expected at most 1,073,741,824 characters in all rows, got more: give"
    ):
        rows_of(entries)


def test_a_list_that_is_parsed_whole_has_a_bound_of_its_own(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(HOLE)
    with pytest.raises(TaskError, match=r"a\.json: expected at most 256 MiB, got more: give --limit, or the rows as"):
        first_rows(tmp_path / "a.json")
