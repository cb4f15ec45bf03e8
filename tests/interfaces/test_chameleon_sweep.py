"""A run file with both benchmarks: one sweep, a folder each, one report of all, and what it says of searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Done, ids_of, lines_of, run_command, scores_of
from simulated_outside import Outside

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

FILE = """
[run]
out = "sweep"
cache = "cache"
allow_host = ["*.sim.test=127.0.0.1:{web_port}"]

[[run.millstone]]
name = "grid"
model = "sim/open"
limit = 1
templates = 1
trials = 2

[[run.chameleon]]
name = "talks"
model = ["sim/open", "sim/contrary"]
judge = "sim/judge"
search = "searxng"
temperature = [0, 1]
conversations = 1
turns = 3
pages = 5
retrieval = "shared"

[providers.sim]
base_url = "{base_url}"
identity = "sim"

[searches.searxng]
base_url = "{web}"
identity = "lab"

[lanes."web/*"]
rpm = 60_000
concurrency = 8
"""
TURNS = 2 * 2 * 3


def swept(home: Path, *more: str) -> Done:
    return run_command(home, "run", "sweep.toml", "--no-progress", *more)


@pytest.fixture(scope="module")
def sweep(running_outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    running_outside.reset()
    home = tmp_path_factory.mktemp("sweep")
    provider = running_outside.provider.base_url
    text = FILE.format(web_port=running_outside.web_port, base_url=provider, web=running_outside.web)
    (home / "sweep.toml").write_text(text)
    return home, swept(home)


def test_both_benchmarks_are_one_sweep_with_a_folder_each_and_one_report(sweep: tuple[Path, Done]) -> None:
    home, done = sweep
    assert done.code == 0, done.err
    assert len(ids_of(home / "sweep/grid")) == 22 and len(ids_of(home / "sweep/talks")) == TURNS
    assert "grid: sim/open" in done.out and "talks: sim/contrary @ 1" in done.out
    page = (home / "sweep/report.html").read_text("utf-8")
    assert "MillStone: sim/open on 1 issue" in page and "Chameleon: 2 models in 1 conversation" in page
    assert (home / "sweep/talks/report.html").is_file() and (home / "sweep/grid/report.html").is_file()
    assert set(scores_of(home / "sweep/talks")["chameleon"]["models"]["sim/open"]) == {"0", "1"}


def test_with_shared_retrieval_all_pairs_read_the_same_and_only_one_searches(
    running_outside: Outside, sweep: tuple[Path, Done]
) -> None:
    home, _ = sweep
    found: dict[str, set[tuple[str, ...]]] = {}
    for line in lines_of(home / "sweep/talks/records.jsonl"):
        found.setdefault(line["id"], set()).add((line["query"], *(page["url"] for page in line["retrieved"])))
    assert {len(seen) for seen in found.values()} == {1}
    # Three turns; SearXNG is asked for as many pages of results as it takes.
    assert running_outside.searches() < 2 * 3 * 2


def test_the_same_file_again_sends_nothing_whatever_the_ports_are_called(
    running_outside: Outside, sweep: tuple[Path, Done]
) -> None:
    home, _ = sweep
    manifest = json.loads((home / "sweep/talks/manifest.json").read_text())
    assert manifest["specification"]["endpoints"] == {
        "sim/open": "sim",
        "sim/contrary": "sim",
        "sim/judge": "sim",
        "search/searxng": "lab",
    }
    before = running_outside.arrivals()
    done = swept(home, "--out", "second", "--no-report")
    assert done.code == 0, done.err
    assert done.out.count("all from the cache; nothing was sent") == 2
    assert running_outside.arrivals() == before


def test_a_plan_of_the_file_tells_both(sweep: tuple[Path, Done]) -> None:
    home, _ = sweep
    done = run_command(home, "plan", "sweep.toml", "--json")
    assert done.code == 0, done.err
    grid, talks = json.loads(done.out)["runs"]
    assert grid["lanes"][0]["calls"][0] + grid["lanes"][0]["cached"] == 22
    assert (talks["turns"], len(talks["pairs"])) == (TURNS, 4)


def test_each_folder_is_resumed_scored_and_verified_by_itself(sweep: tuple[Path, Done]) -> None:
    home, _ = sweep
    for words in (("resume", "sweep/talks", "--no-report", "--no-progress"), ("verify", "sweep/talks")):
        done = run_command(home, *words)
        assert done.code == 0, done.err
    scored = run_command(home, "score", "sweep/grid", "sweep/talks")
    assert scored.code == 0 and "om_pro_share" in scored.out and "read with --sources cited" in scored.out
