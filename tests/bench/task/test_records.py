"""Records of a task: what they keep is enough to score them again, and they count as columns of scores."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from millstream.bench.task.records import Record, ToolRequest, scored, silence_of
from millstream.bench.task.recount import model_answers
from millstream.bench.task.scorers import Score
from millstream.engine.call import Reply
from millstream.engine.content import ToolCall
from millstream.engine.pairs import Pair

TOOLS = (ToolCall("1", "search", "{}"),)


@pytest.mark.parametrize(
    ("reply", "silence"),
    [
        (Reply("Paris"), None),
        (Reply("", parts=TOOLS), None),
        (Reply(" \n"), "the answer is empty"),
        (Reply("", finish_reason="length"), "the answer is empty, cut off at max_tokens"),
        (Reply("I will not", refused=True), "the model refused"),
    ],
)
def test_silence_is_an_empty_answer_or_a_refusal(reply: Reply, silence: str | None) -> None:
    assert silence_of(reply) == silence


def test_a_reply_is_made_again_from_its_record() -> None:
    record = Record(
        id="a/0", item="a", text="Let me look", tool_calls=(ToolRequest("1", "search"),), truncated=True, row={"x": 1}
    )
    read = msgspec.json.decode(msgspec.json.encode(record), type=Record)
    assert read == record
    assert (read.reply().text, read.reply().tool_calls, read.reply().truncated) == ("Let me look", TOOLS, True)
    assert read.as_row().data == {"x": 1}


def test_the_first_scorer_is_the_main_one_and_every_score_keeps_its_name() -> None:
    several = scored({"exact": Score(1.0, "B"), "kind": Score(0.5, parts={"tone": Score(0.5)})})
    assert several == {
        "score": 1.0,
        "scores": {"exact": 1.0, "kind": 0.5, "kind.tone": 0.5},
        "read": "B",
        "problem": None,
        "problems": msgspec.UNSET,
    }
    assert scored({"score": Score(1.0)})["scores"] is msgspec.UNSET
    assert scored({"score": Score(1.0, parts={"a": Score(1.0), "b": Score(None)})})["scores"] == {"a": 1.0, "b": None}


def test_each_score_of_a_record_has_its_own_reason_and_one_that_all_share_stands_there_once() -> None:
    silence, raised = (
        Score(None, problem="the answer is empty"),
        Score(None, problem="the score function raised E: x\ny"),
    )
    silent = record("a", 0, **scored({"exact": silence, "tone": silence}))
    assert (silent.problem, silent.problems) == ("the answer is empty", msgspec.UNSET)
    assert silent.problem_of("tone") == silent.problem_of() == "the answer is empty"
    mixed = record("a", 0, **scored({"exact": Score(1.0), "tone": raised, "kind": Score(0.5, parts={"warm": raised})}))
    assert mixed.problem is None and set(mixed.problems or ()) == {"tone", "kind.warm"}
    assert mixed.problem_of("kind.warm") == "the score function raised E: x"
    both = record("a", 0, **scored({"exact": Score(None, problem="no letter"), "tone": raised}))
    assert (both.problem_of(), both.problem_of("tone")) == ("no letter", "the score function raised E: x")
    # A version before this one kept the main score's reason alone; a function that raised gave no names.
    old = record("a", 0, 1.0, scores={"exact": 1.0, "tone": None})
    assert old.problem_of("tone") == "its record does not say why"
    assert record("a", 0, None, problem="the score function raised E").problem_of("b") == "the score function raised E"
    assert record("a", 0, 1.0, scores={"a": 1.0}).problem_of("b") == "the score function gave None"


def record(item: str, trial: int, score: float | None, **fields: Any) -> Record:
    values = {
        "id": f"{item}/{trial}",
        "item": item,
        "trial": trial,
        "model": "a/x",
        "text": "t",
        "score": score,
        **{name: value for name, value in fields.items() if value is not msgspec.UNSET},
    }
    return msgspec.convert(values, Record)


def test_records_become_columns_whatever_their_order() -> None:
    records = [
        record("b", 0, 1.0, scores={"one": 1.0}, group="g"),
        record("a", 0, None, problem="the answer is empty", text=""),
        record("b", 1, None, problem="no letter\nat all", truncated=True, group="g"),
        record("a", 1, 0.0, scores={"two": 0.5}, temperature=None),
        record("a", 0, None, status="refused", model="a/y", temperature=0.5),
    ]
    pairs = [Pair("a/x", None), Pair("a/y", 0.5), Pair("a/z", 0.0), Pair("a/z", 1.0)]
    first, second, *silent = model_answers(records, pairs, trials=2).values()
    assert (list(first.items), first.trials, first.groups) == (["b", "a"], 2, ["g", None])
    np.testing.assert_array_equal(first.score, [1, np.nan, np.nan, 0])
    np.testing.assert_array_equal(first.parts["one"], [1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(first.parts["two"], [np.nan, np.nan, np.nan, 0.5])
    assert (first.is_empty.tolist(), first.is_truncated.tolist()) == ([0, 1, 0, 0], [0, 0, 1, 0])
    assert dict(first.problems[None]) == {"the answer is empty": 1, "no letter": 1}
    assert first.problems["one"] == {**first.problems[None], "the score function gave None": 1} == first.problems["two"]
    assert (second.name, second.is_refused.tolist(), second.is_empty.tolist()) == ("a/y", [1], [0])
    assert [(each.name, each.count) for each in silent] == [("a/z @ 0", 0), ("a/z @ 1", 0)]
