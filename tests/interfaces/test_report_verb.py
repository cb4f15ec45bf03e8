"""`report`, and the report that a run writes itself: where it goes, what it says is missing, what it leaves alone."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, SMALL_PROMPTS, CommandLine, Done, Provider, lines_of, scores_of

from millstream.bench.evaluation.door.declarations import BUILT_IN
from millstream.configuration.benchmark_options import listed

pytestmark = pytest.mark.needs_benchmark("millstone")

DOCUMENTED = ("id", "issue", "template", "config", "trial", "stance", "model", "temperature", "status", "text")


@pytest.fixture
def asked(cli: CommandLine, provider: Provider) -> Callable[..., Done]:
    """A small run into a folder of that name, without a report of its own."""

    def run(name: str, *more: str, models: tuple[str, ...] = ("sim/open",)) -> Done:
        where = ("--base-url", provider.base_url, "--cache", "cache", "--out", name, "--no-progress", "--no-report")
        return cli("run", "millstone", "--model", *models, *SMALL, *where, *more)

    return run


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("verb", ["report", "score"])
def test_two_copies_of_a_run_are_refused_as_two_runs(
    verb: str, cli: CommandLine, finished_run: Callable[..., Path], tmp_path: Path
) -> None:
    finished_run(out="one")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    done = cli(verb, "one", "copy")
    run = json.loads((tmp_path / "one/manifest.json").read_text("utf-8"))["run_id"]
    assert done.code == 2
    assert re.search(rf"copy holds the same run as \S*one \(run_id {run}\): name one of them\n", done.err)
    assert not (tmp_path / "report.html").exists() and done.out == ""
    assert cli(verb, "one", "./one").code == 0


def test_one_run_is_reported_in_its_own_folder(
    cli: CommandLine, finished_run: Callable[..., Path], tmp_path: Path
) -> None:
    before = files(finished_run())
    done = cli("report", "run")
    assert done.code == 0, done.err
    folder = tmp_path / "run"
    assert done.out.splitlines()[-1].startswith(f"report: {folder}/report.html (")
    after = files(folder)
    assert {name: after[name] for name in before} == before
    new = set(after) - set(before)
    assert {name.partition("/")[0] for name in new} == {"report.html", "tables", "figures"}
    assert {"tables/table-1-pro-majorities.csv", "tables/counts.csv", "figures/figure-2-shifts.svg"} <= new
    assert after["figures/figure-2-shifts.png"].startswith(b"\x89PNG")
    assert after["report.html"].count("are samples that come with millstream, not the paper’s".encode()) == 2
    om = scores_of(folder)["millstone"]["models"]["sim/open"]["om"]
    [own] = [row for row in rows(folder, "table-4-om") if row["source"] == "this run"]
    assert float(own["om"]) == pytest.approx(om, abs=1e-9)
    assert [row["om"] for row in rows(folder, "table-4-om") if row["model"] == "Claude Opus 4"] == ["7.14"]


def test_several_runs_stand_side_by_side_in_the_folder_they_lie_in(
    cli: CommandLine, asked: Callable[..., Done], tmp_path: Path
) -> None:
    asked("runs/one", models=("sim/open", "sim/stubborn"))
    asked("runs/two")
    done = cli("report", "runs/one", "runs/two", "runs/one/", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["report"] == str(tmp_path / "runs" / "report.html")
    assert [model["model"] for model in told["models"]] == ["sim/open (one)", "sim/stubborn", "sim/open (two)"]
    assert told["complete"] and [model["answered"] for model in told["models"]] == [SMALL_PROMPTS] * 3
    assert all(Path(name).is_file() for name in (*told["tables"], *told["figures"]))
    assert not (tmp_path / "runs/one/report.html").exists()


def test_what_failed_and_what_is_pending_is_told_with_its_counts(
    cli: CommandLine, asked: Callable[..., Done], provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("rejected=400,at=2", "rejected=400,at=5")
    assert asked("run").code == 3
    # As after an interruption: nothing tells of the last answers, and the run has no end.
    lines = (tmp_path / "run/records.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run/records.jsonl").write_bytes(b"".join(lines[:-4]))
    answered = SMALL_PROMPTS - 2 - 4
    done = cli("report", "run")
    # Whether what is left has a score depends on which prompts were rejected and written last.
    assert done.code in (0, 3)
    said = f"sim/open: {answered} of {SMALL_PROMPTS} answered, 2 failed"
    assert f"incomplete: {said}, 4 pending or missing" in done.out
    page = (tmp_path / "run/report.html").read_text("utf-8")
    assert f"<li>{said} (rejected 2), 4 pending</li>" in page
    assert "Incomplete: 1 of 1 model." in page
    [row] = rows(tmp_path / "run", "answers-by-model")
    assert (row["expected"], row["answered"], row["missing"]) == (str(SMALL_PROMPTS), str(answered), "6")
    assert sum(int(row["missing"]) for row in rows(tmp_path / "run", "om-by-issue")) == 6


def test_records_of_another_program_are_reported(
    cli: CommandLine, finished_run: Callable[..., Path], tmp_path: Path
) -> None:
    finished_run()
    other = tmp_path / "other"
    other.mkdir()
    kept = [{name: line[name] for name in DOCUMENTED} for line in lines_of(tmp_path / "run/records.jsonl")]
    (other / "records.jsonl").write_text("\n".join(map(json.dumps, kept)))
    done = cli("report", "other")
    assert done.code == 0, done.err
    assert rows(other, "counts") == rows_of(cli, "run", tmp_path)
    page = (other / "report.html").read_text("utf-8")
    assert "as far as they show, none is missing" in page and "Records with no manifest" in page


def rows_of(cli: CommandLine, name: str, home: Path) -> list[dict[str, str]]:
    assert cli("report", name).code == 0
    return rows(home / name, "counts")


def empty(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "records.jsonl").write_text("")


WRONG: dict[str, tuple[Callable[[Path], Any], tuple[str, ...], int, str]] = {
    "an empty folder": (lambda home: (home / "e").mkdir(), ("e",), 2, "expected a folder with records.jsonl"),
    "no records": (
        lambda home: empty(home / "run"),
        ("run",),
        2,
        "expected records, got none: nothing to report",
    ),
    "a changed line": (
        lambda home: (home / "run/records.jsonl").write_bytes(
            (home / "run/records.jsonl").read_bytes().replace(b'"con"', b'"pro"', 1)
        ),
        ("run",),
        5,
        "is damaged",
    ),
    "a manifest that is none": (
        lambda home: (home / "run/manifest.json").write_text("{"),
        ("run",),
        5,
        "can't be read",
    ),
    "a manifest of something else": (
        lambda home: (home / "run/manifest.json").write_text('{"format": 1, "specification": {"benchmark": "other"}}'),
        ("run",),
        2,
        f"expected a run of {listed(list(BUILT_IN), 'or')}, got one of other",
    ),
    "a manifest without a grid": (
        lambda home: (home / "run/manifest.json").write_text('{"format":1,"specification":{"benchmark":"millstone"}}'),
        ("run",),
        2,
        "its manifest.json is no MillStone run's",
    ),
    "a page of somebody else": (
        lambda home: (home / "run/report.html").write_text("<p>mine"),
        ("run",),
        2,
        "is there already and no report of ours",
    ),
    "a place that can't be written": (
        lambda home: (home / "file").write_text(""),
        ("run", "--out", "file/in"),
        5,
        "can't be",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_can_not_be_reported_is_refused_in_one_line(
    cli: CommandLine, finished_run: Callable[..., Path], tmp_path: Path, case: str
) -> None:
    change, arguments, code, said = WRONG[case]
    finished_run()
    change(tmp_path)
    done = cli("report", *arguments)
    remarks = [line for line in done.err.splitlines() if not re.match("millstream: (reading|computing) ", line)]
    assert (done.code, done.out, len(remarks)) == (code, "", 1), done.err
    assert said in remarks[0]
    if "page" in case:
        assert (tmp_path / "run/report.html").read_text() == "<p>mine"


def test_no_report_is_no_report(asked: Callable[..., Done], tmp_path: Path) -> None:
    done = asked("run")
    assert "report:" not in done.out and not (tmp_path / "run/report.html").exists()


def test_a_report_that_fails_is_a_remark_and_never_the_runs_exit_code(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/report.html").write_text("<p>mine")
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-progress")
    done = cli("run", "millstone", "--model", "sim/open", *SMALL, *where)
    assert done.code == 0
    assert "millstream: no report in " in done.err and "no report of ours" in done.err
    assert (tmp_path / "run/report.html").read_text() == "<p>mine"


def test_a_sweep_has_a_report_of_each_folder_and_one_of_all(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    tables = "".join(
        f'[[run.millstone]]\nname = "{name}"\nmodel = "sim/{name}"\nlimit = 1\ntemplates = 1\ntrials = 2\n'
        for name in ("open", "stubborn")
    )
    (tmp_path / "sweep.toml").write_text(f'[run]\nout = "runs"\nbase_url = "{provider.base_url}"\n{tables}')
    done = cli("run", "sweep.toml", "--no-progress", "--cache", "cache")
    assert done.code == 0, done.err
    runs = tmp_path / "runs"
    told = re.findall(r"^report: (.*)$", done.out, re.MULTILINE)
    assert told == [str(runs / name / "report.html") for name in ("open", "stubborn", "")]
    assert [row["model"] for row in rows(runs, "answers-by-model")] == ["sim/open", "sim/stubborn"]
    # One of them resumed brings both pages of it up to date, in the same order.
    (runs / "report.html").unlink()
    assert cli("resume", "runs/stubborn", "--no-progress").code == 0
    assert [row["model"] for row in rows(runs, "answers-by-model")] == ["sim/open", "sim/stubborn"]


def test_figures_of_an_earlier_report_do_not_outlive_their_records(
    cli: CommandLine, provider: Provider, asked: Callable[..., Done], tmp_path: Path
) -> None:
    asked("run")
    assert cli("report", "run").code == 0
    figures = tmp_path / "run/figures"
    (figures / "figure-2-shifts.svg").write_text("old")
    (figures / "figure-7-refusals.svg").write_text("old")
    assert cli("resume", "run", "--no-progress").code == 0
    assert (figures / "figure-2-shifts.svg").read_text().startswith("<svg")
    assert not (figures / "figure-7-refusals.svg").exists()


def test_a_folder_whose_name_is_no_text_stands_in_a_report_beside_another(
    asked: Callable[..., Done], cli: CommandLine, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        assert asked(name).code == 0
    other = os.fsdecode(b"two\xff")
    (tmp_path / "two").rename(tmp_path / other)
    done = cli("report", "one", other, "--out", "both")
    assert done.code == 0, done.err
    assert (tmp_path / "both/report.html").exists()
