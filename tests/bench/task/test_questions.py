"""The questions of a task: templates, messages, shots, sample numbers and digests, checked before anything is sent."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.task.questions import TaskQuestion, item_digest, questions_of, specification
from millstream.bench.task.rows import TaskError, TaskRow
from millstream.bench.task.scorers import match
from millstream.bench.task.task import Task
from millstream.bench.task.template import template
from millstream.engine.call import Message
from millstream.engine.content import Image
from millstream.engine.pairs import Pair

HERE = Path()
FRANCE = {"country": "France", "capital": "Paris"}
PERU = {"country": "Peru", "capital": "Lima"}
ASK = "What is the capital of {country}?"


def task(data: Any = (FRANCE, PERU), prompt: Any = ASK, **fields: Any) -> Task:
    return Task(**{"data": data, "prompt": prompt, "score": match("{capital}"), **fields})


def asked(**fields: Any) -> tuple[TaskQuestion, ...]:
    return questions_of(task(**fields), HERE)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{a} and {b}", "1 and two"),
        ('{{"a": {a}}}', '{"a": 1}'),
        ("{ a }", "1"),
        ("{options}", "A. x\nB. 2"),
        ("no column", "no column"),
    ],
)
def test_a_template_takes_columns_in_braces_and_doubled_braces_as_they_are(text: str, filled: str) -> None:
    assert template(text, "prompt").fill(TaskRow("", {"a": 1, "b": "two", "options": ["x", 2]}, "row 1")) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{contry}", "prompt: row 1 has no column 'contry': it has country, capital; write {{ and }} for braces"),
        ('{"a": 1}', "prompt: row 1 has no column"),
        ("{country", "prompt: { at character 0 has no partner: write {{ for a brace"),
        ("country}", "prompt: } at character 7 has no partner: write }} for a brace"),
    ],
)
def test_a_wrong_template_names_the_column_and_those_there_are(text: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        asked(prompt=text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "has no value"),
        (float("nan"), "has no value"),
        (" ", "has no value"),
        ({"a": 1}, "holds a dict"),
        ([1, None], "expected a list of"),
    ],
)
def test_a_value_that_no_text_can_hold_is_refused(value: Any, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        asked(data=[{**FRANCE, "country": value}])


def test_system_prompt_and_shots_stand_before_the_question() -> None:
    spain = {"country": "Spain", "capital": "Madrid"}
    (question, _) = asked(
        system="You know {country}.", shots=[spain, ("Of Chile?", "Santiago")], shot_answer="{capital}!"
    )
    assert question.input == (
        Message("system", "You know France."),
        Message("user", "What is the capital of Spain?"),
        Message("assistant", "Madrid!"),
        Message("user", "Of Chile?"),
        Message("assistant", "Santiago"),
        Message("user", "What is the capital of France?"),
    )
    assert question.asked == "What is the capital of France?"


def test_a_function_gives_a_text_or_messages_and_gets_a_copy_of_the_row() -> None:
    def plain(row: dict[str, Any]) -> str:
        return f"Of {row.pop('country')}?"

    def turns(row: dict[str, Any]) -> list[Any]:
        image = Image("data:image/png;base64,AAAA")
        return [{"role": "system", "content": "Short."}, Message("user", (row["country"], image))]

    assert [question.input for question in asked(prompt=plain)] == ["Of France?", "Of Peru?"]
    question = asked(prompt=turns)[0]
    assert question.asked == "France"
    shown = question.prompt_json()
    assert shown[0] == {"role": "system", "content": "Short."}
    assert "AAAA" not in str(shown[1]) and "data:image/png;base64, 26 characters" in str(shown[1])


def test_a_function_is_asked_once_for_each_row() -> None:
    calls = iter(range(100))
    assert [question.input for question in asked(prompt=lambda row: f"{next(calls)}")] == ["0", "1"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prompt": lambda row: row["none"]}, "prompt: the function raised KeyError for row 1: 'none'"),
        ({"prompt": lambda row: 3}, "prompt: expected the function to give a text or messages for row 1, got 3"),
        ({"prompt": lambda row: [3]}, "prompt: expected ms.Message, or role and content, for row 1, got 3"),
        ({"prompt": lambda row: " "}, "prompt: empty for row 1"),
        ({"prompt": 3}, "prompt: expected a text, or a function of the row, got 3"),
        ({"shots": [FRANCE]}, "shot 1: a shot that is a row needs its answer"),
        ({"shots": [FRANCE], "shot_answer": "{capital}"}, "row 1: a shot asks the same and gives the answer"),
        ({"shots": ["France"]}, "shot 1: expected a row or a pair of texts, got 'France'"),
        ({"shots": [("a",)]}, "shot 1: expected a pair of texts"),
        ({"score": match("{city}")}, "score: row 1 has no column 'city'"),
        (
            {"score": "numeric"},
            'score: expected a scorer or a function of reply and row, as ms.numeric("{column}"), got',
        ),
        ({"score": 3}, "score: expected a scorer or a function of reply and row, got 3"),
        ({"score": {}}, "score: expected at least one scorer"),
        ({"data": 3}, "data: expected a path, or an iterable of mappings, got 3"),
        ({"data": "nowhere.csv"}, "nowhere.csv: expected the task's data"),
        ({"split": "test"}, "split and subset choose a part of a folder"),
        ({"trials": 0}, "trials: expected a whole number from 1 to 10,000, got 0"),
        ({"combine": "most"}, "combine: expected one of mean, majority, any, got 'most'"),
        ({"name": "a b"}, "name: expected a letter, then at most 59"),
        ({"max_tokens": 0}, "max_tokens (0) must be >= 1"),
        ({"temperature": [0, -1]}, "temperature (-1) must be >= 0"),
    ],
)
def test_a_task_that_cannot_be_asked_is_refused_in_one_line(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError) as caught:
        asked(**fields)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_rows_with_one_prompt_and_trials_are_different_samples_however_many_trials_there_are() -> None:
    questions = asked(data=[FRANCE, {**FRANCE, "capital": "Lyon"}, PERU])
    samples = [[question.sample(trial) for trial in range(3)] for question in questions]
    assert samples == [[0, 2, 4], [1, 3, 5], [0, 1, 2]]


def test_a_call_has_the_parameters_of_its_task() -> None:
    asking = task(max_tokens=5, stop=["\n"], reasoning_effort="low", temperature=0.5)
    call = asked()[0].call(asking, Pair("a/x", 0.5), 2)
    assert (call.max_tokens, call.stop, call.reasoning_effort, call.temperature, call.trial) == (
        5,
        ("\n",),
        "low",
        0.5,
        2,
    )


def test_a_generator_can_be_read_more_than_once() -> None:
    one = task(data=(row for row in (FRANCE, PERU)))
    assert len(questions_of(one, HERE)) == len(questions_of(one, HERE)) == 2


def helper(text: str) -> bool:
    return text == LIMIT


LIMIT = "Paris"


def by_helper(reply: Any, row: dict[str, Any]) -> bool:
    return helper(reply.text)


def specified(**fields: Any) -> dict[str, Any]:
    one = task(**fields)
    return specification(one, questions_of(one, HERE))


def test_whatever_decides_prompts_or_scores_stands_in_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = specified()
    assert specified(data=iter([FRANCE, PERU])) == plain
    changes: list[dict[str, Any]] = [
        {"data": [FRANCE]},
        {"data": [FRANCE, {**PERU, "more": 1}]},
        {"prompt": ASK + " "},
        {"system": "Short."},
        {"trials": 2},
        {"max_tokens": 5},
        {"score": match("{country}")},
        {"score": by_helper},
        {"group": "capital"},
    ]
    found = [plain, *(specified(**change) for change in changes)]
    assert all(one != other for one, other in combinations(found, 2))
    monkeypatch.setitem(globals(), "LIMIT", "Lima")
    assert specified(score=by_helper)["score"] != found[8]["score"]


def test_a_record_agrees_with_its_question_by_content_alone() -> None:
    question = asked(system="Short.")[0]
    row = {"capital": "Paris", "country": "France"}
    assert question.digest() == item_digest(question.row.id, None, row, question.prompt_json())
    assert question.digest() != item_digest(question.row.id, None, {**row, "capital": "Lyon"}, question.prompt_json())
