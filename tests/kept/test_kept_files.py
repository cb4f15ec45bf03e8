"""What a version wrote is read by this one, with the same numbers (see README.md beside this file)."""

from __future__ import annotations

import json
import re
import tarfile
import time
from pathlib import Path
from typing import Any

import polars
import pytest
from command_line import CommandLine, Done, Provider, lines_of, scores_of

KEPT = Path(__file__).parent / "kept.tar.gz"
GRID = ("millstone", "--model", "sim/open", "--limit", "2", "--templates", "2", "--trials", "2")
TALKS = (
    *("chameleon", "--model", "sim/open", "--judge", "sim/judge", "--temperature", "0", "--conversations", "2"),
    *(
        "--turns",
        "2",
        "--pages",
        "2",
        "--uncited",
        "literal",
        "--search",
        "searxng",
        "--allow-host",
        "*.sim.test=127.0.0.1:18232",
    ),
)
QUIET = ("--no-progress", "--no-report")
UNSENT = ("--mode", "strict", *QUIET)
ANSWERS, PROMPTS = 88, 176
needs_millstone = pytest.mark.needs_benchmark("millstone")
needs_chameleon = pytest.mark.needs_benchmark("chameleon")
each_run = pytest.mark.parametrize(
    "folder",
    [
        pytest.param("answers", marks=needs_millstone),
        pytest.param("killed", marks=needs_millstone),
        pytest.param("turns", marks=needs_chameleon),
    ],
)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path) -> Path:
    """The folder in which commands run, with all that was kept."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def as_json(done: Done, code: int = 0) -> Any:
    assert done.code == code, done.err
    return json.loads(done.out)


def common(now: Any, before: Any) -> Any:
    """What is there now of the fields that were there before: a later version may add fields, and take none away."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {name: common(now[name], value) for name, value in before.items() if name in now}
    return now


@each_run
def test_a_run_has_the_scores_that_it_had(cli: CommandLine, kept: Path, folder: str) -> None:
    before = json.loads((kept / f"{folder}.scores.json").read_text())
    assert common(as_json(cli("score", folder, "--json")), before) == before


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        pytest.param("answers", "ok: 88 records, 0 failures, 0 pending", marks=needs_millstone),
        pytest.param("killed", "ok: {} records, 0 failures, {} pending", marks=needs_millstone),
        pytest.param("turns", "ok: 4 records, 0 failures, 0 pending", marks=needs_chameleon),
        ("out.jsonl", "ok: 6 records, 1 failure, 0 pending"),
    ],
)
def test_a_run_and_a_batch_are_proven_whole(cli: CommandLine, kept: Path, folder: str, found: str) -> None:
    done, lines = cli("verify", folder), len(lines_of(kept / "killed/records.jsonl"))
    assert (done.code, done.out.splitlines()[0]) == (0, found.format(lines, PROMPTS - lines)), done.err


@needs_millstone
def test_a_killed_run_is_finished_within_what_its_budget_leaves(
    cli: CommandLine, provider: Provider, kept: Path
) -> None:
    before = (kept / "killed/records.jsonl").read_bytes()
    number = before.count(b"\n")
    granted = int((kept / "killed/budget").read_text().split()[1])
    where = ("--base-url", provider.base_url, "--cache", "cache", "--config", "prices.toml")
    done = cli("resume", "killed", *where, *QUIET)
    assert done.code == 0, done.err
    assert (kept / "killed/records.jsonl").read_bytes().startswith(before)
    lines = lines_of(kept / "killed/records.jsonl")
    assert len(lines) == PROMPTS == len({line["id"] for line in lines})
    # What was in flight at the kill may be in the cache already.
    assert PROMPTS - number - 2 <= provider.calls() <= PROMPTS - number
    # In billionths of a dollar. What was granted before the kill may have been spent, and is never granted again.
    _, granted_now, _, spent, *_ = (kept / "killed/budget").read_text().split()
    assert int(granted_now) == granted + int(spent)
    assert int(spent) == sum(round(line["cost"] * 1e9) for line in lines[number:] if not line["cached"])


@pytest.mark.parametrize(
    "folder", [pytest.param("answers", marks=needs_millstone), pytest.param("turns", marks=needs_chameleon)]
)
def test_a_finished_run_sends_nothing_when_it_is_resumed(
    cli: CommandLine, provider: Provider, kept: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARXNG_BASE_URL", "http://127.0.0.1:18232")
    before = (kept / folder / "records.jsonl").read_bytes()
    where = ("--base-url", provider.base_url, "--cache", "cache", "--config", "prices.toml")
    assert cli("resume", folder, *where, *QUIET).code == 0
    assert (provider.calls(), (kept / folder / "records.jsonl").read_bytes()) == (0, before)


@pytest.mark.parametrize(
    ("asked", "like"),
    [
        pytest.param((*GRID, "--cache", "cache"), "answers", id="cache", marks=needs_millstone),
        pytest.param((*GRID, "--snapshot", "answers.snapshot"), "answers", id="snapshot", marks=needs_millstone),
        pytest.param((*TALKS, "--cache", "cache"), "turns", id="conversations", marks=needs_chameleon),
    ],
)
def test_every_call_of_a_run_is_answered_by_what_was_stored(
    cli: CommandLine, kept: Path, asked: tuple[str, ...], like: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARXNG_BASE_URL", "http://127.0.0.1:18232")
    done = cli("run", *asked, *UNSENT, "--out", "again")
    assert done.code == 0 and "all from the cache; nothing was sent" in done.out, done.err
    assert {line["id"]: line["text"] for line in lines_of(kept / "again/records.jsonl")} == {
        line["id"]: line["text"] for line in lines_of(kept / like / "records.jsonl")
    }
    # What was said then: scores.json may hold later fields, of what the kept records lack and the cache has.
    before = json.loads((kept / f"{like}.scores.json").read_text())[like]
    assert common(scores_of(kept / "again"), before) == before


@needs_millstone
def test_a_plan_and_cache_why_find_the_stored_answers(cli: CommandLine, kept: Path) -> None:
    [planned] = as_json(cli("plan", *GRID, "--cache", "cache", "--json"))["runs"]
    [lane] = planned["lanes"]
    assert lane["cached"] == planned["prompts"] == ANSWERS
    # A run knows its prices by the path of the day on which it was made.
    manifest = kept / "answers/manifest.json"
    manifest.write_text(manifest.read_text().replace('"/kept/', f'"{kept}/'))
    why = cli("cache", "why", "answers", "bottle-deposits/1/baseline/0", "--cache", "cache")
    assert why.code == 0 and "hit: answered from the cache" in why.out


def test_the_cache_holds_what_it_held(cli: CommandLine, kept: Path) -> None:
    assert as_json(cli("cache", "stats", "--cache", "cache", "--json")) == json.loads(
        (kept / "cache.stats.json").read_text()
    )


def test_lanes_are_known_again(cli: CommandLine, kept: Path) -> None:
    # As if they had been opened just now, elsewhere: what nobody opened for a day is not told, nor a server of this
    # machine that has ended.
    notes = [path for path in (kept / "cache/lanes").iterdir() if b'"opened_at"' in path.read_bytes()]
    assert notes
    for path in notes:
        opened = re.sub(rb'"opened_at":[0-9.e+]+', b'"opened_at":%f' % time.time(), path.read_bytes())
        path.write_bytes(opened.replace(b"127.0.0.1", b"192.0.2.1"))
    found = as_json(cli("quota", "--cache", "cache", "--json"))
    assert [lane["model"] for lane in found["lanes"]] == ["search/searxng", "sim/judge", "sim/open", "sim/steady"]


def test_a_batch_that_is_there_sends_nothing(cli: CommandLine, kept: Path) -> None:
    before = (kept / "out.jsonl").read_bytes()
    where = ("--base-url", "http://127.0.0.1:18231/v1", "--cache", "cache", "--no-progress")
    done = cli("batch", "in.jsonl", "out.jsonl", *where)
    assert done.code == 3 and "6 answers, 1 failed; all there before, nothing was sent" in done.out, done.err
    assert (kept / "out.jsonl").read_bytes() == before


@needs_millstone
@needs_chameleon
def test_runs_and_a_batch_are_exported(cli: CommandLine, kept: Path) -> None:
    assert cli("export", "answers", "turns", "out.jsonl", "--parquet", "--out", "tables").code == 0
    rows = {path.stem: polars.read_parquet(path).height for path in (kept / "tables").glob("*.parquet")}
    assert sorted(rows.values()) == [4, 7, ANSWERS]


@pytest.mark.parametrize(
    ("folder", "title", "figure"),
    [
        pytest.param("answers", "MillStone: sim/open on 2 issues", ">11.81<", marks=needs_millstone),
        pytest.param("turns", "Chameleon: sim/open in 2 conversations", ">0.608<", marks=needs_chameleon),
        ("load", "Load test of sim/open", ">82<"),
    ],
)
def test_a_report_shows_the_same_figures(cli: CommandLine, kept: Path, folder: str, title: str, figure: str) -> None:
    done = cli("report", folder)
    assert done.code == 0, done.err
    page = (kept / folder / "report.html").read_text("utf-8")
    assert f"<h1>{title}</h1>" in page and figure in page
