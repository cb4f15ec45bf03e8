"""`judge` over a finished Chameleon run: the run's own judge is all in the cache, others ask no model under test, kills
cost nothing twice, and the run's own files stay as they are."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Done, lines_of, run_command
from simulated_outside import Outside

from millstream.bench.evaluation.page import reporting
from millstream.engine.runs.journal import sealed

OWN, SLOPPY, RUBBISH = "sim/judge", "sim/sloppy-judge", "sim/rubbish-judge"
MODELS = ("sim/open", "sim/contrary")
TURNS, CONVERSATIONS = 4, 2
ANSWERS = len(MODELS) * TURNS * CONVERSATIONS
SIZE = ("--conversations", str(CONVERSATIONS), "--turns", str(TURNS), "--pages", "4", "--temperature", "0")
QUIET = ("--no-progress",)


@pytest.fixture(scope="module")
def whole(running_outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run and its cache; never written to again."""
    home = tmp_path_factory.mktemp("judged")
    running_outside.reset()
    asked = ("run", "chameleon", "--model", *MODELS, "--judge", OWN, *SIZE, *running_outside.flags)
    done = run_command(
        home, *asked, "--cache", "cache", "--out", "run", "--no-report", *QUIET, **running_outside.variables
    )
    assert done.code == 0, done.err
    return home


@pytest.fixture
def home(whole: Path, outside: Outside, tmp_path: Path) -> Path:
    shutil.copytree(whole / "run", tmp_path / "run")
    shutil.copytree(whole / "cache", tmp_path / "cache")
    return tmp_path


def judge(home: Path, *words: str) -> Done:
    return run_command(home, "judge", "run", *words, "--cache", "cache", *QUIET)


def judgements(home: Path) -> list[dict[str, Any]]:
    return lines_of(home / "run/judgements.jsonl")


def own_files(home: Path) -> dict[str, bytes]:
    names = ("records.jsonl", "failures.jsonl", "manifest.json", "scores.json")
    return {name: (home / "run" / name).read_bytes() for name in names}


def test_the_runs_own_judge_asked_again_is_in_the_cache_and_says_the_same(home: Path, outside: Outside) -> None:
    before, sent = own_files(home), outside.arrivals()
    done = judge(home, "--judge", OWN)
    assert done.code == 0, done.err
    assert outside.arrivals() == sent and "all from the cache; nothing was sent" in done.out
    assert "the run's own judge, asked again" in done.err
    records = {(line["model"], line["id"]): line for line in lines_of(home / "run/records.jsonl")}
    lines = judgements(home)
    assert len(lines) == len(records) == ANSWERS
    for line in lines:
        record = records[line["model"], line["id"]]
        for name in ("stance", "confidence", "rationale", "key_claims", "judge_confidence"):
            assert line[name] == record[name]
        assert line["key"] in record["keys"] and line["usage"] == record["usage_judge"]
    assert own_files(home) == before


def test_two_more_judges_ask_no_model_under_test_and_a_second_time_nothing(home: Path, outside: Outside) -> None:
    before, sent = own_files(home), outside.provider.calls()
    done = judge(home, "--judge", SLOPPY, RUBBISH, "--json")
    assert done.code == 3, done.err
    lines = judgements(home)
    assert Counter(line["judge"] for line in lines) == {SLOPPY: ANSWERS, RUBBISH: ANSWERS}
    # A reply that can't be read is asked for once more: all of rubbish-judge's, some of sloppy-judge's.
    repaired = sum(line["judge_repaired"] for line in lines)
    assert outside.provider.calls() - sent == 2 * ANSWERS + repaired >= 3 * ANSWERS
    assert all(line["stance"] == "unclear" for line in lines if line["judge"] == RUBBISH)
    (run,) = json.loads(done.out)["runs"]
    assert [(row["model"], row["ok"]) for row in run["counts"]] == [(SLOPPY, ANSWERS), (RUBBISH, ANSWERS)]
    # What could not be read is no verdict: `unclear` is not what that judge thinks of all answers.
    panel = json.loads(done.out)["panel"]
    replies = {each["judge"]: (each["answers"], each["unread"]) for each in panel["replies"]}
    assert replies[OWN] == (ANSWERS, 0) and replies[RUBBISH] == (ANSWERS, ANSWERS)
    assert panel["agreement"][0]["by_all"] == 0 and panel["biases"] == []
    pairs = {(each["first"], each["second"]): each["answers"] for each in panel["pairs"]}
    assert pairs[OWN, RUBBISH] == pairs[SLOPPY, RUBBISH] == 0
    sent = outside.provider.calls()
    again = judge(home, "--judge", SLOPPY, RUBBISH)
    assert again.code == 3 and "all there before; nothing was sent" in again.out
    assert outside.provider.calls() == sent and judgements(home) == lines
    assert own_files(home) == before
    assert not list((home / "run").glob("judgements-failures-*"))
    assert run_command(home, "verify", "run").out.startswith("ok: ")


def test_a_judgement_of_a_text_that_has_changed_is_made_again(home: Path, outside: Outside) -> None:
    assert judge(home, "--judge", SLOPPY).code == 0
    path = home / "run/records.jsonl"
    first, *others = lines_of(path)
    # As `retry` leaves it: another answer under the same id.
    del first["crc"]
    first["text"] += " I changed my mind."
    whole = [sealed(json.dumps(line).encode()) for line in (first,)]
    path.write_bytes(b"".join(whole) + b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    done = judge(home, "--judge", SLOPPY, "--json")
    assert done.code == 0, done.err
    later = [line for line in judgements(home) if (line["model"], line["id"]) == (first["model"], first["id"])]
    assert len({line["text_sha256"] for line in later}) == len(later) == 2
    assert len(judgements(home)) == ANSWERS + 1 and len(others) == ANSWERS - 1
    assert json.loads(done.out)["runs"][0]["answered"] == ANSWERS


def judged(home: Path) -> bool:
    return (home / "run/judgements.jsonl").exists()


def test_wrong_commands_end_in_one_line_that_says_what_to_do(home: Path, cli: CommandLine, outside: Outside) -> None:
    none = judge(home)
    assert (none.code, none.err.count("\n")) == (
        2,
        1,
    ) and "holds no judgements yet: name a judge with --judge" in none.err
    plan = judge(home, "--plan")
    assert plan.code == 2 and "--plan: expected the judges to plan for" in plan.err
    elsewhere = run_command(home, "judge", "nowhere", "--judge", SLOPPY)
    assert elsewhere.code == 2 and "nowhere does not exist" in elsewhere.err
    named = ("--judge", "openai/sloppy-judge", "--base-url")
    assert judge(home, *named, outside.provider.base_url).code == 0
    other = judge(home, *named, "http://127.0.0.1:9/v1")
    assert other.code == 2 and "openai/sloppy-judge judged at" in other.err and "move judgements.json" in other.err
    manifest = json.loads((home / "run/manifest.json").read_text())
    manifest["options"]["chameleon"]["dataset"] = "gone.jsonl"
    (home / "run/manifest.json").write_text(json.dumps(manifest))
    gone = judge(home, "--judge", RUBBISH)
    assert gone.code == 2 and "gone.jsonl: expected a readable file or folder" in gone.err


def reported_tables(folder: Path) -> dict[str, bytes]:
    reporting.write([reporting.read(folder)], folder, has_figures=False)
    return {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}


def test_the_report_compares_the_judges_and_its_other_tables_stay_the_own_judges(home: Path, outside: Outside) -> None:
    before = reported_tables(home / "run")
    assert "chameleon-judges" not in (home / "run/report.html").read_text() and judge(home, "--judge", SLOPPY).code == 0
    after = reported_tables(home / "run")
    assert set(after) - set(before) == {
        f"chameleon-judges-{name}.csv" for name in ("agreement", "pairs", "bias", "scores")
    }
    assert all(after[name] == content for name, content in before.items())
    page = (home / "run/report.html").read_text()
    assert 'id="chameleon-judges"' in page and f"The run’s own judge is {OWN}." in page
    panel = json.loads(judge(home, "--json").out)["panel"]
    with (home / "run/tables/chameleon-judges-scores.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        score = panel["scores"][row["judge"]][row["model"]][row["score"]]
        assert float(row["value"]) == pytest.approx(score["value"]) and int(row["scored"]) == score["n"]
    assert {row["judge"] for row in rows} == {OWN, SLOPPY, "majority"}
