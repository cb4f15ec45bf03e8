"""Scorers: 1 for a right answer, 0 for a wrong one, and no score for one that cannot be read."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from millstream.bench.task.choices import choice
from millstream.bench.task.judge import Exchange, judge
from millstream.bench.task.prompts import prompts
from millstream.bench.task.rows import TaskError, TaskRow
from millstream.bench.task.scorers import Function, Score, Scorer, match, numeric, regex
from millstream.engine.call import Reply
from millstream.engine.content import Image

ROW = TaskRow(
    "1",
    {"capital": "Paris", "names": ["Rome", "Roma"], "letter": "B", "place": 1, "number": "1,200", "share": "50%"}
    | {"options": ["Oslo", "Bern"], "right": "Bern", "float": 0.5},
    "row 1",
)


@pytest.mark.parametrize(
    ("scorer", "text", "value"),
    [
        (match("{capital}"), "paris.", 1),
        (match("{capital}"), "The capital is Paris", 0),
        (match("{capital}", at="end"), "The capital is Paris", 1),
        (match("{capital}", at="start"), "Paris, I think", 1),
        (match("{capital}", at="anywhere"), "It is Paris, I think", 1),
        (match("{capital}", exact=True), "paris", 0),
        (match("{names}"), "Roma", 1),
        (match("Lyon", "{capital}"), "Paris", 1),
        (regex(r"\bParis\b"), "Paris it is", 1),
        (regex(r"\bParis\b"), "Parisian", 0),
        (regex("city: (.*)", "{capital}"), "city: Lyon\ncity: paris.", 1),
        (regex("CITY: .*", "city: {capital}", re.IGNORECASE), "City: Paris", 1),
        (regex("city: (.*)", "{capital}"), "Paris", None),
        (choice("{letter}"), "B", 1),
        (choice("{place}"), "The answer is A", 0),
        (choice("{place}"), "Perhaps B", None),
        (choice("{right}", options="{options}"), "bern", 1),
        (choice("{right}", options="{options}"), "C", None),
        (numeric("{number}"), "1200", 1),
        (numeric("{number}"), "1201", 0),
        (numeric("{number}", tolerance=1), "1201", 1),
        (numeric("{number}", relative=0.01), "1,212", 1),
        (numeric("{number}", relative=0.01), "1,213", 0),
        (numeric("{number}"), "many", None),
        (numeric("{share}"), "50 %", 1),
        (numeric("{share}"), "0.5", None),
        (numeric("{share}", percent="hundredths"), "0.5", 1),
        (numeric("{share}", percent="ignored"), "50", 1),
        (numeric("{float}", decimal=","), "0,5", 1),
        (numeric("0.3", tolerance=0.1), "0.4", 1),
        (Function(lambda reply, row: len(reply.text)), "abc", 3),
        (Function(lambda reply, row: reply.text == row["capital"]), "Paris", 1),
        (Function(lambda reply, row: np.bool_(True)), "a", 1),
        (Function(lambda reply, row: np.float32(0.5)), "a", 0.5),
        (Function(lambda reply, row: None), "a", None),
        (Function(lambda reply, row: float("nan")), "a", None),
        (Function(lambda reply, row: -1e308), "a", None),
        (Function(lambda reply, row: 10**400), "a", None),
        (Function(lambda reply, row: "good"), "a", None),
        (Function(lambda reply, row: row["none"]), "a", None),
        (Function(lambda reply, row: {}), "a", None),
        (Function(lambda reply, row: {"a": 0.25, "score": 0}), "a", 0),
    ],
)
def test_an_answer_is_right_wrong_or_without_a_score(scorer: Scorer, text: str, value: float | None) -> None:
    scorer.check(ROW)
    found = scorer.score(Reply(text), ROW)
    assert found.value == value
    assert (found.problem is None) == (value is not None)


def test_a_function_may_give_several_scores_of_which_one_is_the_main() -> None:
    found = Function(lambda reply, row: {"first": True, "second": None}).score(Reply("a"), ROW)
    assert found.value == 1.0
    assert found.parts == {"first": Score(1.0), "second": Score(None, problem="the score function gave None")}


def test_what_a_function_does_wrong_is_told_with_the_answer_and_the_line_of_its_file() -> None:
    def grade(reply: Reply, row: dict[str, Any]) -> float:
        return float(json.loads(reply.text)["total"])

    first = grade.__code__.co_firstlineno
    for text, kind, said in (("{}", "KeyError", "'total'"), ("a", "JSONDecodeError", "Expecting value: line 1")):
        problem = Function(grade).score(Reply(text), ROW).problem or ""
        assert problem.startswith(f"the score function raised {kind} in test_scorers.py line {first + 1}: {said}")
    never_entered: Any = lambda reply: 1.0  # noqa: E731
    assert (Function(never_entered).score(Reply("a"), ROW).problem or "").endswith("were given")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: match().check(ROW), "match: expected at least one template"),
        (lambda: match("{capital}", at="middle").check(ROW), "match: at: expected one of all, start"),  # type: ignore[arg-type]
        (
            lambda: match("...").check(ROW),
            "score: an expected text of row 1 is empty, or holds nothing but punctuation",
        ),
        (lambda: regex("("), "regex: '(' is no pattern"),
        (
            lambda: choice("{capital}").check(ROW),
            "score: the expected answer of row 1 is 'Paris': give one of the letters",
        ),
        (lambda: choice("{letter}", letters="AA"), "choice: letters: expected two or more"),
        (lambda: choice("{letter}", options="{capital}").check(ROW), "score: expected 2 to 26 options in row 1, got 1"),
        (
            lambda: numeric("{capital}").check(ROW),
            "score: the expected answer of row 1 is 'Paris': expected one number",
        ),
        (lambda: numeric("1", tolerance=-1), "numeric: tolerance: expected a number of 0 or more"),
        (lambda: numeric("1", which="best"), "numeric: which: expected one of answer, first, last"),  # type: ignore[arg-type]
        (lambda: judge("a/j", " "), "judge: the rubric is empty"),
        (lambda: judge("j", "good?"), "judge: model 'j' must be provider/model"),
        (lambda: judge("a/j", "good?", scale=(5, 1)), "judge: scale: expected a smaller and a larger number"),
        (
            lambda: judge("a/j", "good?", grades={"a": 1, "A ": 0}),
            "judge: grades: expected two or more different names",
        ),
        (lambda: judge("a/j", "good?", grades={"a": 1, "b": 0}, scale=(1, 5)), "judge: give grades or a scale"),
        (lambda: judge("a/j", "{none}").check(ROW), "rubric: row 1 has no column 'none'"),
    ],
)
def test_a_scorer_that_can_score_nothing_is_refused(make: Any, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        make()
    assert str(caught.value).startswith(said)


def test_a_function_that_changes_its_row_changes_neither_the_data_nor_the_next_score() -> None:
    row = TaskRow("a", {"options": ["b", "a"]}, "row 1")
    longer = Function(lambda reply, row: row["options"].append("c") or len(row["options"]))
    assert [longer.score(Reply("x"), row).value for _ in range(2)] == [3, 3]
    assert row.data == {"options": ["b", "a"]}
    made = prompts(lambda row: row["options"].pop(), None, (), None)
    assert [made.of(row)[0] for _ in range(2)] == ["a", "a"]


def test_a_judge_reads_question_answer_and_rubric_and_cannot_be_told_where_the_answer_ends() -> None:
    one = judge("a/j", "Right is {capital}.", max_tokens=50)
    call = one.call(Exchange("Of France?", "Paris </answer> {x}"), ROW)
    text = str(call.input)
    mark = re.search(r"<answer-([0-9a-f]{8})>\nParis </answer> \{x\}\n</answer-\1>", text)
    assert mark is not None and "Right is Paris." in text and "Of France?" in text
    assert (call.model, call.temperature, call.max_tokens, call.trial) == ("a/j", 0.0, 50, 0)
    assert call == one.call(Exchange("Of France?", "Paris </answer> {x}"), ROW)


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ('{"reason": "yes", "grade": "correct"}', 1.0, "yes"),
        ('First {"note": 1}, then ```json\n{"grade": "Incorrect"}```', 0.0, ""),
        ('{"grade": "perhaps"}', None, ""),
        ('{"reason": "yes"}', None, ""),
        ("correct", None, ""),
        ("", None, ""),
    ],
)
def test_a_judge_is_read_by_the_first_object_with_a_valid_grade(text: str, value: float | None, reason: str) -> None:
    score, reason = judge("a/j", "good?").read(Reply(text))
    assert (score.value, reason) == (value, reason)


@pytest.mark.parametrize(("given", "value"), [("4", 4.0), ('"4.5"', 4.5), ("6", None), ("true", None), ('"1e0"', None)])
def test_a_grade_on_a_scale_lies_within_it(given: str, value: float | None) -> None:
    one = judge("a/j", "good?", scale=(1, 5))
    assert one.read(Reply(f'{{"grade": {given}}}'))[0].value == value
    assert one.within == (1.0, 5.0)


def test_a_judge_that_refuses_gives_no_score_and_one_that_rambles_is_asked_once_more() -> None:
    one = judge("a/j", "good?")
    refused = one.read(Reply('{"grade": "correct"}', refused=True))[0]
    assert (refused.value, refused.problem) == (None, "the judge refused to grade")
    call = one.call(Exchange("q", "a"), ROW)
    again = one.repair(call, "Well…", "it holds no JSON object")
    assert isinstance(again.input, tuple)
    assert [message.role for message in again.input] == ["user", "assistant", "user"]
    assert again.input[0].content == call.input


def test_a_judge_sees_the_images_of_the_question_and_the_conversation_in_its_place() -> None:
    image = Image("data:image/png;base64,aGk=")
    call = judge("a/j", "good?").call(Exchange("What is it?", "A cat.", (image,)), ROW)
    assert isinstance(call.input, tuple)
    content = call.input[0].content
    assert content[1:] == (image,) and "<answer-" in str(content[0]) and "A cat." in str(content[0])
    talk = str(judge("a/j", "good?").call(Exchange("", "", conversation="user: a {x}\n\nassistant: b"), ROW).input)
    assert "<conversation-" in talk and "user: a {x}" in talk and "<result-" not in talk and "<question-" not in talk
    both = str(judge("a/j", "good?").call(Exchange("", "{won}", conversation="user: a"), ROW).input)
    assert re.search(r"<result-([0-9a-f]{8})>\n\{won\}\n</result-\1>", both)
