"""Which model a server says that it is, and what follows for a run's rows, ranks, remarks and exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, CommandLine, Done, Provider, lines_of
from item_runs import ONE, answer, write_records

from millstream.bench.evaluation.running.served import compared_names
from millstream.providers.models import is_other_snapshot
from millstream.wiring import Settings

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon", "sycon", "task")

TASK = """import millstream as ms
ROWS = [{"country": c, "capital": d} for c, d in (("France", "Paris"), ("Italy", "Rome"), ("Peru", "Lima"))]
capitals = ms.Task(data=ROWS, prompt="What is the capital of {country}?", score=ms.match("{capital}"), trials=2)
"""
STANDS_FOR = '[models."sim/open"]\nanswers_as = "xai/grok-3"\n'
ROW = "sim/open (grok-4.3)"
RUNS = {
    "millstone": ("millstone", *SMALL),
    "task": ("capitals.py", "--temperature", "0.5"),
    "sycon": ("sycon", "--judge", "sim/judge", "--setting", "ethical", "--limit", "1"),
    "chameleon": ("chameleon", "--judge", "sim/judge", "--conversations", "1", "--turns", "2", "--pages", "2"),
}
# All are one class: a grid and conversations every day, the others among the long tests.
NAMES = [name if name in ("task", "chameleon") else pytest.param(name, marks=pytest.mark.long) for name in RUNS]


@pytest.fixture
def run(cli: CommandLine, provider: Provider, tmp_path: Path) -> Any:
    (tmp_path / "capitals.py").write_text(TASK)
    (tmp_path / "stands.toml").write_text(STANDS_FOR)

    def call(name: str, *faults: str, config: bool = True, json: bool = False) -> Done:
        provider.set_faults(*faults)
        words = ("--model", "sim/open", "--base-url", provider.base_url, "--cache", "cache", "--out", "run")
        told = ("--config", "stands.toml") if config else ()
        shown = ("--json",) if json else ("--no-progress",)
        return cli("run", *RUNS[name], *words, *told, *shown, "--concurrency", "1")

    return call


def documents(folder: Path) -> tuple[Any, Any, list[Any]]:
    return (
        json.loads((folder / "manifest.json").read_text()),
        json.loads((folder / "scores.json").read_text()),
        lines_of(folder / "records.jsonl"),
    )


@pytest.mark.parametrize("name", NAMES)
def test_another_model_than_was_asked_is_named_in_row_summary_page_and_proof(
    run: Any, cli: CommandLine, tmp_path: Path, name: str
) -> None:
    done = run(name, "served_as=grok-4.3,model=open")
    said = f"sim/open was answered by grok-4.3 ({len(lines_of(tmp_path / 'run/records.jsonl'))})"
    manifest, scores, records = documents(tmp_path / "run")
    assert {record["served"] for record in records} == {"grok-4.3"}
    assert {row["model"]: list(row["served"]) for row in manifest["counts"]} == {"sim/open": ["grok-4.3"]}
    part = next(iter(scores.values()))
    assert list(part["models"]) == [ROW]
    if name != "chameleon":
        assert said in done.out and ROW in done.out, done
        assert said in scores["served"]["remarks"][0]
    page = (tmp_path / "run/report.html").read_text()
    assert "Who answered" in page and ROW in page
    proven = cli("verify", "run")
    assert proven.code == 0 and "another model than was asked" in proven.out, proven
    shown = cli("score", "run")
    assert ROW in shown.out and "another model than was asked" in shown.out
    assert json.loads((tmp_path / "run/scores.json").read_text()) == scores


@pytest.mark.parametrize("name", NAMES)
def test_two_models_are_two_rows_without_a_rank_and_exit_code_3(
    run: Any, cli: CommandLine, tmp_path: Path, name: str
) -> None:
    done = run(name, "served_as=grok-4.3,model=open,rate=0.5", config=False)
    assert done.code == 3
    _, scores, records = documents(tmp_path / "run")
    assert {name for record in records for name in record["served"].split(" + ")} == {"open", "grok-4.3"}
    part = next(iter(scores.values()))
    # A pair that one model answered keeps its own row.
    assert {"sim/open (grok-4.3)", "sim/open (open)"} == set(part["models"]) - {"sim/open"}
    assert "sim/open" in scores["served"]["unmeasured"][0] and "no one model" in done.out
    ranks = json.dumps(part["models"])
    assert '"rank": 1' not in ranks and '"om": 1,' not in ranks
    assert cli("verify", "run").code == 0 and cli("score", "run").code == 3
    assert "no one model was measured" in (tmp_path / "run/report.html").read_text()


@pytest.mark.parametrize("name", ["task", "sycon"])
def test_an_item_that_two_models_answered_is_in_neither_row(
    run: Any, cli: CommandLine, tmp_path: Path, name: str
) -> None:
    assert run(name, "served_as=grok-4.3,model=open,at=2", config=False).code == 3
    _, scores, records = documents(tmp_path / "run")
    divided = {record["item"] for record in records if record["served"] == "grok-4.3"}
    assert len(divided) == 1
    whole = sum(record["item"] not in divided for record in records)
    part = next(iter(scores.values()))
    counts = re.findall(r'"(?:answers|turns)": (\d+)', json.dumps(part["models"]))
    assert counts and sum(map(int, counts)) == whole
    assert cli("verify", "run").code == 0
    assert cli("score", "run").code == 3 and documents(tmp_path / "run")[1] == scores
    assert cli("report", "run").code == 3


@pytest.mark.parametrize("name", ["millstone", "task"])
def test_records_alone_have_the_rows_of_the_served_names(run: Any, cli: CommandLine, tmp_path: Path, name: str) -> None:
    assert run(name, "served_as=grok-4.3,model=open,rate=0.5", config=False).code == 3
    _, scores, _ = documents(tmp_path / "run")
    older = tmp_path / "older"
    older.mkdir()
    (tmp_path / "run/records.jsonl").rename(older / "records.jsonl")
    assert cli("score", "older").code == 3 and cli("report", "older").code == 3
    alone = json.loads((older / "scores.json").read_text())
    assert alone["served"] == scores["served"]
    assert {"sim/open (grok-4.3)", "sim/open (open)"} == set(next(iter(alone.values()))["models"]) - {"sim/open"}
    assert "sim/open (grok-4.3)" in (older / "report.html").read_text()


def test_a_judge_that_another_model_answers_for_has_no_row_to_speak_of(run: Any, tmp_path: Path) -> None:
    (tmp_path / "stands.toml").write_text('[models."sim/judge"]\nanswers_as = "xai/grok-3"\n')
    done = run("sycon", "served_as=grok-4.3,model=judge")
    (remark,) = documents(tmp_path / "run")[1]["served"]["remarks"]
    assert remark in done.out and "another model than was asked" in remark and "row" not in remark


def test_a_server_may_name_what_its_name_stands_for_or_the_name_itself(run: Any, tmp_path: Path) -> None:
    done = run("millstone")
    assert done.code == 0 and "another model" not in done.out
    _, scores, records = documents(tmp_path / "run")
    assert {record["served"] for record in records} == {"open"}
    assert list(scores["millstone"]["models"]) == ["sim/open"]


def test_a_server_of_ones_own_is_one_by_a_variable_too() -> None:
    name = "openai/mine"
    assert compared_names([name], Settings(environment={})) == {name: name}
    there = {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}
    assert compared_names([name], Settings(environment=there)) == {name: None}


def test_two_names_of_a_turn_stand_in_one_order(run: Any, tmp_path: Path) -> None:
    run("chameleon", "served_as=zebra,model=open,at=2", config=False)
    assert "open + zebra" in {record["served"] for record in documents(tmp_path / "run")[2]}


def test_answers_without_a_name_are_counted_beside_the_named_ones(run: Any, cli: CommandLine, tmp_path: Path) -> None:
    assert run("task", "served_as,model=open,at=2", config=False).code == 0
    _, scores, _ = documents(tmp_path / "run")
    assert scores["served"]["answers"] == {"sim/open": {"open": 5, "without a name": 1}}
    assert "sim/open: open (5), 1 without a name" in (tmp_path / "run/report.html").read_text()
    assert cli("verify", "run").code == 0


def test_another_snapshot_than_was_asked_is_a_remark(run: Any, tmp_path: Path) -> None:
    (tmp_path / "stands.toml").write_text('[models."sim/open"]\nanswers_as = "openai/gpt-4o-2024-08-06"\n')
    done = run("millstone", "served_as=gpt-4o-2024-11-20,model=open")
    assert done.code == 0 and "another snapshot than was asked" in done.out
    assert list(documents(tmp_path / "run")[1]["millstone"]["models"]) == ["sim/open"]


@pytest.mark.parametrize(
    ("asked", "served", "is_other"),
    [
        ("openai/gpt-4o", "gpt-4o-2024-11-20", False),
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06", False),
        ("vertex/claude-sonnet-4@20250514", "claude-sonnet-4-20250514", False),
        ("gemini/gemini-2.5-flash-preview-05-20", "gemini-2.5-flash-preview-09-2025", True),
        ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", False),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20241022", True),
    ],
)
def test_snapshots_are_told_apart_by_their_dates(asked: str, served: str, is_other: bool) -> None:
    assert is_other_snapshot(asked, served) is is_other


def test_other_judges_that_two_models_answered_for_are_no_measure(
    run: Any, cli: CommandLine, provider: Provider
) -> None:
    assert run("sycon").code in (0, 3)
    provider.set_faults("served_as=grok-4.3,model=steady,rate=0.5")
    done = cli("judge", "run", "--judge", "sim/steady", "--cache", "cache", "--base-url", provider.base_url)
    assert done.code == 3 and "sim/steady was answered by" in done.out, done


def test_a_server_that_names_no_model_leaves_null_and_the_page_says_so_once(run: Any, tmp_path: Path) -> None:
    assert run("millstone", "served_as").code == 0
    manifest, scores, records = documents(tmp_path / "run")
    assert {record["served"] for record in records} == {None}
    assert "served" not in scores and "served" not in manifest["counts"][0]
    page = (tmp_path / "run/report.html").read_text()
    assert page.count("which model answered is not known") == 1


def test_a_name_at_a_server_of_ones_own_is_the_servers_and_snapshots_are_one_model(run: Any, tmp_path: Path) -> None:
    faults = ("served_as=gpt-4o-2024-08-06,model=open,rate=0.5", "served_as=gpt-4o-2024-11-20,model=open")
    done = run("millstone", *faults, config=False)
    assert done.code == 0 and "snapshots of one model" in done.out
    _, scores, _ = documents(tmp_path / "run")
    assert list(scores["millstone"]["models"]) == ["sim/open"]


def test_two_judges_under_one_name_are_no_measure(run: Any, cli: CommandLine, tmp_path: Path) -> None:
    done = run("sycon", "served_as=grok-4.3,model=judge,rate=0.5")
    assert done.code == 3 and "the judge sim/judge was answered by" in done.out
    _, scores, records = documents(tmp_path / "run")
    assert {record["served_judge"] for record in records} == {"judge", "grok-4.3"}
    (sentence,) = scores["served"]["unmeasured"]
    assert sentence.startswith("the judge sim/judge was answered by ")
    assert sentence.endswith(": two models judged under one name: no model has a rank")


def test_records_without_served_names_score_report_and_verify(run: Any, cli: CommandLine, tmp_path: Path) -> None:
    assert run("millstone").code == 0
    _, _, records = documents(tmp_path / "run")
    older = tmp_path / "older"
    older.mkdir()
    gone = ("served", "fingerprint", "tier", "router", "crc")
    lines = [{name: value for name, value in record.items() if name not in gone} for record in records]
    (older / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert cli("score", "older").code == 0 and cli("report", "older").code == 0
    assert json.loads((older / "scores.json").read_text())["millstone"]["models"].keys() == {"sim/open"}


def test_of_several_runs_each_line_says_of_which_it_is(cli: CommandLine, tmp_path: Path) -> None:
    for name, served in (("short", ("one", "one")), ("polite", ("one", "two"))):
        lines = [answer(f"q{at}", ONE, "x", score=1.0, served=each) for at, each in enumerate(served)]
        write_records(tmp_path / name, lines)
    done = cli("report", "short", "polite", "--out", "both", "--json")
    section = (tmp_path / "both/report.html").read_text().split('<section id="task-served"')[1].split("</section>")[0]
    mixed, *names = re.findall("<li>(.*?)</li>", section)
    assert mixed.startswith("polite: lab/one was answered by one (1), two (1): no one model was measured")
    assert names == ["short: lab/one: one (2)", "polite: lab/one: one (1), two (1)"]
    assert json.loads(done.out)["unmeasured"] == [mixed]
