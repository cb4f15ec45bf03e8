"""`millstream export --rows-per-file`: a folder of files is one table, the same as the single file."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pandas  # type: ignore[import-untyped]
import polars
import pyarrow.dataset as dataset  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from answered_run import ANSWERS, answered_run
from batches import rows_of, write_mixed
from command_line import CommandLine, Provider, finish, start
from places import small_disk
from watched_memory import run_watched

from millstream.configuration.errors import UsageError
from millstream.engine.runs.journal import sealed
from millstream.interfaces.export import parquet
from millstream.interfaces.export.rows import sources_at

pytestmark = pytest.mark.needs_benchmark("millstone")

N = 50
FILES = -(-ANSWERS // N)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose last answers alone have usage, cost and another model, so that guessed types would differ."""
    folder = answered_run(tmp_path_factory.mktemp("parts") / "run", lambda item: f"<<A>> {item.id}")
    records = rows_of(folder / "records.jsonl")
    for number, record in enumerate(records):
        del record["crc"]
        if number >= ANSWERS - 5:
            record |= {"usage": {"input": number, "output": 3}, "cost": 0.25, "model": f"sim/{number}"}
    (folder / "records.jsonl").write_bytes(b"".join(sealed(json.dumps(each).encode()) for each in records))
    return folder


def many(folder: Path, run: Path, times: int) -> Path:
    folder.mkdir()
    (folder / "records.jsonl").write_bytes((run / "records.jsonl").read_bytes() * times)
    return folder


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def from_duckdb(pattern: str) -> list[dict[str, Any]]:
    found = duckdb.connect().execute(f"select * from read_parquet('{pattern}')")
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_the_files_of_a_folder_are_the_single_file_in_its_order(cli: CommandLine, tmp_path: Path, run: Path) -> None:
    assert cli("export", str(run), "--out", "one.parquet").code == 0
    done = cli("export", str(run), "--rows-per-file", str(N), "--out", "many.parquet")
    assert (done.code, done.out) == (0, f"many.parquet: {ANSWERS} rows in {FILES} files (ok {ANSWERS})\n")
    one, several = tmp_path / "one.parquet", tmp_path / "many.parquet"
    assert names_in(several) == [f"part-{number:05}.parquet" for number in range(FILES)]
    assert [pq.read_metadata(path).num_rows for path in sorted(several.iterdir())] == [N, N, ANSWERS - 2 * N]
    schemas = [pq.read_schema(path) for path in (one, *several.iterdir())]
    assert all(schema.equals(schemas[0], check_metadata=True) for schema in schemas)
    wanted = pq.read_table(one).to_pylist()
    assert len({row["id"] for row in wanted}) == ANSWERS and wanted[-1]["usage"]["output"] == 3
    assert dataset.dataset(several).to_table().to_pylist() == wanted
    assert polars.read_parquet(several).to_dicts() == polars.read_parquet(one).to_dicts()
    assert pandas.read_parquet(several)["id"].to_list() == [row["id"] for row in wanted]
    assert from_duckdb(f"{several}/*.parquet") == from_duckdb(str(one))


RAY = """
import json, sys
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=300 << 20)
ray.data.DataContext.get_current().execution_options.preserve_order = True
rows = ray.data.read_parquet(sys.argv[1]).take_all()
print("\\n" + json.dumps([[row["id"], row["model"], row["cost"]] for row in rows]))
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ray_data_reads_the_folder(cli: CommandLine, tmp_path: Path, run: Path) -> None:
    pytest.importorskip("ray.data")
    assert cli("export", str(run), "--rows-per-file", str(N), "--out", "many.parquet").code == 0
    done = subprocess.run(
        [sys.executable, "-c", RAY, str(tmp_path / "many.parquet")],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    rows = pq.read_table(tmp_path / "many.parquet").to_pylist()
    assert json.loads(done.stdout.splitlines()[-1]) == [[row["id"], row["model"], row["cost"]] for row in rows]


def test_each_run_has_a_folder_where_it_would_have_a_file(cli: CommandLine, tmp_path: Path, run: Path) -> None:
    for name in ("first", "second"):
        many(tmp_path / name, run, 1)
    done = cli("export", "first", "second", "--rows-per-file", str(ANSWERS), "--out", "tables", "--json")
    assert done.code == 0, done.err
    assert [(each["file"], each["rows"], each["parts"]) for each in json.loads(done.out)["files"]] == [
        ("tables/first.parquet", ANSWERS, 1),
        ("tables/second.parquet", ANSWERS, 1),
    ]
    assert len(from_duckdb(f"{tmp_path}/tables/*/*.parquet")) == 2 * ANSWERS
    assert cli("export", "first", "--rows-per-file", "1000").code == 0
    assert names_in(tmp_path / "first/records.parquet") == ["part-00000.parquet"]


def test_a_run_without_answers_is_one_file_without_rows(cli: CommandLine, tmp_path: Path, run: Path) -> None:
    shutil.copytree(run, tmp_path / "none")
    (tmp_path / "none/records.jsonl").write_bytes(b"")
    assert cli("export", "none", "--rows-per-file", "5").code == 0
    table = dataset.dataset(tmp_path / "none/records.parquet").to_table()
    assert table.num_rows == 0 and "text" in table.column_names


def test_a_batch_is_cut_too(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    write_mixed(tmp_path / "in.jsonl", 20)
    cli("batch", "in.jsonl", "out.jsonl", "--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    assert cli("export", "out.jsonl", "--rows-per-file", "8").code == 0
    assert cli("export", "out.jsonl", "--out", "one.parquet").code == 0
    assert len(names_in(tmp_path / "out.jsonl.parquet")) == 3
    found = dataset.dataset(tmp_path / "out.jsonl.parquet").to_table()
    assert found.to_pylist() == pq.read_table(tmp_path / "one.parquet").to_pylist()


@pytest.mark.parametrize("again", [("--rows-per-file", "9"), ()])
def test_an_existing_folder_is_neither_replaced_nor_added_to(
    cli: CommandLine, tmp_path: Path, run: Path, again: tuple[str, ...]
) -> None:
    assert cli("export", str(run), "--rows-per-file", str(N), "--out", "many.parquet").code == 0
    done = cli("export", str(run), *again, "--out", "many.parquet")
    assert (done.code, done.err.count("\n")) == (2, 1) and "many.parquet is there already" in done.err
    assert len(names_in(tmp_path / "many.parquet")) == FILES and names_in(tmp_path) == ["many.parquet"]


def test_an_export_that_fails_leaves_nothing(cli: CommandLine, tmp_path: Path, run: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/records.jsonl").write_bytes((run / "records.jsonl").read_bytes() + b'{"id": 7}\n')
    done = cli("export", "bad", "--rows-per-file", "10")
    assert done.code == 2 and f"line {ANSWERS + 1}" in done.err and done.err.count("\n") == 1
    assert names_in(tmp_path / "bad") == ["records.jsonl"]
    with small_disk(tmp_path / "disk", 64 << 10) as disk:
        done = cli("export", str(run), "--rows-per-file", "10", "--out", str(disk / "table.parquet"))
        assert done.code == 5 and "can't be written" in done.err and done.err.count("\n") == 1
        assert not list(disk.iterdir())


def test_what_a_kill_leaves_is_never_read_and_goes_with_the_next_export(
    cli: CommandLine, tmp_path: Path, run: Path
) -> None:
    many(tmp_path / "long", run, 30)
    export = start(tmp_path, "export", "long", "--rows-per-file", "1", "--out", "tables")
    until = time.monotonic() + 30
    while not (left := list(tmp_path.glob("tables/.long.parquet.*/part-00002"))):
        assert export.poll() is None and time.monotonic() < until
        time.sleep(0.002)
    export.kill()
    finish(export)
    assert not list((tmp_path / "tables").rglob("*.parquet"))
    with pytest.raises(duckdb.IOException, match="No files found"):
        from_duckdb(f"{tmp_path}/tables/**/*.parquet")
    held = tmp_path / "tables/.long.parquet.8.millstream-new"
    held.mkdir()
    folder = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert cli("export", "long", "--rows-per-file", "1000", "--out", "tables").code == 0
    finally:
        os.close(folder)
    assert held.exists() and not left[0].parent.exists()
    assert len(from_duckdb(f"{tmp_path}/tables/**/*.parquet")) == 30 * ANSWERS


def test_more_files_than_names_that_sort_are_refused(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_PARTS_MAX", 3)
    (source,) = sources_at(run)
    assert parquet.export(source, tmp_path / "three.parquet", -(-ANSWERS // 3)).parts == 3
    with pytest.raises(UsageError, match=r"--rows-per-file: expected enough for .* to need at most 3 files, got 10$"):
        parquet.export(source, tmp_path / "four.parquet", 10)
    assert names_in(tmp_path) == ["three.parquet"]


@pytest.mark.long
def test_many_files_are_written_in_the_memory_of_few(tmp_path: Path, run: Path) -> None:
    peaks = []
    for times in (200, 800):
        many(tmp_path / f"{times}", run, times)
        done, peak_mb = run_watched(tmp_path, "export", f"{times}", "--rows-per-file", "5000")
        assert done.code == 0, done.err
        peaks.append(peak_mb)
        assert dataset.dataset(tmp_path / f"{times}/records.parquet").count_rows() == times * ANSWERS
    assert peaks[1] < peaks[0] + 40, peaks


@pytest.mark.parametrize("rows", ["0", "-1", "1.5", "many", "2000000000"])
def test_a_wrong_number_is_one_line(cli: CommandLine, tmp_path: Path, run: Path, rows: str) -> None:
    done = cli("export", str(run), f"--rows-per-file={rows}", "--out", "tables")
    assert done.code == 2 and "--rows-per-file: expected a whole number of rows" in done.err
    assert done.err.count("\n") == 1 and not list(tmp_path.iterdir())
