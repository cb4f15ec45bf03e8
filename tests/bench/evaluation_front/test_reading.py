"""What reads a finished run: scores anew, proof, report, export."""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from toy_outside import Toys, ToyServer

FORMS = ("sums", "twins", "doubts")


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_scores_are_the_same_when_they_are_counted_again(toys: Toys, server: ToyServer, name: str) -> None:
    toys.run(name, model="lab/good lab/poor")
    kept = toys.file("scores.json")
    (toys.home / "run/scores.json").unlink()
    server.asked.clear()
    done = toys.cli("score", "run", "--json")
    assert json.loads(done.out)["run"] == kept == toys.file("scores.json") and server.asked == []


def test_another_reading_is_shown_and_not_kept(toys: Toys) -> None:
    toys.run("sums", model="lab/mute")
    kept = (toys.home / "run/scores.json").read_bytes()
    done = toys.cli("score", "run", "--lenient", "--json")
    assert json.loads(done.out)["run"]["sums"]["models"]["lab/mute"]["score"] == 1.0
    assert (toys.home / "run/scores.json").read_bytes() == kept
    assert re.search(r"lab/mute +0\.000", toys.cli("score", "run").out)


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_a_sound_run_is_proven_with_its_counts(toys: Toys, server: ToyServer, name: str) -> None:
    with server.failing("poor: .*What is 3 "):
        toys.run(name, model="lab/good lab/poor")
    records, failures = len(toys.lines()), len(toys.lines("failures"))
    done = toys.cli("verify", "run", "--json")
    found = json.loads(done.out)
    assert (done.code, found["ok"], found["wrong"]) == (0, True, [])
    assert (found["records"], found["failures"], found["pending"]) == (records, failures, 0)
    assert found["held"] == (2 if name == "doubts" else 0) and failures == 1


def rewritten(path: Path, change: Callable[[Any, int], object], at: int = 0) -> None:
    """Change the lines of a journal as somebody does who writes true checksums."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        del line["crc"]
    change(lines, at)
    bodies = [json.dumps(line, separators=(",", ":")).encode()[:-1] for line in lines]
    path.write_bytes(b"".join(b'%b,"crc":%d}\n' % (body, zlib.crc32(body)) for body in bodies))


def test_a_journal_that_is_written_again_as_it_was_is_proven(toys: Toys) -> None:
    toys.run("doubts", "--limit", "2")
    rewritten(toys.home / "run/records.jsonl", lambda lines, at: None)
    assert toys.cli("verify", "run").out == "ok: 6 records, 0 failures, 0 pending\n"


# The change of the record s3.0, and what is said of it.
CHANGES: dict[str, tuple[Callable[[Any, int], object], str]] = {
    "an answer": (lambda lines, at: lines[at].update(text="99"), "right: expected False, got True"),
    "what the author's check reads": (lambda lines, at: lines[at].update(right=False), "right: expected True"),
    "the item": (lambda lines, at: lines[at].update(item="s99"), "has the item 's99'"),
    "the group": (lambda lines, at: lines[at].update(group="even"), "the group 'even'"),
    "the cost": (lambda lines, at: lines[at].update(cost=0.25), "cost $12.000000"),
    "a line twice": (lambda lines, at: lines.append(lines[at]), "twice"),
    "a line that is gone": (lambda lines, at: lines.pop(at), "counts 8 records"),
    "a line of nobody": (lambda lines, at: lines[at].update(id="s88.0", item="s88"), "s88.0 is not in this run"),
    "the model": (lambda lines, at: lines[at].update(model="lab/firm"), "lab/firm is not in this run"),
}


def test_a_changed_record_is_found_even_if_its_checksum_is_true(toys: Toys) -> None:
    assert toys.run("sums", "--concurrency", "1").code == 0
    path = toys.home / "run/records.jsonl"
    whole = path.read_bytes()
    for what, (change, said) in CHANGES.items():
        rewritten(path, change, 3)
        done = toys.cli("verify", "run")
        assert done.code == 5 and said in done.out, (what, done.out)
        path.write_bytes(whole)


def test_trials_that_share_a_call_are_found(toys: Toys) -> None:
    toys.run("sums", "--limit", "1", "--trials", "2", "--concurrency", "1")
    rewritten(toys.home / "run/records.jsonl", lambda lines, at: lines[1].update(keys=lines[0]["keys"]))
    done = toys.cli("verify", "run")
    assert done.code == 5 and "one of both is a copy" in done.out, done.out


def test_a_changed_byte_changed_scores_and_a_changed_specification_are_found(toys: Toys) -> None:
    toys.run("sums")
    for name, before, after, said in (
        ("records.jsonl", '"text":"13"', '"text":"18"', "damaged"),
        ("scores.json", '"score": 1.0', '"score": 0.9', "scores.json"),
        ("manifest.json", '"limit": 8', '"limit": 7', "manifest.json"),
    ):
        path = toys.home / "run" / name
        whole = path.read_text()
        path.write_text(re.sub(before.replace(" ", " ?"), after, whole, count=1))
        assert path.read_text() != whole
        done = toys.cli("verify", "run")
        assert done.code == 5 and said in done.out, done.out
        path.write_text(whole)
    assert toys.cli("verify", "run").code == 0


def test_swapped_lines_of_a_conversation_do_no_harm(toys: Toys, server: ToyServer) -> None:
    """Each line says which step it is, so that their order in the file says nothing."""
    toys.run("doubts", "--limit", "2", "--concurrency", "1")
    judged = ("judge", "run", "--judge", "lab/strict", "--plan", "--json")
    scores, planned = toys.file("scores.json"), toys.cli(*judged).out
    rewritten(toys.home / "run/records.jsonl", lambda lines, at: lines.sort(key=lambda line: -line["step"]))
    assert [line["id"] for line in toys.lines() if line["item"] == "d0"] == ["d0/3", "d0/2", "d0/1"]
    assert toys.cli("verify", "run").out == "ok: 6 records, 0 failures, 0 pending\n"
    assert json.loads(toys.cli("score", "run", "--json").out)["run"] == scores
    assert toys.cli(*judged).out == planned
    server.asked.clear()
    assert toys.cli("resume", "run").code == 0 and server.asked == []


def test_a_conversation_that_lacks_a_step_is_found(toys: Toys) -> None:
    toys.run("doubts", "--limit", "1")
    rewritten(toys.home / "run/records.jsonl", lambda lines, at: lines.pop(at), 1)
    done = toys.cli("verify", "run")
    assert done.code == 5 and "1 pending" in done.out, done.out


@pytest.mark.parametrize("name", FORMS)
def test_the_report_is_one_page_with_the_figures_of_the_scores(toys: Toys, server: ToyServer, name: str) -> None:
    toys.run(name, model="lab/good lab/poor lab/weak")
    server.asked.clear()
    done = toys.cli("report", "run")
    assert done.code == 0 and server.asked == [], done.err
    page = (toys.home / "run/report.html").read_text("utf-8")
    assert "http://" not in re.sub(r"http://www\.w3\.org\S*", "", page).replace(server.base_url, "")
    with (toys.home / f"run/tables/{name}-scores.csv").open(newline="") as table:
        rows = {row["model"]: row["score"] for row in csv.DictReader(table)}
    assert rows == {model: f"{score:.3f}" for model, score in toys.scores().items()}
    for model, score in toys.scores().items():
        assert model in page and f"{score:.3f}" in page
    with (toys.home / f"run/tables/{name}-answers.csv").open(newline="") as table:
        costs = {row["model"]: row["cost"] for row in csv.DictReader(table)}
    counts = toys.file("manifest.json")["counts"]
    assert costs == {row["model"]: f"${row['cost']:.4f}" for row in counts}


def test_a_run_writes_its_report_itself_and_two_runs_stand_side_by_side(toys: Toys) -> None:
    words = [word for word in toys.words("run", "sums") if word != "--no-report"]
    done = toys.cli(*words)
    assert done.code == 0 and f"report: {toys.home / 'run/report.html'}" in done.out
    toys.run("sums", model="lab/poor", out="other")
    assert toys.cli("report", "run", "other", "--out", "both").code == 0
    with (toys.home / "both/tables/sums-scores.csv").open(newline="") as table:
        assert [row["score"] for row in csv.DictReader(table)] == ["1.000", "0.500"]


@pytest.mark.parametrize("name", ["sums", "doubts"])
def test_an_export_has_a_row_a_line_with_the_author_s_columns(toys: Toys, server: ToyServer, name: str) -> None:
    with server.failing("poor: .*What is 3 "):
        toys.run(name, model="lab/good lab/poor")
    done = toys.cli("export", "run", "--json")
    (file,) = json.loads(done.out)["files"]
    table = pq.read_table(toys.home / "run/records.parquet")
    assert (done.code, file["benchmark"], file["rows"]) == (0, name, table.num_rows)
    rows = {(row["model"], row["id"]): row for row in table.to_pylist()}
    lines = toys.lines() + toys.lines("failures")
    assert len(rows) == len(lines) == table.num_rows
    for line in lines:
        row = rows[line["model"], line["id"]]
        for column in ("item", "step", "text", "status", "cost", "number", "right", "verdict"):
            assert row[column] == line.get(column) or column not in line


def test_a_torn_last_line_is_cut_off_and_its_item_asked_again(toys: Toys, server: ToyServer) -> None:
    toys.run("sums")
    whole = toys.answers()
    path = toys.home / "run/records.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    server.asked.clear()
    assert "1 pending" in toys.cli("verify", "run").out
    assert toys.again("resume").code == 0
    # The answer is in the cache.
    assert toys.answers() == whole and server.asked == []


def test_a_damaged_line_is_named_and_asked_again_when_it_is_set_aside(toys: Toys, server: ToyServer) -> None:
    toys.run("sums")
    whole = toys.answers()
    path = toys.home / "run/records.jsonl"
    path.write_text(path.read_text().replace('"text":"13"', '"text":"18"'))
    done = toys.again("resume")
    assert done.code == 5 and "records.jsonl" in done.err
    assert toys.again("resume", "--set-aside-damaged").code == 0
    assert toys.answers() == whole
