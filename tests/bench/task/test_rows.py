"""The data of a task: files, folders and iterables give the same rows; what is wrong is told by its row."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import millstream.bench.evaluation.data.data_rows as data
from millstream.bench.evaluation.data.hugging_face import entries_of_folder
from millstream.bench.task.rows import TaskError, TaskRow, digest_of, rows_of
from millstream.engine.runs.data_file import DatasetError

CAPITALS = [{"country": "France", "capital": "Paris"}, {"country": "Peru", "capital": "Lima"}]


def read(path: Path) -> tuple[TaskRow, ...]:
    return rows_of(data.entries_of_file(path))


def of(rows: Any, group: str | None = None) -> tuple[TaskRow, ...]:
    return rows_of(data.entries_of_iterable(rows), group)


def write_csv(path: Path, rows: list[dict[str, str]], delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")


def write_arrow(path: Path, rows: list[dict[str, str]]) -> None:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


WRITERS: Mapping[str, Callable[[Path, list[dict[str, str]]], object]] = {
    "comma.csv": write_csv,
    "semicolon.csv": lambda path, rows: write_csv(path, rows, ";"),
    "tab.tsv": lambda path, rows: write_csv(path, rows, "\t"),
    "lines.jsonl": write_lines,
    "misnamed.json": write_lines,
    "list.json": lambda path, rows: path.write_text(json.dumps(rows)),
    "packed.jsonl.gz": lambda path, rows: path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode())),
    "table.parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path),
    "stream.arrow": write_arrow,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_rows_as_a_list(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name, CAPITALS)
    rows = read(tmp_path / name)
    assert [row.data for row in rows] == CAPITALS
    assert [row.id for row in rows] == [row.id for row in of(CAPITALS)]
    assert digest_of(rows) == digest_of(of(iter(CAPITALS)))
    assert str(tmp_path / name) in rows[0].where


def test_an_id_is_the_content_and_its_occurrence_where_no_column_gives_it() -> None:
    rows = of([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}])
    assert rows[1].id == f"{rows[0].id}-2"
    assert len({row.id for row in rows}) == 3
    assert [row.id for row in of([{"id": 7, "a": 1}, {"id": "x/1", "a": 1}])] == ["7", "x/1"]


def test_the_group_is_a_column_given_or_named_group() -> None:
    rows = [{"group": "Europe", "size": 1}, {"group": "", "size": None}]
    assert [row.group for row in of(rows)] == ["Europe", "(none)"]
    assert [row.group for row in of(rows, "size")] == ["1", "(none)"]
    assert [row.group for row in of(CAPITALS)] == [None, None]


def test_values_that_json_does_not_know_are_written_as_texts_and_numbers() -> None:
    given = {
        "day": datetime.date(2026, 1, 2),
        "image": b"abc",
        "array": np.array([1, 2]),
        "number": np.float64(0.5),
        "none": float("nan"),
        "long": 1 << 70,
    }
    (row,) = of([given])
    assert row.as_json() == {
        "day": "2026-01-02",
        "image": "<3 bytes, sha256 ba7816bf8f01cfea>",
        "array": [1, 2],
        "number": 0.5,
        "none": None,
        "long": str(1 << 70),
    }
    assert row.data["image"] == b"abc"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "the data has no rows"),
        (["France"], r"row 1: expected a mapping of column names to values, got 'France' \(a str\)"),
        ([{}], "row 1: expected a row with columns"),
        ([{"id": "a"}, {"id": "a"}], "row 2: id 'a' stands in row 1 too"),
        ([{"id": "a"}, {"b": "a"}], "row 2: no column 'id': it has b"),
        ([{"id": " a"}], "row 1: id: expected 1 to 200 characters"),
        ([{"id": None}], "row 1: id: expected a text or a whole number, got None"),
        ([{"id": 1.5}], "row 1: id: expected a text or a whole number, got 1.5"),
        ([{"a": object()}], "row 1: column a: a object cannot be written as JSON"),
        ([{"a": "\ud800"}], "row 1: column a: character 0 is half of a surrogate pair"),
        ({"a": 1}, "data: expected a path, or an iterable of mappings"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_by_its_place(rows: Any, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        of(rows)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "a,b\n1\n", "a.csv line 2: expected 2 cells, as the first line has, got 1"),
        ("a.csv", "# capitals\na,b\n", "got 2: its first line begins with #, but such a file has no comments$"),
        ("a.csv", "a,a\n1,2\n", "a.csv line 1: expected a name for each column, each once, got 'a' 2 times"),
        ("a.csv", 'a\n"1\n', "a.csv line 2: expected a row of cells"),
        ("a.jsonl", '{"a": 1}\n{"a"\n', "a.jsonl line 2: expected JSON"),
        ("a.json", "3", "a.json: expected a list of objects, or one object a line, got 3"),
        ("a.txt", "a", "a.txt: expected a file that ends with .csv"),
        ("a.parquet", "a", "a.parquet: expected a parquet file, got something else"),
        ("a.csv.gz", "a", "a.csv.gz: expected a gzip file"),
        ("a.parquet", "version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS, not the data"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DatasetError, match=said):
        read(tmp_path / name)


def test_a_cell_may_hold_a_long_document(tmp_path: Path) -> None:
    limit, document = csv.field_size_limit(), "x" * 300_000
    write_csv(tmp_path / "a.csv", [{"document": document}])
    try:
        assert read(tmp_path / "a.csv")[0].data == {"document": document}
    finally:
        csv.field_size_limit(limit)


def hub_folder(folder: Path, readme: str = "", **files: str) -> Path:
    """A cloned data set; `__` in a name stands for a slash, and each file holds its own name."""
    for name, value in files.items():
        path = folder / f"{name.replace('__', '/').replace('_of_', '-of-').replace('_0', '-0')}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"is": value}))
    (folder / "README.md").write_text(f"---\n{readme}\n---\n# A data set\n" if readme else "# A data set\n")
    return folder


def taken(folder: Path, subset: str | None = None, split: str | None = None) -> list[str]:
    return [entry.content["is"] for entry in entries_of_folder(folder, subset, split)]


def test_a_folder_without_a_declaration_is_split_by_the_names_of_its_files(tmp_path: Path) -> None:
    shards = {"data__train_00000_of_00002": "one", "data__train_00001_of_00002": "two", "data__test": "three"}
    folder = hub_folder(tmp_path, **shards)
    assert (taken(folder, split="train"), taken(folder, split="test")) == (["one", "two"], ["three"])
    with pytest.raises(TaskError, match='split: expected one of test, train; none is named: set split="…" in the task'):
        taken(folder)
    with pytest.raises(TaskError, match="got 'dev'"):
        taken(folder, split="dev")


def test_a_folder_declares_its_subsets_and_splits_in_its_readme(tmp_path: Path) -> None:
    readme = """configs:
- config_name: main
  data_files:
  - {split: test, path: "main/test-*"}
  - {split: train, path: ["main/train-*", "more/*"]}
- config_name: small
  data_dir: small"""
    files = {"main__test_00000": "a", "main__train_00000": "b", "more__x": "c", "small__test": "d"}
    folder = hub_folder(tmp_path, readme, **files)
    assert taken(folder, "main", "test") == ["a"]
    assert taken(folder, "main", "train") == ["b", "c"]
    assert taken(folder, "small") == ["d"]
    with pytest.raises(TaskError, match="subset: expected one of main, small; none is named"):
        taken(folder)


@pytest.mark.parametrize(
    ("readme", "said"),
    [
        ("configs:\n- data_files: ../*.jsonl", "expected a path inside the folder"),
        ("configs:\n- data_files: hf://datasets/x/y.csv", "expected a path inside the folder"),
        ("configs:\n- data_dir: ../other", "expected a path inside the folder"),
        ("configs:\n- data_files: none-*.csv", "no file matches 'none-"),
        ("configs: [", "expected YAML at its beginning"),
    ],
)
def test_a_declaration_that_leads_nowhere_is_refused(tmp_path: Path, readme: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        taken(hub_folder(tmp_path, readme, test="a"))


def test_a_data_set_that_its_library_saved_is_read_by_its_own_list_of_files(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["test"]}')
    (tmp_path / "test").mkdir()
    write_arrow(tmp_path / "test/data-00000-of-00001.arrow", [{"is": "a"}])
    write_arrow(tmp_path / "test/cache-1.arrow", [{"is": "no part of it"}])
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
    (tmp_path / "test/state.json").write_text(json.dumps(state))
    assert taken(tmp_path) == taken(tmp_path, split="test") == taken(tmp_path / "test") == ["a"]
    (tmp_path / "test/state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "i.arrow"}]}))
    with pytest.raises(TaskError, match="flatten_indices"):
        taken(tmp_path)
