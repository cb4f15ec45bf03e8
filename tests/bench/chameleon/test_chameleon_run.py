"""`run chameleon` over real sockets: known scores, its files, and what it never asks twice."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path

import pytest
from command_line import CommandLine, Done, ids_of, lines_of, run_command, scores_of
from simulated_outside import Outside

MODELS = ("sim/steady", "sim/open", "sim/contrary")
TURNS, CONVERSATIONS = 6, 2
SIZE = ("--conversations", str(CONVERSATIONS), "--turns", str(TURNS), "--pages", "8", "--no-progress")
ASKED = ("run", "chameleon", "--judge", "sim/judge", "--temperature", "0", *SIZE)


def command(outside: Outside, *more: str, models: tuple[str, ...] = MODELS) -> tuple[str, ...]:
    return (*ASKED, "--model", *models, *outside.flags, "--cache", "cache", *more)


def run(home: Path, outside: Outside, *more: str, models: tuple[str, ...] = MODELS) -> Done:
    return run_command(home, *command(outside, *more, models=models), **outside.variables)


@pytest.fixture(scope="module")
def whole(running_outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run that nothing disturbed, its report and its cache; never written to again."""
    home = tmp_path_factory.mktemp("whole")
    running_outside.reset()
    return home, run(home, running_outside, "--out", "run")


@pytest.fixture
def copied(whole: tuple[Path, Done], tmp_path: Path) -> Path:
    home, _ = whole
    shutil.copytree(home / "run", tmp_path / "run")
    shutil.copytree(home / "cache", tmp_path / "cache")
    return tmp_path


def test_one_command_writes_every_file_and_tells_what_a_person_needs(whole: tuple[Path, Done]) -> None:
    home, done = whole
    folder = home / "run"
    ids = ids_of(folder)
    assert len(ids) == len(set(ids)) == len(MODELS) * CONVERSATIONS * TURNS
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["specification"]["search"] == "search/searxng"
    assert manifest["counts"][0]["ok"] == CONVERSATIONS * TURNS
    assert manifest["counts"][0]["turns"] == CONVERSATIONS * TURNS
    for model in MODELS:
        assert f"{model} @ 0 " in done.out
    assert f"{len(ids)} answers, 0 of them from the cache" in done.out
    pages = [page for line in lines_of(folder / "records.jsonl") for page in line["retrieved"]]
    read = sum(page["status"] == "ok" for page in pages)
    assert f"pages: {read:,} of {len(pages):,} retrieved had a text" in done.out
    assert "citations: " in done.out, "contrary cites [99]"
    assert "without a price, so in no cost: sim/steady, sim/open, sim/contrary, sim/judge" in done.out
    assert f"report: {folder / 'report.html'}" in done.out
    assert "Chameleon: 3 models in 2 conversations" in (folder / "report.html").read_text("utf-8")
    assert (folder / "tables/chameleon-table-1-scores.csv").is_file()


@pytest.mark.parametrize(
    "flags",
    [
        ("--sources", "retrieved"),
        ("--sources-by", "hostname"),
        ("--uncited", "literal"),
        ("--confidence", "number"),
    ],
)
def test_score_and_report_read_the_same_records_otherwise_and_leave_the_scores_alone(
    cli: CommandLine, copied: Path, flags: tuple[str, str]
) -> None:
    before = (copied / "run/scores.json").read_bytes()
    done = cli("score", "run", *flags, "--json")
    assert done.code == 0, done.err
    assert (copied / "run/scores.json").read_bytes() == before
    assert "keeps the run's own readings" in done.err
    found = json.loads(done.out)["run"]["chameleon"]
    assert flags[1] in found["readings"].values()
    if flags[0] in ("--sources", "--sources-by", "--confidence"):
        assert found["models"] != json.loads(before)["chameleon"]["models"]


def test_a_run_that_differs_in_its_readings_alone_is_refused_with_the_score_that_tells_the_same(
    cli: CommandLine, copied: Path, outside: Outside
) -> None:
    other = ("--confidence", "number", "--sources-by", "hostname")
    done = run(copied, outside, *other, "--out", "run")
    assert done.code == 2
    assert (
        "(readings.by: url in that run, hostname in this; readings.confidence: rubric in that run, number in this)"
        in done.err
    )
    advice = f"score {copied / 'run'} --sources-by hostname --confidence number"
    assert f": choose another --out, or score its records so: millstream {advice}" in done.err
    assert cli(*advice.split()).code == 0
    done = run(copied, outside, *other, "--judge-prompt", "paper", "--out", "run")
    assert done.code == 2 and "score its records" not in done.err


def test_a_report_tells_how_its_records_were_read(cli: CommandLine, copied: Path) -> None:
    done = cli("report", "run", "--confidence", "number", "--out", "report")
    assert done.code == 0, done.err
    page = (copied / "report/report.html").read_text("utf-8")
    assert "Read with --confidence number." in unescape(page)
    assert page.count("are samples that come with millstream, not the paper’s") == 3
    assert "millstream report run --confidence number" in page
    assert "millstream run chameleon --model sim/steady sim/open sim/contrary --judge sim/judge" in page
    assert (copied / "report/figures/chameleon-figure-5-turns.svg").is_file()


def test_records_of_another_program_score_and_report_alike(cli: CommandLine, copied: Path) -> None:
    documented = ("id", "conversation", "domain", "topic", "turn", "question", "retrieved", "cited", "text", "stance")
    more = ("confidence", "rationale", "model", "temperature", "status")
    theirs = copied / "theirs"
    theirs.mkdir()
    lines = lines_of(copied / "run/records.jsonl")
    rows = [json.dumps({name: line[name] for name in (*documented, *more)}) for line in lines]
    (theirs / "records.jsonl").write_text("\n".join(rows) + "\n")
    assert cli("score", "theirs").code == 0
    ours = scores_of(copied / "run")["chameleon"]["models"]["sim/open"]["0"]
    assert scores_of(theirs)["chameleon"]["models"]["sim/open"]["0"]["score"] == ours["score"]
    done = cli("report", "theirs")
    assert done.code == 0 and (theirs / "report.html").is_file(), done.err


def test_a_plan_sends_nothing_and_tells_every_lane(
    outside: Outside, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in outside.variables.items():
        monkeypatch.setenv(name, value)
    done = cli("plan", *command(outside)[1:], "--json")
    assert done.code == 0, done.err
    (plan,) = json.loads(done.out)["runs"]
    assert plan["turns"] == len(MODELS) * CONVERSATIONS * TURNS
    calls = {lane["lane"]: lane["calls"] for lane in plan["lanes"]}
    assert calls["search/searxng"][0] >= plan["turns"]
    assert set(calls) == {*MODELS, "sim/judge", "search/searxng", "web"}
    text = cli("plan", *command(outside)[1:]).out
    chain = f"{TURNS} in each of {len(MODELS) * CONVERSATIONS}, 64 at once; 10 to 40 s a turn are assumed"
    assert f"since turns follow each other: {chain}" in text
    assert plan["minutes"] == [TURNS * 10 / 60, TURNS * 40 / 60]
    # At six calls a minute the quota takes longer than the turns.
    (slow,) = json.loads(cli("plan", *command(outside)[1:], "--rpm", "6", "--json").out)["runs"]
    assert slow["minutes"][0] > plan["minutes"][0]
    assert outside.arrivals() == (0, 0)


def test_the_default_search_needs_no_web_at_all(outside: Outside, tmp_path: Path) -> None:
    words = ("--model", "sim/open", "--base-url", outside.provider.base_url, "--cache", "cache")
    done = run_command(tmp_path, *ASKED, *words, "--out", "run", "--no-report")
    assert done.code == 0, done.err
    lines = lines_of(tmp_path / "run/records.jsonl")
    assert len(lines) == CONVERSATIONS * TURNS
    assert all(page["url"].startswith("corpus:") for line in lines for page in line["retrieved"])
    assert {page["status"] for line in lines for page in line["retrieved"]} == {"ok"}
    assert sum(bool(line["cited"]) for line in lines) > len(lines) / 2
    assert outside.requests() == 0
