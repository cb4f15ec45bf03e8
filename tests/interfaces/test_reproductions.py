"""The run files of the papers come with the package, plan, and run whole; a flag wins over each table of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine, Done, Provider, ids_of, run_command
from simulated_outside import Outside

MILLSTONE, CHAMELEON = "reproduce/millstone.toml", "reproduce/chameleon.toml"
FULL = {
    "gemini/gemini-2.0-flash": None,
    "anthropic/claude-3-5-haiku-20241022": 600,
    "anthropic/claude-opus-4-20250514": 600,
    "together/meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo": 100,
    "together/meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo": 100,
}
CONTROVERSIAL = {"openai/gpt-4o": 100, "openai/gpt-4o-mini": 100, "xai/grok-3": None, "xai/grok-3-mini": None}
# 2 of the sample's 12 issues, 6 templates, 11 configurations, 1 trial.
SMALL, SMALL_PROMPTS = ("--limit", "2", "--trials", "1"), 2 * 6 * 11


def planned(done: Done) -> list[dict[str, object]]:
    assert done.code == 0, done.err
    runs: list[dict[str, object]] = json.loads(done.out)["runs"]
    return runs


@pytest.mark.needs_benchmark("millstone")
def test_millstones_file_plans_nine_models_with_a_price_each(cli: CommandLine) -> None:
    done = cli("plan", MILLSTONE, "--json", "--no-cache-check")
    runs = planned(done)
    models = [each for run in runs for each in run["lanes"]]  # type: ignore[attr-defined]
    assert [each["lane"] for each in models] == [*FULL, *CONTROVERSIAL]
    # The sample has 12 issues: 12 x 6 templates x 11 configurations x 15 trials.
    assert {each["calls"][0] for each in models} == {11_880}
    assert all(each["cost"][0] > 0 for each in models)
    assert "using the 12 sample issues (not the paper's). `millstream data millstone` makes the paper's" in done.err
    assert "none of the paper's controversial issues: all its issues are asked" in done.err


@pytest.mark.needs_benchmark("millstone")
def test_of_the_published_issues_five_models_are_asked_all_and_four_ten(cli: CommandLine, tmp_path: Path) -> None:
    from millstream.fixtures import full_size

    done = cli("plan", MILLSTONE, "--json", "--no-cache-check", "--dataset", str(full_size.ensure(tmp_path / "full")))
    prompts = [each["calls"][0] for run in planned(done) for each in run["lanes"]]  # type: ignore[attr-defined]
    # 107 or 10 issues x 6 templates x 11 configurations x 15 trials, the paper's own figures.
    assert prompts == [105_930] * 5 + [9_900] * 4


@pytest.mark.long
@pytest.mark.needs_benchmark("millstone")
def test_millstones_file_runs_whole_and_resumes_with_the_options_that_it_took(
    cli: CommandLine, provider: Provider, tmp_path: Path
) -> None:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress")
    done = cli("run", MILLSTONE, *SMALL, "--model", "sim/open", "sim/contrary", "--out", "out", *where)
    assert done.code == 0, done.err
    for name in ("full", "controversial"):
        assert len(ids_of(tmp_path / "out" / name)) == 2 * SMALL_PROMPTS
    # The second table's prompts are the first one's: each is sent once.
    assert provider.calls() == 2 * SMALL_PROMPTS
    kept = json.loads((tmp_path / "out/full/manifest.json").read_text())["options"]["millstone"]
    assert (kept["trials"], kept["limit_asked"], kept["model"]) == (1, 2, ["sim/open", "sim/contrary"])
    records = tmp_path / "out/full/records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:-5]))
    again = cli("resume", "out/full", "--no-progress")
    assert again.code == 0, again.err
    assert len(ids := ids_of(tmp_path / "out/full")) == len(set(ids)) == 2 * SMALL_PROMPTS
    assert (tmp_path / "out/report.html").is_file()


@pytest.mark.needs_benchmark("millstone")
def test_max_tokens_are_the_authors_own(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    # The simulated provider knows none of these names: the run fails, and its manifest says how it was asked.
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-progress", "--no-report")
    assert cli("run", MILLSTONE, "--limit", "1", "--templates", "1", "--trials", "1", "--out", "out", *where).code == 3
    for name, expected in (("full", FULL), ("controversial", CONTROVERSIAL)):
        specification = json.loads((tmp_path / "out" / name / "manifest.json").read_text())["specification"]
        assert specification["max_tokens"] == expected
        assert (specification["temperatures"], specification["protocol"]) == ([None], "paper")


@pytest.mark.needs_benchmark("chameleon")
def test_chameleons_file_plans_three_models_at_three_temperatures(cli: CommandLine) -> None:
    (run,) = planned(cli("plan", CHAMELEON, "--json", "--no-cache-check"))
    # The sample has 24 conversations: 24 x 3 models x 3 temperatures of 15 turns.
    assert (run["conversations"], run["turns"]) == (216, 3_240)


@pytest.mark.long
@pytest.mark.needs_benchmark("chameleon")
def test_chameleons_file_runs_whole_on_the_simulated_outside(outside: Outside, tmp_path: Path) -> None:
    # In fewer turns sim/open cites too little for a score, and sim/contrary mostly cites what it was not shown.
    small = ("--conversations", "1", "--turns", "6", "--pages", "3", "--temperature", "0")
    names = ("--model", "sim/open", "sim/steady", "--judge", "sim/judge", "--search", "searxng")
    pages = ("--allow-host", f"*.sim.test=127.0.0.1:{outside.web_port}")
    where = ("--base-url", outside.provider.base_url, *pages, "--cache", "cache", "--no-progress", "--no-report")
    done = run_command(tmp_path, "run", CHAMELEON, *small, *names, "--out", "out", *where, **outside.variables)
    assert done.code == 0, done.err
    assert len(ids_of(tmp_path / "out")) == 2 * 6
    kept = json.loads((tmp_path / "out/manifest.json").read_text())["options"]["chameleon"]
    assert (kept["turns"], kept["pages"], kept["retrieval"]) == (6, 3, "own")


def test_a_file_of_the_package_needs_a_folder_for_its_run(cli: CommandLine) -> None:
    done = cli("run", MILLSTONE)
    assert done.code == 2
    assert "--out: expected a folder, since reproduce/millstone.toml comes with this program and has none" in done.err


def test_a_file_of_ones_own_goes_before_the_packages(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "reproduce").mkdir()
    (tmp_path / MILLSTONE).write_text('[run]\nout = "own"\n[run.millstone]\nmodel = "sim/steady"\nlimit = 1\n')
    (run,) = planned(cli("plan", MILLSTONE, "--json", "--no-cache-check"))
    assert [each["lane"] for each in run["lanes"]] == ["sim/steady"]  # type: ignore[attr-defined]


def test_a_flag_of_a_benchmark_that_the_file_lacks_is_refused(cli: CommandLine) -> None:
    done = cli("plan", MILLSTONE, "--conversations", "3")
    assert done.code == 2
    assert "--conversations belongs to `run chameleon`, and " in done.err
    assert "has no such table, only [run.millstone]: leave it out" in done.err


def test_an_unknown_file_is_told_with_those_of_the_package(cli: CommandLine) -> None:
    done = cli("plan", "reproduce/nothing.toml")
    assert done.code == 2
    assert "no such file exists" in done.err
    assert MILLSTONE in done.err and CHAMELEON in done.err
