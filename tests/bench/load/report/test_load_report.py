"""`millstream report` on folders of load tests: what it writes, and what it refuses in one line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, run_command
from load_files import closed, steady, written
from msgspec.structs import replace

from millstream.bench.load.report.write import write
from millstream.metrics.load.load_json import Client

CommandLine = Callable[..., Done]


def test_one_test_has_its_report_in_its_own_folder(tmp_path: Path) -> None:
    folder = written(steady(), tmp_path / "test")
    done = run_command(tmp_path, "report", "test")
    assert done.code == 0, done.err
    assert done.out == (
        f"tables: {folder}/tables (5 files)\n"
        f"report: {folder}/report.html ({(folder / 'report.html').stat().st_size / 1e6:.1f} MB)\n"
    )
    with (folder / "tables/load-by-rate.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert int(row["calls"]) == steady().models["sim/steady"].calls
    assert float(row["came_per_s"]) == steady().models["sim/steady"].rate


def test_two_copies_of_a_load_test_are_refused_as_two(tmp_path: Path) -> None:
    for name in ("test", "copy"):
        written(steady(), tmp_path / name)
    done = run_command(tmp_path, "report", "test", "copy")
    assert done.code == 2 and not (tmp_path / "report.html").exists()
    assert f"{tmp_path}/copy holds the same load test as {tmp_path}/test: name one of them" in done.err


def test_several_tests_have_one_beside_them_named_apart_by_their_folders(cli: CommandLine, tmp_path: Path) -> None:
    bound = replace(closed(), client=Client(("the loop lagged",), 0.1, 1.0, 1.0))
    written(steady(), tmp_path / "before/test")
    written(bound, tmp_path / "after/test")
    done = cli("report", "before/test", "after/test", "before/../before/test", "--out", "both", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["report"] == str(tmp_path / "both/report.html") and told["bytes"] > 50_000
    assert [(Path(each["folder"]).parent.name, each["client_was_bottleneck"]) for each in told["load_tests"]] == [
        ("before", False),
        ("after", True),
    ]
    assert all(Path(name).is_file() for name in told["tables"])
    page = (tmp_path / "both/report.html").read_text()
    assert "before/test" in page and "after/test: the client was the bottleneck" in page
    assert str(tmp_path) not in page
    assert "BOTTLENECK in" in cli("report", "after/test").out
    plans = "different plans (before/test: rate 20/s for 60 s; after/test: 8 in flight for 30 s); they differ in "
    assert told["not_compared"].startswith(plans)
    assert f"not compared: {plans}" in cli("report", "before/test", "after/test", "--out", "both").out


def test_a_report_made_again_is_the_same_and_one_of_somebody_else_stays(cli: CommandLine, tmp_path: Path) -> None:
    folder = written(closed(), tmp_path / "test")
    page = write([folder], folder).page
    assert page == folder / "report.html"
    first = page.read_bytes()
    assert write([folder], folder).page.read_bytes() == first
    page.write_text("<p>mine")
    done = cli("report", "test")
    assert done.code == 2 and done.err.endswith("no report of ours: move it away, or choose another --out\n")
    assert page.read_text() == "<p>mine"


def run_folder(home: Path) -> None:
    (home / "run").mkdir()
    (home / "run/records.jsonl").write_text("{}\n")


def damaged(data: bytes) -> Callable[[Path], Any]:
    return lambda home: (home / "test/load.json").write_bytes(data)


def a_folder(home: Path) -> None:
    (home / "test/load.json").unlink()
    (home / "test/load.json").mkdir()


WRONG: dict[str, tuple[Callable[[Path], Any], tuple[str, ...], int, str]] = {
    "a run beside it": (run_folder, ("test", "run"), 2, "expected load tests alone or runs alone, got both: "),
    "a run before it": (run_folder, ("run", "test"), 2, "expected load tests alone or runs alone, got both: "),
    "a run in it": (
        lambda home: (home / "test/records.jsonl").write_text("{}\n"),
        ("test",),
        2,
        "holds both; report on them apart",
    ),
    "an empty folder beside it": (
        lambda home: (home / "e").mkdir(),
        ("test", "e"),
        2,
        "expected a folder with load.json",
    ),
    "the folder above": (lambda home: None, (".",), 2, "holds several load tests: name them, as millstream report "),
    "one that was killed": (
        lambda home: (home / "test/load.json").rename(home / "test/calls.jsonl"),
        ("test",),
        2,
        "expected load.json, got calls.jsonl alone: this load test was killed",
    ),
    "cut": (
        damaged(b'{"version": 1, "mod'),
        ("test",),
        2,
        "load.json: expected the figures of a load test as JSON, got:",
    ),
    "nothing in it": (damaged(b""), ("test",), 2, "load.json: expected the figures of a load test as JSON"),
    "of a later version": (damaged(b'{"version": 9}'), ("test",), 2, "load.json: expected version 1, got 9: "),
    "a folder in its place": (
        a_folder,
        ("test",),
        5,
        "load.json is a folder, and only a regular file is read or written there",
    ),
    "a reading of runs": (lambda home: None, ("test", "--silence", "literal"), 2, "--silence reads records of a run"),
    "no place to write": (
        lambda home: (home / "test/tables").write_text(""),
        ("test",),
        5,
        "can't be written",
    ),
    "several places": (
        lambda home: written(closed(), home / "deep/other"),
        ("test", "deep/other"),
        2,
        "--out: expected a folder for the report",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_one_line(cli: CommandLine, tmp_path: Path, what: str) -> None:
    change, arguments, code, said = WRONG[what]
    written(closed(), tmp_path / "test")
    change(tmp_path)
    done = cli("report", *arguments)
    lines = [line for line in done.err.splitlines() if not line.startswith("millstream: computing")]
    assert (done.code, done.out, len(lines)) == (code, "", 1), done.err
    assert said in lines[0]
    assert not (tmp_path / "test/report.html").exists()
