"""Reasoning efforts as treatments of models under test and as parameters of judges, through every verb."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet  # type: ignore[import-untyped]
import pytest
from command_line import CommandLine, Provider, lines_of

QUIET = ("--no-progress", "--no-report", "--cache", "cache")
GRID = ("millstone", "--limit", "1", "--templates", "1", "--trials", "1")
EFFORTS = ("--reasoning-effort", "none", "low", "--temperature", "none", "0.5")
PROMPTS = 11
NAMES = ["sim/thinking @ 0.5, low", "sim/thinking @ 0.5, none", "sim/thinking @ low", "sim/thinking @ none"]


def found_in(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


@pytest.mark.needs_benchmark("millstone")
def test_each_effort_and_temperature_is_a_row_of_its_own_in_every_verb(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    asked = (*GRID, "--model", "sim/thinking", *EFFORTS, "--base-url", provider.base_url)
    plan = cli("plan", *asked, "--json")
    assert json.loads(plan.out)["runs"][0]["prompts"] == 4 * PROMPTS
    done = cli("run", *asked, *QUIET, "--out", "run")
    assert (done.code, provider.calls()) == (0, 4 * PROMPTS)
    assert [line.split("  ")[0] for line in done.out.splitlines()[1:5]] == [NAMES[3], NAMES[1], NAMES[2], NAMES[0]]
    run = tmp_path / "run"
    assert list(found_in(run, "scores.json")["millstone"]["models"]) == NAMES
    records = lines_of(run / "records.jsonl")
    treatments = {(line["temperature"], line["effort"]) for line in records}
    assert treatments == {(None, "none"), (None, "low"), (0.5, "none"), (0.5, "low")}
    # The simulated model thinks 200 tokens or more, unless a call forbids it.
    assert {line["usage"]["output"] >= 200 for line in records if line["effort"] == "low"} == {True}
    assert {line["usage"]["output"] >= 200 for line in records if line["effort"] == "none"} == {False}
    assert len({line["key"] for line in records}) == 4 * PROMPTS
    counts = found_in(run, "manifest.json")["counts"]
    assert [(row["temperature"], row["effort"]) for row in counts[:2]] == [(None, "none"), (0.5, "none")]
    assert cli("resume", "run", "--no-progress", "--no-report").code == 0 and provider.calls() == 4 * PROMPTS
    assert cli("verify", "run").out.startswith(f"ok: {4 * PROMPTS} records")
    assert cli("score", "run").out.count("sim/thinking @ ") >= 4
    assert cli("report", "run", "--out", "page").code == 0
    with (tmp_path / "page/tables/om-readings.csv").open() as file:
        assert {row["model"] for row in csv.DictReader(file)} == set(NAMES)
    assert cli("export", "run", "--parquet").code == 0
    table = parquet.read_table(run / "records.parquet", columns=["effort"])
    assert set(table.column("effort").to_pylist()) == {"none", "low"}
    where = ("cache", "why", "run", records[0]["id"], "--temperature", "none", "--reasoning-effort", "low")
    told = cli(*where)
    assert told.code == 0 and "reasoning_effort low" in told.out and "hit: " in told.out
    assert "--reasoning-effort is missing: give one of the run's (none, low)" in cli(*where[:4]).err
    assert cli("review", "run", "--sample", "8", "--csv", "labels.csv").code == 0
    with (tmp_path / "labels.csv").open() as file:
        assert {row["effort"] for row in csv.DictReader(file)} == {"none", "low"}


@pytest.mark.needs_benchmark("millstone")
def test_an_effort_decides_whether_max_tokens_are_sent(cli: CommandLine, tmp_path: Path) -> None:
    models = ("openai/gpt-5.5", "openai/gpt-5.1", "openai/gpt-6-luna")
    command = (*GRID, "--model", *models, "--mode", "strict", *QUIET)
    cli("run", *command, "--reasoning-effort", "none", "low", "--out", "run")
    limits = found_in(tmp_path / "run", "manifest.json")["specification"]["max_tokens"]
    assert limits == {
        f"{model} @ {effort}": tokens for model in models for effort, tokens in (("none", 100), ("low", None))
    }
    cli("run", *command, "--out", "plain")
    plain = found_in(tmp_path / "plain", "manifest.json")["specification"]
    assert plain["max_tokens"] == {"openai/gpt-5.5": None, "openai/gpt-5.1": 100, "openai/gpt-6-luna": None}
    assert "pairs" not in plain and plain["temperatures"] == [None]


@pytest.mark.needs_benchmark("chameleon")
def test_an_effort_that_the_table_refuses_a_model_or_a_judge_is_no_run_and_no_plan(cli: CommandLine) -> None:
    of_model = ("millstone", "--model", "openai/gpt-4o", "--reasoning-effort", "none", "low")
    of_judge = ("chameleon", "--model", "sim/open", "--judge", "openai/gpt-4o", "--judge-reasoning-effort", "none")
    for verb in ("run", "plan"):
        for words in (of_model, of_judge):
            done = cli(verb, *words, "--mode", "strict", *(("--out", "x") if verb == "run" else ()))
            assert done.code == 2 and done.out == ""
            assert "openai/gpt-4o: expected no reasoning effort at all, got none; efforts under" in done.err


@pytest.mark.needs_benchmark("chameleon")
def test_efforts_of_models_and_judges_in_chameleon(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    run = ("chameleon", "--model", "sim/open", "--judge", "sim/judge", "--conversations", "1", "--turns", "2")
    asked = (*run, "--pages", "1", "--base-url", provider.base_url, *QUIET)
    cli("run", *asked, *EFFORTS, "--judge-reasoning-effort", "low", "--out", "run")
    scores = found_in(tmp_path / "run", "scores.json")["chameleon"]
    assert set(scores["models"]["sim/open"]) == {"none", "low", "0.5, none", "0.5, low"}
    # How much the temperature matters is a question within one effort.
    assert list(scores["temperatures"]) == ["sim/open @ low", "sim/open @ none"]
    specified = found_in(tmp_path / "run", "manifest.json")["specification"]
    assert (specified["judge_effort"], specified["pairs"][0]) == ("low", ["sim/open", None, "none"])
    assert cli("verify", "run").code == 0 and cli("report", "run").code == 3
    assert cli("judge", "run", "--judge", "sim/sloppy-judge", "--judge-reasoning-effort", "high", *QUIET[:1]).code == 0
    servers = found_in(tmp_path / "run", "judgements.json")["options"]["judges"]
    assert servers["sim/sloppy-judge"].endswith(", effort high")
    other = cli("judge", "run", "--judge", "sim/sloppy-judge", "--no-progress")
    assert other.code == 2 and "effort high before" in other.err
    cli("run", *asked, "--temperature", "none", "--out", "plain")
    plain = found_in(tmp_path / "plain", "manifest.json")["specification"]
    assert plain["pairs"] == [["sim/open", None]] and "judge_effort" not in plain
    assert list(found_in(tmp_path / "plain", "scores.json")["chameleon"]["models"]["sim/open"]) == ["default"]


TASK = """
[task]
name = "capitals"
data = [{{q = "France", a = "Paris"}}]
prompt = "Capital of {{q}}?"
temperature = ["none", 0.5]
{more}
[task.score]
scorer = "judge"
model = "sim/judge"
rubric = "Right is {{a}}."
temperature = "none"
reasoning_effort = "low"
"""


def test_efforts_of_tasks_and_their_judges(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TASK.format(more='reasoning_effort = "low"'))
    asked = ("t.toml", "--model", "sim/open", "--base-url", provider.base_url, *QUIET)
    cli("run", *asked, "--out", "own")
    own = found_in(tmp_path / "own", "manifest.json")["specification"]
    # A task's own effort is a parameter of its calls, as ever, and no treatment.
    assert (own["parameters"]["reasoning_effort"], own["temperatures"], "pairs" in own) == ("low", [None, 0.5], False)
    assert own["score"]["score"]["reasoning_effort"] == "low" and own["score"]["score"]["temperature"] is None
    cli("run", *asked, "--reasoning-effort", "none", "high", "--temperature", "none", "--out", "several")
    several = found_in(tmp_path / "several", "manifest.json")["specification"]
    assert several["pairs"] == [["sim/open", None, "none"], ["sim/open", None, "high"]]
    assert several["parameters"].get("reasoning_effort") is None
    assert list(found_in(tmp_path / "several", "scores.json")["capitals"]["models"]) == [
        "sim/open @ none",
        "sim/open @ high",
    ]
    assert cli("verify", "several").code == 0


@pytest.mark.needs_benchmark("millstone")
def test_extra_fields_of_a_model_are_in_its_keys_and_its_specification(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    run = '[run.millstone]\nmodel = "sim/open"\ntemperature = "none"\nreasoning-effort = ["low"]\nlimit = 1\n'
    run += "templates = 1\ntrials = 1\n"
    file.write_text(run + '[models."sim/open"]\nextra = {provider = {order = ["A"]}}\n')
    cli("run", "run.toml", "--base-url", provider.base_url, *QUIET, "--out", "pinned")
    pinned = found_in(tmp_path / "pinned", "manifest.json")["specification"]
    assert pinned["endpoints"]["sim/open"].endswith(' with {"provider":{"order":["A"]}}')
    assert pinned["pairs"] == [["sim/open", None, "low"]]
    told = cli("cache", "why", "pinned", lines_of(tmp_path / "pinned/records.jsonl")[0]["id"])
    assert 'provider {"order":["A"]}' in told.out and "hit: " in told.out
    file.write_text(run)
    cli("run", "run.toml", "--base-url", provider.base_url, *QUIET, "--out", "free")
    keys = [{line["key"] for line in lines_of(tmp_path / name / "records.jsonl")} for name in ("pinned", "free")]
    assert not keys[0] & keys[1] and provider.calls() == 2 * PROMPTS
    file.write_text(run + '[models."sim/open"]\nextra = {model = "other"}\n')
    refused = cli("run", "run.toml", "--base-url", provider.base_url, *QUIET, "--out", "x")
    assert refused.code == 2 and "can't set model" in refused.err
    file.write_text(run + '[models."sim/open"]\nextra = 3\n')
    assert "extra: expected a table of fields of a request's body, got 3" in cli("run", "run.toml", "--out", "y").err
