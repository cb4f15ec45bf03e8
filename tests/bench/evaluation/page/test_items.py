"""Items by models: the columns have each cell's numbers, and an item has all that was asked and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from item_runs import FEW, ONE, TWO, answer, write_records
from packed_items import packed_items, whole_columns

from millstream.bench.evaluation.page.items import Matrix
from millstream.bench.evaluation.page.part import general_part
from millstream.bench.evaluation.page.runs import read_run
from millstream.bench.task.benchmark import BENCHMARK
from millstream.bench.task.shown_items import TaskItemReader
from millstream.report.sections import PageContents


def matrix(*folders: Path) -> Matrix:
    runs = [read_run(BENCHMARK, folder, None, {}).items for folder in folders]
    return Matrix(runs, {folder: folder.name for folder in folders} if len(folders) > 1 else {})


def cells(columns: dict[str, Any], name: str, model: str) -> dict[str, Any]:
    at = [each["name"] for each in columns["models"]].index(model)
    return dict(zip(columns["items"], columns["cells"][name][at], strict=True))


def test_a_cell_has_the_mean_of_its_trials_and_says_whether_they_differ(tmp_path: Path) -> None:
    columns = whole_columns(matrix(write_records(tmp_path, FEW)).columns())
    assert cells(columns, "answers", ONE) == {"same": 1, "torn": 2, "unread": 1, "dear": 1, "cut": 1, "refused": 0}
    assert cells(columns, "score", ONE) == {
        "same": 1.0,
        "torn": 0.5,
        "unread": None,
        "dear": 1.0,
        "cut": 0.0,
        "refused": None,
    }
    assert [item for item, differs in cells(columns, "differ", ONE).items() if differs] == ["torn"]
    assert cells(columns, "cost", TWO)["dear"] == 2.5 and cells(columns, "longest", ONE)["cut"] == 500
    statuses = {item: columns["statuses"][at] for item, at in cells(columns, "status", ONE).items() if at >= 0}
    assert statuses["cut"] == "cut off" and statuses["same"] == "ok"
    assert columns["groups"] == ["north", "south"] and columns["group"] == [0, 0, 0, 1, 1, 1]
    assert columns["expected"][0] == "right of same" and columns["titles"][0] == "What of same?"


def test_a_cell_has_the_longest_answer_and_the_tokens_that_were_reported(tmp_path: Path) -> None:
    usages = [{"input": 10, "output": 2}, {"input": None, "output": None, "total": 30}, {"input": None, "output": None}]
    answers = [answer("q", ONE, "x" * (9 - at), trial=at, usage=usage) for at, usage in enumerate(usages)]
    columns = whole_columns(matrix(write_records(tmp_path, [*answers, answer("q", TWO, "y")])).columns())
    assert cells(columns, "tokens", ONE) == {"q": 42} and cells(columns, "tokens", TWO) == {"q": None}
    assert cells(columns, "longest", ONE) == {"q": 9} and cells(columns, "cost", ONE) == {"q": None}


def test_each_runs_scores_have_their_own_scale_and_an_unknown_one_is_none(tmp_path: Path) -> None:
    for name, score in (("share", 1.0), ("points", 40.0)):
        write_records(tmp_path / name, [answer("q", ONE, "x", score=score)])
    columns = whole_columns(matrix(tmp_path / "share", tmp_path / "points").columns())
    assert [each["within"] for each in columns["models"]] == [[0.0, 1.0], None]


def test_answers_stand_by_variant_and_trial_with_each_variants_prompt(tmp_path: Path) -> None:
    ran = [(ONE, "B", 1), (TWO, "A", 0), (ONE, "A", 1), (TWO, "B", 0), (ONE, "B", 0), (ONE, "A", 0)]
    lines = [
        answer("q", model, "x", trial=trial, id=f"q/{name}/{trial}", variant=name, prompt=f"In {name}: q?")
        for model, name, trial in ran
    ]
    told = matrix(write_records(tmp_path, lines)).details("q")
    places = [[(each["variant"], each["number"]) for each in model["answers"]] for model in told["models"]]
    assert places == [[("A", 0), ("A", 1), ("B", 0), ("B", 1)], [("A", 0), ("B", 0)]]
    asked = {each["variant"]: each["messages"][0]["content"][0]["text"] for each in told["prompts"]}
    assert asked == {"A": "In A: q?", "B": "In B: q?"}
    assert not any(each["prompt"] or each["facts"] for model in told["models"] for each in model["answers"])


def test_items_stand_in_the_order_of_the_data_where_it_is_known(tmp_path: Path) -> None:
    write_records(tmp_path, [answer(name, ONE, "x") for name in ("c", "a", "b")])
    items = read_run(BENCHMARK, tmp_path, None, {}).items
    assert (columns := whole_columns(Matrix([items], {}).columns()))["items"] == ["c", "a", "b"] and not columns[
        "isInOrder"
    ]
    dataset = {"items": [["a", "", "0"], ["unasked", "", "0"], ["b", "", "0"], ["c", "", "0"]]}
    items.reader = TaskItemReader({"specification": {"score": {}}, "dataset": dataset})
    assert (columns := whole_columns(Matrix([items], {}).columns()))["items"] == ["a", "b", "c"] and columns[
        "isInOrder"
    ]


def test_a_final_failure_is_a_cell_and_is_read_from_its_own_file(tmp_path: Path) -> None:
    write_records(tmp_path, FEW)
    failure = {"id": "same/1", "item": "same", "step": 1, "model": ONE, "temperature": None, "status": "timeout"}
    write_records(tmp_path, [{**failure, "error": "no answer within 5 s"}], "failures.jsonl")
    made = matrix(tmp_path)
    columns = whole_columns(made.columns())
    assert columns["statuses"][cells(columns, "status", ONE)["same"]] == "timeout"
    told = made.details("same")["models"][0]["answers"]
    assert sorted(each["status"] for each in told) == ["ok", "timeout"]
    assert "no answer within 5 s" in [each["problem"] for each in told]


def test_an_item_of_several_runs_has_the_models_of_each(tmp_path: Path) -> None:
    one = write_records(tmp_path / "a", [answer("q", ONE, "A", score=1.0)])
    two = write_records(tmp_path / "b", [answer("p", ONE, "B"), answer("q", ONE, "B", score=0.0)])
    made = matrix(one, two)
    assert [made.model_name(at) for at in range(2)] == [f"a: {ONE}", f"b: {ONE}"]
    assert whole_columns(made.columns())["items"] == ["q", "p"] and made.spread().tolist() == [1.0, 0.0]
    told = made.details("q")
    assert [(each["model"], each["answers"][0]["text"]) for each in told["models"]] == [(0, "A"), (1, "B")]
    # What all were asked stands there once.
    assert (
        told["prompts"][0]["messages"][0]["content"] == [{"text": "What of q?"}]
        and told["models"][1]["answers"][0]["prompt"] == []
    )


def test_rows_of_two_runs_that_have_one_id_are_two_items(tmp_path: Path) -> None:
    one = write_records(tmp_path / "a", [answer("q", ONE, "A"), answer("r", ONE, "A")])
    two = write_records(tmp_path / "b", [answer("q", ONE, "B", row={"answer": "4"}), answer("r", ONE, "B")])
    made = matrix(one, two)
    assert whole_columns(made.columns())["items"] == ["q", "r", "q (b)"]
    assert [each["model"] for each in made.details("q")["models"]] == [0]
    other = made.details("q (b)")
    assert other["expected"] == "4" and [each["model"] for each in other["models"]] == [1]
    assert [each["model"] for each in made.details("r")["models"]] == [0, 1]


SCORERS = {
    "match": ({"scorer": "match", "expected": ["{a}", "{b}"]}, "Paris or Lyon"),
    "choice": ({"scorer": "choice", "expected": "{right}", "letters": "ABCD", "options": "{options}"}, "B. Rome"),
    "letters": ({"scorer": "choice", "expected": "{right}", "letters": "ABCD", "options": None}, "B"),
    "numeric": ({"scorer": "numeric", "expected": "{number}"}, "12.5"),
    "function": ({"scorer": "function", "name": "mine"}, "the key"),
}


@pytest.mark.parametrize("name", SCORERS)
def test_the_expected_answer_is_what_the_scorer_compares_with(name: str) -> None:
    described, expected = SCORERS[name]
    reader = TaskItemReader({"specification": {"score": {"score": described}}})
    row = {"a": "Paris", "b": "Lyon", "right": 1, "options": ["Oslo", "Rome"], "number": 12.5, "answer": "the key"}
    assert reader.expected(row) == expected


def test_a_judges_reason_and_a_tools_call_stand_apart_from_the_answer(tmp_path: Path) -> None:
    judge = [{"scorer": "clear", "model": "lab/judge", "grade": "incorrect", "score": 0.0, "reason": "Too long."}]
    messages = [{"role": "user", "content": "2 + 2?"}, {"role": "tool", "content": [{"toolresult": {"content": "4"}}]}]
    transcript = {
        "messages": messages,
        "calls": [{"model": ONE, "input": 0}, {"model": "add", "role": "tool", "arguments": '{"a": 2}', "reply": 1}],
    }
    folder = write_records(tmp_path, [answer("q", ONE, "4", judge=judge, transcript=transcript)])
    ((told,),) = (each["answers"] for each in matrix(folder).details("q")["models"])
    assert [(each["scorer"], each["grade"], each["reason"]) for each in told["judge"]] == [
        ("clear", "incorrect", "Too long.")
    ]
    said, _, tool = told["steps"]
    assert said == {"role": "user", "content": [{"text": "2 + 2?"}]}
    assert (tool["arguments"], tool["result"]) == ('{"a": 2}', "4")


def page_of(folder: Path) -> PageContents:
    return general_part(BENCHMARK, [read_run(BENCHMARK, folder, None, {})], {}, ())


def test_a_page_of_a_thousand_models_stays_small_and_says_what_it_lacks(tmp_path: Path) -> None:
    words = "a long answer of many words that are all alike and others that are not: "
    records = (
        answer(f"q{item}", f"lab/m{model}", f"{words}{item * model} " * 12, score=float((item + model) % 3 == 0))
        for model in range(1000)
        for item in range(12)
    )
    made = page_of(write_records(tmp_path, records))
    columns, texts = packed_items(made)
    assert sum(map(len, made.packs.values())) < 8_000_000 and len(columns["models"]) == 1000
    assert 0 < len(texts) < 12 and f"here of {len(texts)} items" in columns["notes"][0]


def test_texts_are_cut_and_control_characters_are_shown(tmp_path: Path) -> None:
    folder = write_records(tmp_path, [answer("q", ONE, "a\u202eb" + "x" * 10_000)])
    _, texts = packed_items(page_of(folder))
    (told,) = texts["q"]["models"][0]["answers"]
    assert told["text"].startswith("a[U+202E]b") and told["text"].endswith("(4,003 more characters)")
    columns = matrix(write_records(tmp_path, [answer("q", ONE, "x" * 41, prompt="y" * 81), answer("p", ONE, "z" * 40)]))
    made = whole_columns(columns.columns())
    assert made["titles"][0] == "y" * 79 + "…" and sorted(made["labels"]) == ["x" * 39 + "…", "z" * 40]
    assert "\u202e" not in json.dumps(texts, ensure_ascii=False)
