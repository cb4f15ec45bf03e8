"""The part of a report that a benchmark has which makes none of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from millstream.bench.evaluation.door.benchmark import ItemBenchmark
from millstream.bench.evaluation.door.item_reader import ItemReader
from millstream.bench.evaluation.door.record import Record
from millstream.bench.evaluation.door.served_rows import ScoredRun
from millstream.bench.evaluation.page.part import general_part
from millstream.bench.evaluation.page.runs import ReadRun, counted_run
from millstream.report.interval_text import interval_cell


class Own(ItemBenchmark[Record]):
    name = "own"
    title = "Own"
    columns: ClassVar[tuple[str, ...]] = ("score",)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return ("-",) * len(self.columns)


OWN = Own()


def read_run(folder: Path, specification: dict[str, Any]) -> ReadRun:
    asked = {"temperatures": [None], "models": ["any/m"], **specification}
    return counted_run(ScoredRun(folder=folder, manifest={"specification": asked}, readings=None), ItemReader(Record))


def run_of_one(folder: Path, part: dict[str, Any]) -> ReadRun:
    record = Record(id="a", item="a", step=1, text="x", model="any/m")
    (folder / "records.jsonl").write_bytes(msgspec.json.encode(record) + b"\n")
    run = read_run(folder, {})
    run.scores = part
    return run


def test_every_score_of_answers_that_have_several_stands_on_the_page(tmp_path: Path) -> None:
    figure = {"mean": 0.25, "ci95": [0.1, 0.4], "ci95_of": "items", "ci95_note": None, "items": 40}
    run = run_of_one(tmp_path, {"models": {"any/m": {"mean": 0.5, "scores": {"length": figure, "own": 3}}}})
    tables = {table.name: table for table in general_part(OWN, [run], {}, ()).tables}
    assert tables["own-figure-scores"].rows == (
        ("any/m", None, 0.5, None, None, None, None),
        ("any/m", "length", 0.25, 0.1, 0.4, "over items", 40),
    )


def test_a_table_says_why_a_score_has_no_interval(tmp_path: Path) -> None:
    few = "no interval: fewer than 10 items (9)"
    group = {"mean": 0.25, "ci95": [None, None], "ci95_of": "items", "ci95_note": few, "items": 9}
    run = run_of_one(tmp_path, {"models": {"any/m": {"mean": 0.5, "groups": {"north": group}}}})
    tables = {table.name: table for table in general_part(OWN, [run], {}, ()).tables}
    assert tables["own-groups"].rows == (("north", "any/m", 0.25, None, None, few, 9),)
    assert interval_cell(group, 3) == "none: fewer than 10 items (9)"


def test_the_table_of_answers_says_what_failed_most_often_and_what_it_cost(tmp_path: Path) -> None:
    failure = {"item": "b", "step": 1, "model": "any/m", "temperature": None, "status": "timeout", "cost": 0.25}
    said = ["no answer within 5 s", "no answer within 5 s", "the host sleeps"]
    lines = [{**failure, "id": f"b{at}", "error": error} for at, error in enumerate(said)]
    (tmp_path / "failures.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = run_of_one(tmp_path, {"models": {"any/m": {"mean": 0.5}}})
    tables = {table.name: table for table in general_part(OWN, [run], {}, ()).tables}
    [row] = tables["own-answers"].records()
    assert (row["answered"], row["failures"]) == (1, 3)
    assert (row["reasons"], row["cost"]) == ("timeout 3: no answer within 5 s", "$0.7500")


def test_the_columns_of_the_scores_have_the_names_of_their_titles(tmp_path: Path) -> None:
    titles = ("score", "95% interval over items", "Score", "Model", "得点")

    class Titled(Own):
        columns = titles

    run = run_of_one(tmp_path, {"models": {"any/m": {"mean": 0.5}}})
    scores, *_ = general_part(Titled(), [run], {}, ()).tables
    names = [column.name for column in scores.columns]
    assert names == ["model", "score_1", "95_interval_over_items", "score_3", "model_4", "column"]


@pytest.mark.parametrize(
    ("within", "most"), [([0, 1], 1), ([1, 5], 5), (None, None), ("own", None), (["a", "b"], None)]
)
def test_the_scale_of_the_first_screen_ends_at_the_largest_score_possible(
    tmp_path: Path, within: object, most: float | None
) -> None:
    run = run_of_one(tmp_path, {"within": within, "models": {"any/m": {"mean": 0.11, "ci95": [None, None]}}})
    page = general_part(OWN, [run], {}, ())
    assert page.headline is not None
    assert page.headline.most == most
    (figure,) = page.figures
    assert (
        f'"domainMax":{most}' in json.dumps(figure.spec, separators=(",", ":")) if most else page.headline.most is None
    )


def test_the_options_of_a_run_stand_on_its_page_as_they_were_given(tmp_path: Path) -> None:
    record = Record(id="a", item="a", step=1, text="x", model="any/m")
    (tmp_path / "records.jsonl").write_bytes(msgspec.json.encode(record) + b"\n")
    options = {"max_tokens": None, "only": [], "judge": "a&b", "parts": ["<i>", "two"], "limit": 0}
    run = read_run(tmp_path, {"options": options})
    run.scores = {"models": {}}
    *_, made = general_part(OWN, [run], {}, ()).sections
    for label, told in (
        ("Max tokens", "not given"),
        ("Only", "not given"),
        ("Judge", "a&amp;b"),
        ("Parts", "&lt;i&gt;, two"),
        ("Limit", "0"),
    ):
        assert f"<dt>{label}</dt><dd>{told}</dd>" in made.body


def test_names_of_prompts_and_parameters_stay_as_they_were_written(tmp_path: Path) -> None:
    run = read_run(tmp_path, {"options": {"prompt A": "x", "prompt b_C": "y", "--set Size_B": 3}})
    run.scores = {"models": {}}
    *_, made = general_part(OWN, [run], {}, ()).sections
    for name in ("<h4>Prompt A</h4>", "<h4>Prompt b_C</h4>", "<dt>--set Size_B</dt>"):
        assert name in made.body
