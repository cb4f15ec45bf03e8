"""Files that declare tasks: which task is meant, where its data lies, and what is wrong, with the file's line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream.bench.task.files as files
from millstream.bench.task.declared import scorer_from, scorers_from, task_from
from millstream.bench.task.judge import judge
from millstream.bench.task.options import options_of_word, split_name
from millstream.bench.task.questions import questions_of, specification
from millstream.bench.task.rows import TaskError
from millstream.bench.task.scorers import match
from millstream.bench.task.task import Task

HEAD = "from millstream.bench.task.task import Task\nfrom millstream.bench.task.scorers import match\n"
CAPITALS = 'capitals = Task(data="capitals.csv", prompt="Of {country}?", score=match("{capital}"))\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "capitals.csv").write_text("country,capital\nFrance,Paris\nPeru,Lima\n")
    return tmp_path


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_of_python_gives_its_task_by_its_variable_with_data_beside_it(folder: Path) -> None:
    (folder / "neighbour.py").write_text("ASK = 'Of {country}?'\n")
    found = files.load_task(written(folder, HEAD + "from neighbour import ASK\n" + CAPITALS))
    assert (found.task.name, found.base) == ("capitals", folder)
    assert [question.input for question in questions_of(found.task, found.base)] == ["Of France?", "Of Peru?"]
    assert sorted(path.name for path in folder.iterdir() if path.suffix in (".py", ".csv")) == [
        "capitals.csv",
        "mine.py",
        "neighbour.py",
    ]


def test_a_data_file_without_rows_is_named(folder: Path) -> None:
    (folder / "capitals.csv").write_text("country,capital\n")
    found = files.load_task(written(folder, HEAD + CAPITALS))
    with pytest.raises(TaskError, match=rf"^{folder / 'capitals.csv'} has no rows: expected at least one$"):
        questions_of(found.task, found.base)


def test_of_several_tasks_one_is_named(folder: Path) -> None:
    path = written(folder, HEAD + CAPITALS + CAPITALS.replace("capitals =", "more =").replace("Of", "What of"))
    assert split_name(f"{path}:more") == (path, "more") and split_name("a/b:c.csv") == (Path("a/b:c.csv"), None)
    assert files.load_task(path, "more").task.prompt == "What of {country}?"
    with pytest.raises(TaskError, match=r"has several tasks: name one, as mine.py:capitals \(capitals, more\)"):
        files.load_task(path)
    with pytest.raises(TaskError, match="no task 'other': it has capitals, more"):
        files.load_task(path, "other")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "expected a task, as name = ms.Task"),
        ("\nx = 1 / 0\n", "mine.py line 2: ZeroDivisionError: division by zero"),
        (
            "\nimport nowhere.at.all\n",
            r"line 2: ModuleNotFoundError: .*'nowhere': install it into the environment that",
        ),
        (HEAD + 'mine = Task(promt="Of {country}?")\n', r"line 3: TypeError: .*'promt' \(nearest: prompt\)$"),
        (HEAD + 'match("a", exakt=True)\n', r"line 3: TypeError: .*'exakt'.* \(nearest: exact\)$"),
        ("import millstream as ms\nms.nummeric(1)\n", r"line 2: AttributeError: .*'nummeric' \(nearest: numeric\)$"),
        ("import millstream as ms\nms.zzz\n", r"'zzz': its names are in dir\(millstream\)$"),
        ("x = (\n", "mine.py line 1: SyntaxError"),
        ("import sys\nsys.exit(3)\n", "mine.py line 2: SystemExit: 3"),
        (HEAD + 'capitals = Task(data="x.csv", prompt="Of {country", score=match("a"))\n', "prompt: { at character 3"),
        (
            "from millstream.bench.task.files import check_not_loading\ncheck_not_loading()\n",
            "calls evaluate.. while it",
        ),
    ],
)
def test_a_file_that_declares_none_says_so_in_one_line(folder: Path, text: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        files.load_task(written(folder, text))
    assert "\n" not in str(caught.value)
    files.check_not_loading()


TOML = """
[task]
data = "capitals.csv"
prompt = "Of {country}?"
trials = 3
score = "match"
expected = "{capital}"
"""


def test_a_table_declares_the_same_task_as_python(folder: Path) -> None:
    path = written(folder, TOML, "capitals.toml")
    found = files.load_task(path)
    assert options_of_word(str(path)) == {"file": str(path)}
    assert options_of_word("mine.py:x") == {"file": "mine.py:x"} and options_of_word("run.yaml") is None
    assert options_of_word(str(written(folder, TOML + "[run]\n", "run.toml"))) is None
    by_hand = Task(data="capitals.csv", prompt="Of {country}?", trials=3, score=match("{capital}"))
    assert found.task.name == "capitals"
    both = [specification(task, questions_of(task, folder)) for task in (found.task, by_hand)]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"score": None}, "here: score: expected it, got none"),
        ({"promt": "a"}, r"here: unknown key 'promt' \(nearest: prompt\)"),
        ({"expectd": "a"}, r"here: unknown key 'expectd' \(nearest: expected\)"),
        ({"scor": "a"}, r"here: unknown key 'scor' \(nearest: score\)"),
        ({"tools": []}, r"here: unknown key 'tools'"),
        ({"score": "numbers"}, r"^here: score: expected one of .*, got 'numbers' \(nearest: numeric\)$"),
        (
            {"score": "mach"},
            "here: score: expected one of match, regex, choice, numeric, judge, loglikelihood, win_rate, got 'mach'",
        ),
        (
            {"score": {"scorer": "numeric", "expcted": "1"}},
            "here: score: numeric: unknown key 'expcted' .nearest: expected",
        ),
        ({"score": {"scorer": "regex"}}, "here: score: regex: missing 1 required positional argument: 'pattern'"),
        (
            {"score": {"scorer": "function", "name": "grade"}},
            "here: score: grade is a function: it is in the task's own",
        ),
        ({"score": {"a": 3}}, "here: score: a: expected the table of a scorer, got 3"),
        ({"score": {"scorer": "match"}, "expected": "a"}, "here: expected stands in the table of its scorer"),
        ({"trials": 0}, "here: trials: expected a whole number"),
        ({"data": {"a": 1}}, "here: data: expected a path or a list of rows"),
    ],
)
def test_a_table_that_declares_none_names_the_key(table: dict[str, Any], said: str) -> None:
    plain = {"data": "a.csv", "prompt": "a"} | ({} if "score" in table else {"score": "match", "expected": "b"})
    with pytest.raises(TaskError, match=said):
        task_from({name: value for name, value in (plain | table).items() if value is not None}, "here")


@pytest.mark.parametrize(
    "table",
    [
        {"scorer": "match", "expected": ["{a}", "b"], "at": "end", "exact": False},
        {"scorer": "regex", "pattern": "a(.)", "flags": 2, "expected": "{a}"},
        {"scorer": "choice", "expected": "{a}", "letters": "ABC", "options": None},
        {"scorer": "numeric", "expected": "{a}", "tolerance": 0.5, "relative": 0.0, "percent": "ignored"}
        | {"decimal": ",", "which": "last"},
    ],
)
def test_a_scorer_is_made_again_from_what_a_manifest_keeps_of_it(table: dict[str, Any]) -> None:
    assert scorer_from(table, "here").describe() == table
    judged = {"scorer": "judge", "model": "a/j", "rubric": "{a}?", "scale": [1, 5]}
    made = scorers_from({"judge": judged})["judge"]
    assert scorer_from(made.describe(), "here").describe() == made.describe()


def test_a_judge_that_was_sent_no_temperature_is_sent_none_when_it_is_made_again() -> None:
    made = judge("a/j", "{a}?", temperature=None)
    assert scorer_from(made.describe(), "here") == made
    assert scorer_from({"scorer": "judge", "model": "a/j", "rubric": "{a}?"}, "here") == judge("a/j", "{a}?")
