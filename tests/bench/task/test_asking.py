"""A task is sent: one line a trial, judges asked once the answer is there, resumed without paying anything twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluated import JUDGE, MODEL, Lives, whole

from millstream.bench.task.asking import TaskItems
from millstream.bench.task.benchmark import TaskBenchmark
from millstream.bench.task.judge import judge
from millstream.bench.task.questions import questions_of
from millstream.bench.task.records import Record
from millstream.bench.task.scorers import match
from millstream.bench.task.task import Task
from millstream.engine.call import Reply

ROWS = [{"id": f"r{number}", "word": f"w{number}", "group": "odd" if number % 2 else "even"} for number in range(6)]


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def made(**fields: Any) -> TaskBenchmark:
    task = Task(**{"data": ROWS, "prompt": "Say {word}", "score": match("{word}", at="end"), "trials": 2, **fields})
    return TaskBenchmark(TaskItems(task, questions_of(task, Path())))


def graded(prompt: str, at: float) -> str | None:
    """The judge of w1 gives no grade at first, that of w2 never does."""
    if "You grade an answer" not in prompt:
        return None
    if "w2" in prompt or ("w1" in prompt and "not the object" not in prompt):
        return "Well."
    return '{"reason": "so", "grade": "correct"}'


def test_every_trial_of_a_row_gets_its_line_with_question_answer_and_score(lives: Lives) -> None:
    lives.live(made())
    assert sorted((line["model"], line["id"]) for line in lives.lines()) == sorted(
        (model, line) for model, _, line in whole(made())
    )
    line = next(line for line in lives.lines() if line["id"] == "r3/1" and line["model"] == MODEL)
    assert (line["item"], line["trial"], line["group"], line["row"]) == ("r3", 1, "odd", ROWS[3])
    assert (line["prompt"], line["text"], line["score"], line["problem"]) == ("Say w3", "answer to Say w3", 1.0, None)
    assert len(line["keys"]) == 1 and "scores" not in line and "judge" not in line
    # Two trials of one prompt are two samples. (The scripted provider keys no model.)
    assert lives.sent == {f"Say w{number}": 2 for number in range(6)}


def test_judges_are_asked_about_each_answer_once_and_again_where_they_give_no_grade(lives: Lives) -> None:
    both = {"right": match("{word}", at="end"), "good": judge(JUDGE, "It should say {word}.")}
    lives.live(made(score=both), script=graded)
    lines = {(line["model"], line["id"]): line for line in lives.lines()}
    assert len(lines) == 24
    line = lines[MODEL, "r3/0"]
    assert (line["score"], line["scores"]) == (1.0, {"right": 1.0, "good": 1.0})
    (judged,) = line["judge"]
    assert (judged["scorer"], judged["model"], judged["grade"], judged["reason"]) == ("good", JUDGE, "correct", "so")
    assert line["usage_judge"]["input"] > 0 and line["cost"] > line["cost_judge"] > 0
    repaired, lost = lines[MODEL, "r1/0"]["judge"][0], lines[MODEL, "r2/0"]["judge"][0]
    assert (repaired["repaired"], repaired["grade"]) == (True, "correct")
    assert (lost["repaired"], lost["grade"], lost["text"]) == (True, None, "Well.")
    assert lines[MODEL, "r2/0"]["scores"] == {"right": 1.0, "good": None}
    # Both models and both trials gave the same answer to a row: it is judged once.
    asked = [prompt for prompt in lives.sent if "You grade" in prompt]
    assert len(asked) == 6 + 2 and {lives.sent[prompt] for prompt in asked} == {1}


def test_a_silent_answer_is_not_judged(lives: Lives) -> None:
    script = lambda prompt, at: "  " if prompt.startswith("Say") else graded(prompt, at)  # noqa: E731
    lives.live(made(score=judge(JUDGE, "good?")), script=script)
    assert {(line["score"], line["problem"]) for line in lives.lines()} == {(None, "the answer is empty")}
    assert not any("You grade" in prompt for prompt in lives.sent)


def test_what_a_judge_reads_of_an_answer_holds_its_tool_calls() -> None:
    others = made(score={"a": judge("a/j", "x"), "b": judge("a/j", "y"), "c": match("z")}).others(None)
    assert [call.model for call in others] == ["a/j", "a/j"]
    assert Record(text="").reply() == Reply("")
