"""SYCON-Bench's part of a report: every number is one of the scores, texts are harmless, and pages stay small."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from packed_items import packed_items

from millstream.bench.evaluation.page.runs import read_run
from millstream.bench.evaluation.running.journals import encode
from millstream.bench.sycon.benchmark import BENCHMARK
from millstream.bench.sycon.records import Record
from millstream.bench.sycon.report.part import held_figure, held_table, items_table, scores_table
from millstream.bench.sycon.series import SeriesScores, series_in
from millstream.engine.pairs import Pair
from millstream.metrics.sycon.conversations import SyconSeries, SyconTurn
from millstream.metrics.sycon.judgement import WORDS, Setting
from millstream.metrics.sycon.scores import scores
from millstream.report.sections import PageContents
from millstream.report.table import Table


def turns(model: str, setting: Setting, rows: dict[int, str]) -> list[SyconTurn]:
    """`rows` has five marks for each item."""
    series = SyconSeries(Pair(model, None), setting, "base")
    return [
        SyconTurn(series=series, item=row, number=number, held=mark == "1")
        for row, marks in rows.items()
        for number, mark in enumerate(marks, 1)
    ]


def series(given: list[SyconTurn]) -> list[SeriesScores]:
    return series_in(scores(given)["models"])


def report(folder: Path, given: list[SyconTurn], text: str = "An answer.", *, manifest: bool = False) -> PageContents:
    """The part of a report of one folder with these turns."""
    folder.mkdir()
    lines = [
        Record(
            id=f"{turn.series.setting}/{turn.series.strategy}/{turn.item}/{turn.number}",
            item=f"{turn.series.setting}/{turn.series.strategy}/{turn.item}" if manifest else "",
            model=turn.series.pair.model,
            question=f"Question {turn.number}?",
            text=text,
            judgement=WORDS[turn.series.setting][0 if turn.held else -1],
            held=turn.held,
        )
        for turn in given
    ]
    (folder / "records.jsonl").write_bytes(b"".join(encode(line) + b"\n" for line in lines))
    return BENCHMARK.report([read_run(BENCHMARK, folder, None, {})], {}, ())


def body(contents: PageContents) -> str:
    return "".join(section.body for section in contents.sections)


ONE = turns("lab/one", "debate", {row: "11111" if row % 2 else "11000" for row in range(1, 31)})
TWO = turns("lab/two", "debate", dict.fromkeys(range(1, 31), "10111"))
FEW = turns("lab/one", "ethical", {1: "11111", 2: "01010", 3: "11100"})


def rows_of(table: Table) -> list[dict[str, Any]]:
    return [*table.records()]


def test_the_tables_have_the_scores_numbers() -> None:
    one, few, two = rows_of(scores_table(series(ONE + TWO + FEW)))
    assert (one["model"], one["turn_of_flip"], one["number_of_flips"], one["items"]) == ("lab/one", 3.5, 0.5, 30)
    assert one["turn_of_flip_low"] < 3.5 < one["turn_of_flip_high"] < 5
    assert (two["model"], two["turn_of_flip"], two["turn_of_flip_low"]) == ("lab/two", 1, None)
    assert (few["setting"], few["number_of_flips"], few["turn_of_flip_low"]) == ("ethical", pytest.approx(5 / 3), None)
    held = [row["held"] for row in rows_of(held_table(series(TWO)))]
    assert held == [1, 0, 1, 1, 1]
    assert rows_of(items_table(series(FEW)))[1] == {
        "model": "lab/one",
        "setting": "ethical",
        "strategy": "base",
        "item": 2,
        "turn_of_flip": 0,
        "number_of_flips": 4,
        "held": "0 1 0 1 0",
    }


def test_a_summary_sets_models_side_by_side_and_says_why_there_is_no_interval(tmp_path: Path) -> None:
    page = report(tmp_path / "run", ONE + FEW + TWO).sections[0].body
    [summary] = re.findall(r'<div id="sycon-scores-summary">(.*?)</table>', page, re.DOTALL)
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in summary.split("<tr")[2:]]
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("lab/one", "debate", "2.93 to 4.07"),
        ("lab/two", "debate", "none: all 30 items have the same figure"),
        ("lab/one", "ethical", "none: fewer than 10 items (3)"),
    ]


def test_the_figure_has_a_point_for_each_turn_and_an_interval_where_one_is_honest() -> None:
    figure = held_figure(held_table(series(ONE + TWO + FEW)), ("lab/one", "lab/two"))
    assert figure.spec is not None
    points = figure.spec["datasets"]["rows"]
    assert len(points) == 15 and {point["panel"] for point in points} == {"debate, base", "ethical, base"}
    third = next(point for point in points if point["turn"] == 3 and "one" in point["model"])
    assert third["y"] == 0.5 and third["low"] < 0.5 < third["high"]
    assert all(point["low"] is None for point in points if point["panel"] == "ethical, base")


def test_without_a_judged_item_the_part_says_so(tmp_path: Path) -> None:
    found = report(
        tmp_path / "run",
        [SyconTurn(series=SyconSeries(Pair("lab/one", None), "debate", "base"), item=1, number=1, held=None)],
    )
    assert [figure.spec for figure in found.figures] == [None]
    page = body(found)
    assert "No item has all five turns judged." in page
    assert "lab/one, debate, base has no figure" in found.unmeasured[0]


@pytest.mark.parametrize("has_items", [True, False])
def test_a_page_of_a_folder_has_figures_tables_and_conversations(tmp_path: Path, has_items: bool) -> None:
    found = report(tmp_path / "run", ONE + FEW, manifest=has_items)
    assert [table.name for table in found.tables] == [
        "sycon-scores",
        "sycon-held-by-turn",
        "sycon-items",
        "sycon-answers",
    ]
    assert [section.name for section in found.sections] == [
        "sycon-summary",
        "sycon-figures",
        "sycon-tables",
        "sycon-matrix",
        "sycon-origin",
    ]
    assert "1 1 0 0 0" in body(found)
    columns, texts = packed_items(found)
    answers = [answer for item in texts.values() for model in item["models"] for answer in model["answers"]]
    assert len(texts) == len(columns["items"]) == 33 and [answer["text"] for answer in answers] == ["An answer."] * 165


def test_runs_of_one_model_stand_side_by_side_under_their_folders_names(tmp_path: Path) -> None:
    for name, given in (("first", FEW), ("second", FEW[:5])):
        report(tmp_path / name, given)
    runs = [read_run(BENCHMARK, tmp_path / name, None, {}) for name in ("first", "second")]
    scored, *_ = BENCHMARK.report(runs, {}, ()).tables
    assert [(row["model"], row["items"]) for row in scored.records()] == [
        ("first: lab/one", 3),
        ("second: lab/one", 1),
    ]


def test_texts_of_models_and_judges_can_do_nothing_in_a_page(tmp_path: Path) -> None:
    found = report(tmp_path / "run", FEW, "<script>alert(1)</script>\u202e")
    page, texts = body(found), json.dumps(packed_items(found)[1], ensure_ascii=False)
    assert "<script>" not in page and "\u202e" not in page
    assert "<script>" in texts and "\u202e" not in texts
