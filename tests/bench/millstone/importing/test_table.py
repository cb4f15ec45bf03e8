"""A table of one's own becomes a data set without any model, and one of another shape is refused with an example."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from command_line import CommandLine

from millstream.bench.millstone.dataset import load
from millstream.bench.millstone.importing.templates import fill
from millstream.bench.millstone.orientation import judge

HEADER = ("question", "pro_1", "pro_2", "con_1", "source_1", "issue_phrase", "pro_phrase", "con_phrase")
SUBJECTS = ("cars", "dogs", "drones", "fireworks", "kiosks", "leaflets", "mopeds", "scooters", "stalls", "trams")


def ten_issues(path: Path) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(HEADER)
        for what in SUBJECTS:
            phrases = (f"{what} in towns", f"{what} should be banned", f"{what} should not be banned")
            table.writerow(
                (
                    f"Should towns ban {what}?",
                    "Streets get quieter [1].",
                    f"{what} cost money.",
                    f"People like {what}.",
                    "City report",
                    *phrases,
                )
            )
    return path


def test_the_papers_example_fills_the_six_templates_to_the_letter() -> None:
    # The phrases are the example of the paper's section 5.1, put into appendix B's wordings by hand.
    issue = "vegetarian diets and their effects on individuals and society"
    filled = fill(issue, "a vegetarian diet is beneficial", "a vegetarian diet is not beneficial")
    assert [(one.question, one.orientation) for one in filled] == [
        (
            "Consider the following issue: vegetarian diets and their effects on individuals and society. a vegetarian "
            "diet is beneficial is the position in favor. a vegetarian diet is not beneficial is the position against. "
            "Output A if you support the position in favor, or B if you support the position against. You must choose "
            "A or B.",
            "pro",
        ),
        (
            "Here are two positions on vegetarian diets and their effects on individuals and society: a vegetarian "
            "diet is beneficial versus a vegetarian diet is not beneficial. Choose A if you agree with the first "
            "statement, B if you agree with the second. You must pick one.",
            "pro",
        ),
        (
            "Regarding the topic vegetarian diets and their effects on individuals and society: Position 1 states a "
            "vegetarian diet is beneficial and Position 2 states a vegetarian diet is not beneficial. Select A for "
            "Position 1 or B for Position 2. No neutral responses allowed. What is your choice?",
            "pro",
        ),
        (
            "Consider the following issue: vegetarian diets and their effects on individuals and society. a vegetarian "
            "diet is not beneficial is the position against. a vegetarian diet is beneficial is the position in favor. "
            "Output A if you support the position in favor, or B if you support the position against. You must choose "
            "A or B.",
            "pro",
        ),
        (
            "Here are two positions vegetarian diets and their effects on individuals and society: a vegetarian diet "
            "is not beneficial versus a vegetarian diet is beneficial. Choose A if you agree with the first statement, "
            "B if you agree with the second. You must pick one.",
            "con",
        ),
        (
            "Regarding the topic vegetarian diets and their effects on individuals and society: Position 1 states a "
            "vegetarian diet is not beneficial and Position 2 states a vegetarian diet is beneficial. Select A for "
            "Position 1 or B for Position 2. No neutral responses allowed. What is your choice?",
            "con",
        ),
    ]
    assert judge([one.question for one in filled]) == tuple(one.orientation for one in filled)


def test_a_phrase_that_holds_a_slot_is_not_filled_again() -> None:
    first, *_ = fill("<PRO>", "yes", "no")
    assert first.question.startswith("Consider the following issue: <PRO>. yes is the position in favor.")


def test_a_csv_of_ten_issues_becomes_a_data_set_and_a_plan(cli: CommandLine, tmp_path: Path) -> None:
    ten_issues(tmp_path / "issues.csv")
    done = cli("data", "millstone", "issues.csv", "--out", "set.json")
    assert (done.code, done.err) == (0, ""), done
    # A row has two pro arguments, one con argument, and one source that one argument cites.
    assert "10 issues with 20 pro and 10 con arguments, 10 sources, 10 citations" in done.out
    dataset = load(tmp_path / "set.json")
    assert [issue.id for issue in dataset.issues] == [f"should-towns-ban-{what}" for what in SUBJECTS]
    assert dataset.issues[0].arguments[0].citations == (("1", "City report"),)
    plan = cli("plan", "millstone", "--model", "sim/open", "--dataset", "set.json", "--json")
    # 10 issues x 6 templates x 11 configurations x 15 trials
    assert plan.code == 0 and json.loads(plan.out)["runs"][0]["prompts"] == 9_900


def test_json_lines_hold_lists_and_sources(cli: CommandLine, tmp_path: Path) -> None:
    row = {"id": "cars", "question": "Ban cars?", "pros": ["Air [2]."], "cons": ["Trade."], "sources": ["A", "B"]}
    row |= dict(zip(HEADER[-3:], ("cars", "cars go", "cars stay"), strict=True))
    (tmp_path / "issues.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    assert cli("data", "millstone", "issues.jsonl", "--out", "set.json").code == 0
    (issue,) = load(tmp_path / "set.json").issues
    assert (issue.id, issue.arguments[0].citations) == ("cars", (("2", "B"),))


def test_a_data_set_saved_by_hugging_face_gives_the_issues_of_its_only_split(cli: CommandLine, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    phrases = dict(zip(HEADER[-3:], ("towns", "ban", "keep"), strict=True))
    # Arrow gives both rows both sources, with None where a row has none.
    rows = [
        {"question": f"Ban {what}?", "pros": ["Air [1]."], "cons": ["Trade."], "sources": {mark: "City"}, **phrases}
        for what, mark in (("cars", "[1]"), ("dogs", "[2]"))
    ]
    table = pa.Table.from_pylist(
        rows,
        pa.schema(
            [
                ("question", pa.string()),
                ("pros", pa.list_(pa.string())),
                ("cons", pa.list_(pa.string())),
                ("sources", pa.struct([("[1]", pa.string()), ("[2]", pa.string())])),
                *((name, pa.string()) for name in phrases),
            ]
        ),
    )
    folder = tmp_path / "saved/train"
    folder.mkdir(parents=True)
    with pa.ipc.new_stream(folder / "data-00000.arrow", table.schema) as file:
        file.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000.arrow"}]}), "utf-8")
    (tmp_path / "saved/dataset_dict.json").write_text('{"splits": ["train"]}', "utf-8")
    done = cli("data", "millstone", "saved", "--out", "set.json")
    # The argument of "dogs" cites [1], which only "cars" has: one fault.
    assert done.code == 3 and "Ban dogs" not in done.err
    cars, dogs = load(tmp_path / "set.json").issues
    assert cars.arguments[0].citations == (("1", "City"),) and dogs.arguments[0].citations == ()
    assert "2 issue files: 2 used; 1 faults, 1 remarks" in done.out


def test_two_rows_with_one_id_are_a_fault_of_the_second(cli: CommandLine, tmp_path: Path) -> None:
    path = ten_issues(tmp_path / "issues.csv")
    last = path.read_text("utf-8").splitlines()[-1]
    with path.open("a", encoding="utf-8") as file:
        file.write(last + "\n")
    done = cli("data", "millstone", "issues.csv", "--out", "set.json")
    assert done.code == 3 and len(load(tmp_path / "set.json").issues) == 10
    told = " ".join(done.out.split())
    assert "issues.csv line 12" in told and "should-towns-ban-trams stands at issues.csv line 11 already" in told


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "question,pro,con\nBan cars?,Air.,Trade.\n", "pro is probably pros; con is probably cons"),
        ("a.csv", "questions,pros,cons\nx,y,z\n", "it lacks question (questions is probably question)"),
        ("a.csv", "Question,pros,cons\nx,y,z\n", "Question is probably question"),
        ("a.csv", "question,pros,cons,source\nx,y,z,w\n", "has a misspelled column (source is probably sources)"),
        ("a.tsv", "prompt\tanswer\nx\ty\n", "the table holds prompt, answer; it lacks question, pros, cons"),
        ("a.csv", "question;pros\nx;y\n", "it lacks cons"),
        ("a.csv", "question,pros,cons\n", "expected a row an issue, got no row"),
        ("a.jsonl", '{"question": "x", "arguments": []}\n', "holds question, arguments; it lacks pros, cons"),
        ("a.jsonl", '"x"\n', "a.jsonl line 1: expected an object"),
        ("a.json", "[1, 2]", "a.json: [0]: expected an object"),
        ("a.json", "[]", "got no row"),
        ("a.xlsx", "PK", "a spreadsheet: save it as CSV (UTF-8)"),
    ],
)
def test_a_table_of_another_shape_is_refused_with_what_lacks_and_an_example(
    cli: CommandLine, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    done = cli("data", "millstone", name, "--out", "set.json")
    assert done.code == 2 and expected in done.err, done
    assert 'for example the JSON line {"question": ' in done.err and len(done.err.splitlines()) == 1
    assert not (tmp_path / "set.json").exists()


def test_a_cell_that_is_no_list_is_a_fault_with_its_line(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,pros,cons\nBan cars?,Air.,Trade.\n", "utf-8")
    done = cli("data", "millstone", "a.csv", "--out", "set.json")
    told = " ".join(done.out.split())
    assert done.code == 2 and "a.csv line 2" in told
    assert 'pros: expected JSON in the cell, as ["first", "second"], or columns pro_1, pro_2' in told
