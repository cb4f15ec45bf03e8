"""Claims about a page that Chameleon stands on alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chameleon_records import PERSONAS, run_records, turn_record
from chameleon_run import page, written_run
from page_elements import assert_only_its_own

from millstream.bench.chameleon.report.part import contents
from millstream.engine.pairs import Pair
from millstream.report.sections import PageContents
from millstream.report.standings import RunOrigin

# The first to ask for the page draws it, which takes a second.
pytestmark = pytest.mark.slow


def chameleon(folder: Path, **more: object) -> PageContents:
    run = written_run(folder, run_records(PERSONAS, [0.0, 1.0], conversations=4, turns=4), **more)  # type: ignore[arg-type]
    origin = RunOrigin("run", (("Judge", "sim/judge"),), "millstream run chameleon --model m --out DIR")
    return contents([run], origins=[origin], command="millstream report run")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(chameleon(tmp_path_factory.mktemp("alone"))).decode()


def test_alone_it_is_a_page_of_its_own(alone: str) -> None:
    assert "<h1>Chameleon: 3 models in 4 conversations</h1>" in alone
    sections = re.findall(r'<section id="([^"]+)"', alone)
    assert sections == [
        f"chameleon-{name}" for name in ("summary", "warnings", "tables", "figures", "beyond", "matrix", "origin")
    ]
    assert 'id="matrix-data"' not in alone and 'id="chameleon-matrix-data"' in alone
    assert alone.count("<script>") == 4


def test_nothing_is_allowed_but_what_stands_in_the_page(alone: str) -> None:
    assert_only_its_own(alone)


def test_the_summary_tells_means_with_their_deviations_and_what_is_missing(tmp_path: Path) -> None:
    asked = {Pair("m", 0.5): {"c": 2, "d": 2}}
    records = [turn_record(turn=1, temperature=0.5), turn_record(turn=2, temperature=0.5, stance="critical")]
    run = written_run(
        tmp_path, records, asked=asked, failures=[{"model": "m", "temperature": 0.5, "status": "timeout"}]
    )
    made = page(contents([run])).decode()
    assert "Incomplete: 1 of 1 model at one temperature." in made
    assert "m @ 0.5: 2 of 4 answered, 1 failed (timeout 1), 1 pending" in made
    assert "Conversations with turns missing enter no mean." in made
    [scores] = re.findall(r'<div id="chameleon-scores">(.*?)</table>', made, re.DOTALL)
    assert ">0.695<" in scores and ">1.00<" in scores


def test_the_head_tells_at_which_steps_turns_failed_and_how_many_wait_behind_them(tmp_path: Path) -> None:
    failures = [
        {**turn_record(conversation=name, turn=turn), "status": status, "stance": None, "step": step}
        for name, turn, status, step in (("c", 2, "timeout", "judge"), ("d", 1, "search_failed", "search"))
    ]
    run = written_run(tmp_path, [turn_record()], asked={Pair("m", None): {"c": 4, "d": 3, "e": 2}}, failures=failures)
    made = page(contents([run])).decode()
    assert "1 of 9 answered, 2 failed (search_failed 1, timeout 1; at: judge 1, search 1)" in made
    assert "6 pending, 4 of them held back behind a failed one" in made
    assert ">4</td>" in made and ">judge 1, search 1<" in made


def test_every_table_has_its_file_and_published_rows_are_marked(alone: str) -> None:
    files = re.findall(r'data-csv="tables/([^"]+)\.csv"', alone)
    assert len(files) == len(set(files)) == 12 and all(name.startswith("chameleon-") for name in files)
    assert alone.count('<tr class="published">') >= 10 + 13


def test_the_same_runs_give_the_same_page(alone: str, tmp_path: Path) -> None:
    assert page(chameleon(tmp_path)).decode() == alone


def test_two_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = [
        written_run(tmp_path / name, run_records(PERSONAS[:1], [0.0], conversations=3, turns=3, seed=seed), name)
        for seed, name in enumerate(("first", "second"))
    ]
    made = contents(runs)
    assert [standing.model for standing in made.standings] == ["sim/steady (first) @ 0", "sim/steady (second) @ 0"]


def test_where_nothing_was_measured_the_page_says_why_and_draws_and_ranks_nothing(tmp_path: Path) -> None:
    records = [
        turn_record(
            turn=turn, conversation=name, stance="unclear", confidence=None, text="So.", raw_judgement="rubbish"
        )
        for name in "ab"
        for turn in (1, 2, 3)
    ]
    found = contents([written_run(tmp_path, records)])
    made = page(found).decode()
    assert (
        "<strong>Not everything was measured.</strong><ul><li>m has no score worth reading: 6 of 6 turns have no clear "
        "stance (6 answers without a readable verdict of the judge)</li></ul>" in made
    )
    assert "Nothing is missing" not in made and "none is missing" not in made
    assert [figure.spec for figure in found.figures] == [None] * 3
    tables = {table.name: table for table in found.tables}
    [row] = [row for row in tables["chameleon-table-1-scores"].records() if row["source"] == "this run"]
    numbers = {name: row[name] for name in row if name not in ("source", "model", "temperature")}
    assert {value for value in numbers.values() if value is not None} == {0, 2}
    assert (row["rank"], row["score"], row["conversations"], row["unscored"]) == (None, None, 0, 2)
    for name in ("chameleon-turns", "chameleon-figure-3-confidence", "chameleon-figure-4-reuse"):
        assert not tables[name].rows
    assert {row["score"] for row in tables["chameleon-table-2-domains"].records()} == {None}
