"""`millstream export --parquet`: what pyarrow, pandas, polars and DuckDB read is what the records say."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import numpy
import pandas  # type: ignore[import-untyped]
import polars
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from answered_run import ANSWERS, answered_run
from batches import request, rows_of, write_mixed
from chameleon_records import run_records, turn_record
from command_line import COMMAND, CommandLine, Provider, environment, finish, start
from places import small_disk
from watched_memory import run_watched

from millstream.bench.chameleon.records import Record as Turn
from millstream.bench.evaluation.running.journals import encode
from millstream.bench.millstone.grid import GridItem
from millstream.engine.runs.journal import sealed
from millstream.interfaces.export.columns import record_of, schema_of

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

NASTY = (
    "A\x00B",
    "é ✓ 😀 \u2028",
    "line\r\nbreak\ttab",
    '"quoted", \\',
    "=1+1",
    "",
    " " * 9,
    "\ufffd\U0010ffff",
    "</script>",
)


def nasty(item: GridItem) -> str:
    return f"position <<A>> {NASTY[crc32(item.id.encode()) % len(NASTY)]} {item.id}"


def plain(value: Any) -> Any:
    """What a library made of a value, as JSON has it: no difference of libraries, and none of 7 and 7.0."""
    match value:
        case None:
            return None
        case float() | numpy.floating() if math.isnan(value):
            return None
        case numpy.generic():
            return plain(value.item())
        case numpy.ndarray() | list() | tuple():
            return [plain(each) for each in value]
        case dict():
            found = {name: plain(each) for name, each in value.items()}
            return found if any(each is not None for each in found.values()) else None
        case _ if value is pandas.NA:
            return None
    return value


def read_by(library: str, path: Path) -> list[dict[str, Any]]:
    match library:
        case "pyarrow":
            rows = pq.read_table(path).to_pylist()
        case "pandas":
            rows = pandas.read_parquet(path).to_dict("records")
        case "polars":
            rows = polars.read_parquet(path).to_dicts()
        case _:
            found = duckdb.connect().execute(f"select * from '{path}'")
            names = [column[0] for column in found.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return [{str(name): plain(value) for name, value in row.items()} for row in rows]


def expected(folder: Path, benchmark: str) -> list[dict[str, Any]]:
    """Every documented field of every record and failure; one that is missing there is null."""
    names = record_of(benchmark).__struct_fields__
    records = [*rows_of(folder / "records.jsonl"), *rows_of(folder / "failures.jsonl")]
    return [{name: plain(filled(record.get(name))) for name in names} for record in records]


_RARE = {"cache_write_5m": None, "cache_write_1h": None, "total": None, "place": None, "billed": None}


def filled(value: Any) -> Any:
    """Structs of a table have all their fields in every row."""
    if isinstance(value, dict) and "input" in value and "output" in value:
        return {"input": 0, "output": 0, "reasoning": None, "cached_input": None, **_RARE, **value}
    if isinstance(value, list):
        return [{"final_url": None, **each} if isinstance(each, dict) else each for each in value]
    if isinstance(value, dict):
        return {name: filled(each) for name, each in value.items()}
    return value


def alike(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        assert one == other


@pytest.fixture(scope="module")
def millstone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers with texts that tables may not like, and failures."""
    folder = answered_run(tmp_path_factory.mktemp("millstone") / "run", nasty)
    records = rows_of(folder / "records.jsonl")
    failed = {**records[0], "id": "x/1/baseline/0", "text": None, "letter": None, "stance": None, "status": "timeout"}
    failed = {name: value for name, value in failed.items() if name != "crc"} | {"error": "no answer\x00 in 600 s"}
    (folder / "failures.jsonl").write_bytes(sealed(json.dumps(failed, ensure_ascii=False).encode()))
    (folder / "records.jsonl").write_bytes(b"".join(rich_lines(records)))
    return folder


def rich_lines(records: list[dict[str, Any]]) -> Iterator[bytes]:
    """With and without what only some records have."""
    for number, record in enumerate(records):
        del record["crc"]
        if number % 2:
            record |= {"usage": {"input": number, "output": 3, "reasoning": 2}, "cost": 0.25, "latency_ms": 1.5}
        if number % 5 == 0:
            record |= {"raw_b64": "AAEC", "temperature": 0.5}
        yield sealed(json.dumps(record, ensure_ascii=False).encode())


@pytest.fixture(scope="module")
def chameleon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Turns with every field of ours, some with all that is rare."""
    folder = tmp_path_factory.mktemp("chameleon")
    records = [{**record, "invalid_citations": ["[99]"]} for record in run_records(conversations=3, turns=4)]
    rare = {
        "cut": {"pages": [1, 2], "dropped": [3], "history": 1},
        "from_cache": {"usage": {"input": 1, "output": 2}, "pages": 3, "judge": True},
        "usage": {"input": 9, "output": 8, "cached_input": 7},
        "key_claims": None, "confidence": None, "search_remarks": ["slow"], "raw_judgement": "{\x00", "cost_judge": 0.5,
        "retrieved": [{"url": "http://a", "status": "ok", "chars": 1, "hash": "00", "final_url": "http://b"}],
    }  # fmt: skip
    records[1] |= rare
    (folder / "records.jsonl").write_bytes(b"".join(sealed(json.dumps(each).encode()) for each in records))
    failed = Turn(id="c/1", conversation="c", turn=1, stance=None, model="m", status="search_failed", error="no hits")
    (folder / "failures.jsonl").write_bytes(sealed(encode(failed)))
    return folder


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars", "duckdb"])
@pytest.mark.parametrize("benchmark", ["millstone", "chameleon"])
def test_every_library_reads_what_the_records_say_field_by_field(
    cli: CommandLine, tmp_path: Path, request: pytest.FixtureRequest, benchmark: str, library: str
) -> None:
    folder: Path = request.getfixturevalue(benchmark)
    done = cli("export", str(folder), "--parquet", "--out", "table.parquet")
    assert done.code == 0, done.err
    found = read_by(library, tmp_path / "table.parquet")
    wanted = expected(folder, benchmark)
    rare = [name for name in ("cut", "from_cache") if name in wanted[0]]
    alike(
        [{name: value for name, value in row.items() if name not in rare} for row in found],
        [{name: value for name, value in row.items() if name not in rare} for row in wanted],
    )
    if rare:
        cut = {"pages": [1, 2], "dropped": [3], "history": 1, "judge_history": None, "old_pages": None}
        assert found[1]["cut"] == cut
        assert (found[1]["from_cache"]["usage"]["output"], found[1]["from_cache"]["pages"]) == (2, 3)
        assert found[0]["cut"] is None


def test_columns_are_typed_and_the_file_says_which_run_it_is_of(
    cli: CommandLine, tmp_path: Path, millstone: Path
) -> None:
    assert cli("export", str(millstone), "--parquet", "--out", "table.parquet").code == 0
    schema = pq.read_schema(tmp_path / "table.parquet")
    assert str(schema.field("usage").type).startswith("struct<input: int64, output: int64")
    assert str(schema.field("arguments").type).startswith("list<")
    assert str(schema.field("model").type).startswith("dictionary<values=string")
    assert all(schema.field(name).nullable for name in schema.names)
    manifest = json.loads((millstone / "manifest.json").read_text())
    told = {name.decode(): value.decode() for name, value in schema.metadata.items()}
    assert told["millstream.benchmark"] == "millstone" and json.loads(told["millstream.models"]) == ["sim/open"]
    assert told["millstream.manifest_hash"] == manifest["manifest_hash"]
    assert told["millstream.specification_hash"] == manifest["specification_hash"]


def test_records_of_another_program_need_only_the_documented_fields(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "talks").mkdir()
    # Half a character may stand there as an escape, and the last line may end without a newline.
    texts = ("half \ud83d and \x00 nothing", "whole", "and \udc00 half")
    rows = [json.dumps(turn_record(turn=at, text=text)) for at, text in enumerate(texts, 1)]
    (tmp_path / "talks/records.jsonl").write_text("\n\n".join(rows))
    assert cli("export", "talks", "--parquet").code == 0
    found = read_by("polars", tmp_path / "talks/records.parquet")
    assert [row["turn"] for row in found] == [1, 2, 3]
    assert (found[0]["text"], found[2]["text"]) == ("half ? and \x00 nothing", "and ? half")
    assert found[0]["judge"] is None


def test_a_batch_is_exported_with_its_notes_whatever_words_its_lines_are_in(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    prompt = "Which position do you agree with: A or B?"
    bodies = {
        "/v1/chat/completions": request("c", prompt, n=2)["body"],
        "/v1/responses": {"model": "sim/steady", "input": prompt},
        "/v1/messages": {"model": "sim/steady", "max_tokens": 60, "messages": [{"role": "user", "content": prompt}]},
        "/v1beta/models/sim%2Fsteady:generateContent": {"contents": [{"role": "user", "parts": [{"text": prompt}]}]},
    }
    rows = [{"custom_id": url, "method": "POST", "url": url, "body": body} for url, body in bodies.items()]
    (tmp_path / "in.jsonl").write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + b"nonsense\n")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--errors", "errors.jsonl")
    assert cli("batch", "in.jsonl", "out.jsonl", *where).code == 3
    assert cli("export", "out.jsonl", "--parquet").code == 0
    for library in ("pyarrow", "pandas", "polars", "duckdb"):
        found = {row["custom_id"]: row for row in read_by(library, tmp_path / "out.jsonl.parquet")}
        assert found.keys() == {*bodies, None}
        assert all(found[url]["text"] and found[url]["choices"][0]["finish_reason"] for url in bodies)
        assert len({found[url]["text"] for url in bodies}) == 1, "the simulated model says the same to all"
        assert len(found["/v1/chat/completions"]["choices"]) == 2
        assert found["/v1/messages"]["usage"]["output"] > 0 and found["/v1/messages"]["model"] == "sim/steady"
        assert (found["/v1/responses"]["status"], found["/v1/responses"]["line"]) == ("ok", 2)
        assert (found[None]["error"]["code"], found[None]["error"]["line"]) == ("invalid_json_line", 5)
    # From the folder beside it, the same.
    done = cli("export", "out.jsonl.millstream", "--parquet", "--out", "again.parquet")
    assert done.code == 0 and read_by("pyarrow", tmp_path / "again.parquet") == read_by(
        "pyarrow", tmp_path / "out.jsonl.parquet"
    )


def test_a_batch_that_is_still_written_has_a_note_for_each_of_its_rows(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    write_mixed(tmp_path / "in.jsonl", 2_000)
    provider.set_faults("slow_body=0.01")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--concurrency", "4")
    batch = start(tmp_path, "batch", "in.jsonl", "out.jsonl", *where)
    counts = []
    for number in range(3):
        provider.await_calls(provider.calls() + 40)
        assert cli("export", "out.jsonl", "--parquet", "--out", f"{number}.parquet").code == 0
        rows = read_by("pyarrow", tmp_path / f"{number}.parquet")
        assert all(row["model"] and row["attempts"] == 1 for row in rows if row["status"] == "ok")
        counts.append(len(rows))
    batch.kill()
    finish(batch)
    assert 0 < counts[0] < counts[2]


def test_a_changed_row_of_a_batch_refuses(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    write_mixed(tmp_path / "in.jsonl", 5)
    cli("batch", "in.jsonl", "out.jsonl", "--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    out = tmp_path / "out.jsonl"
    out.write_bytes(out.read_bytes().replace(b'"role"', b'"rule"', 1))
    done = cli("export", "out.jsonl", "--parquet")
    assert done.code == 5 and "out.jsonl line 1 was changed" in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "out.jsonl.parquet").exists()


def test_a_batch_whose_folder_is_gone_tells_what_its_rows_do(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    codes = write_mixed(tmp_path / "in.jsonl", 60)
    cli("batch", "in.jsonl", "out.jsonl", "--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    for path in (tmp_path / "out.jsonl.millstream").iterdir():
        path.unlink()
    (tmp_path / "out.jsonl.millstream").rmdir()
    assert cli("export", "out.jsonl", "--parquet", "--out", "table.parquet").code == 0
    found = {row["line"]: row for row in read_by("pyarrow", tmp_path / "table.parquet")}
    assert len(found) == 60 and {n: found[n]["status"] for n in codes} == codes
    assert found[1]["status"] == "ok" and found[1]["cost"] is None and found[1]["text"]


def test_nothing_is_overwritten_and_nothing_half_written_is_left(
    cli: CommandLine, tmp_path: Path, millstone: Path
) -> None:
    (tmp_path / "mine.parquet").write_text("mine")
    done = cli("export", str(millstone), "--parquet", "--out", "mine.parquet")
    assert done.code == 2 and "is there already" in done.err and (tmp_path / "mine.parquet").read_text() == "mine"
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/records.jsonl").write_bytes((millstone / "records.jsonl").read_bytes() + b'{"id": 7}\n')
    done = cli("export", "bad", "--parquet")
    assert done.code == 2 and f"line {ANSWERS + 1}" in done.err
    assert [path.name for path in (tmp_path / "bad").iterdir()] == ["records.jsonl"]
    # What a kill left goes with the next export; what somebody else still writes does not.
    left, held = (tmp_path / f".table.parquet.{pid}.millstream-new" for pid in (7, 8))
    left.write_text("")
    with held.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert cli("export", str(millstone), "--parquet", "--out", "table.parquet").code == 0
        assert held.exists() and not left.exists()
    with small_disk(tmp_path / "disk", 4 << 10) as disk:
        done = cli("export", str(millstone), "--parquet", "--out", str(disk / "table.parquet"))
        assert done.code == 5 and "can't be written" in done.err and not list(disk.iterdir())


def test_a_torn_line_is_left_out_and_a_changed_one_refuses(cli: CommandLine, tmp_path: Path, millstone: Path) -> None:
    (tmp_path / "run").mkdir()
    whole = (millstone / "records.jsonl").read_bytes()
    (tmp_path / "run/records.jsonl").write_bytes(whole[:-9])
    done = cli("export", "run", "--parquet", "--out", "torn.parquet")
    assert done.code == 0 and "is torn" in done.err
    assert pq.read_table(tmp_path / "torn.parquet").num_rows == ANSWERS - 1
    (tmp_path / "run/records.jsonl").write_bytes(whole.replace(b"<<A>>", b"<<B>>", 1))
    done = cli("export", "run", "--parquet", "--out", "damaged.parquet")
    assert done.code == 5 and "line 1 is damaged" in done.err and not (tmp_path / "damaged.parquet").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--csv"), "unknown option --csv"),
        (("none", "--parquet"), "none: expected a run's folder"),
        (("empty", "--parquet"), "empty: expected a run's folder, or one that holds such"),
        (("notes.txt", "--parquet"), "notes.txt line 1: expected a row of a batch's output"),
        (("run", "run", "--parquet"), "two runs would be written there"),
        (("run", "run", "--parquet", "--out", "a.parquet"), "--out: expected a folder for 2 runs"),
        (("run", "--parquet", "--out", "no/a.parquet"), "--out: expected a file in a folder that exists"),
        (("x" * 300, "--parquet"), "File name too long"),
        (("run", "--parquet", "--out", "notes.txt"), "--out: expected a file that ends in .parquet, or a folder"),
    ],
)
def test_wrong_usage_is_one_line(cli: CommandLine, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    answered_run(tmp_path / "run", nasty)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("my notes\n")
    done = cli("export", *words)
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1, done
    assert not list(tmp_path.rglob("*.parquet"))


def test_without_pyarrow_one_line_says_what_to_install(tmp_path: Path) -> None:
    answered_run(tmp_path / "run", nasty)
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow/pyarrow.py").write_text("raise ModuleNotFoundError(\"No module named 'pyarrow'\")")
    found = environment(tmp_path)
    found["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "shadow"), found["PYTHONPATH"]])
    done = subprocess.run(
        [*COMMAND, "export", "run", "--parquet"], cwd=tmp_path, env=found, capture_output=True, text=True
    )
    assert done.returncode == 2 and "pip install pyarrow" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.long
def test_many_records_are_written_by_row_groups_in_the_memory_of_few(tmp_path: Path) -> None:
    folder = answered_run(tmp_path / "run", nasty)
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    peaks = []
    for times in (350, 700):
        (tmp_path / f"{times}").mkdir()
        with (tmp_path / f"{times}/records.jsonl").open("wb") as file:
            for _ in range(times):
                file.writelines(lines[:60])
        done, peak_mb = run_watched(tmp_path, "export", str(times), "--parquet")
        assert done.code == 0, done.err
        peaks.append(peak_mb)
        table = pq.ParquetFile(tmp_path / f"{times}/records.parquet")
        assert table.metadata.num_rows == 60 * times
        assert max(table.metadata.row_group(n).num_rows for n in range(table.num_row_groups)) <= 20_000
    assert peaks[1] < peaks[0] + 40, peaks


def test_every_column_of_a_batch_is_documented() -> None:
    told = (Path(__file__).parents[3] / "docs/using.md").read_text()
    (entry,) = re.findall(r"^- A batch has `id`.*?(?=^- )", told, re.MULTILINE | re.DOTALL)
    inner = {"finish_reason", "tool_calls", "code", "message", "param"}
    assert set(re.findall(r"`(\w+)`", entry)) - inner == set(schema_of("batch", {}).names)
