"""People label whether an answer to a task is right, and are compared with its score."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from millstream.bench.evaluation.door.label import question_to
from millstream.bench.task.benchmark import BENCHMARK
from millstream.bench.task.judge import judge
from millstream.bench.task.records import Record
from millstream.bench.task.review import check_is_share, label_of
from millstream.configuration.errors import UsageError

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"text": "Capital?"}]}]


def record(**fields: Any) -> Record:
    return Record(id="fr/0", item="fr", model="sim/open", text="Paris", row={"country": "France", "km": 3}, **fields)


@pytest.mark.parametrize(("score", "read"), [(1.0, "right"), (0.5, "right"), (0.49, "wrong"), (0.0, "wrong")])
def test_the_score_is_a_reading(score: float, read: str) -> None:
    label = label_of(record(score=score, prompt="Capital of France?"))
    assert label is not None and label.readings == {"score": read}
    assert (label.text, label.question) == ("Paris", "Capital of France?")
    # What the question says already is not said again.
    assert label.about == {"item": "fr", "row": "km: 3"}


def test_people_see_the_right_answer_as_the_scorer_has_it_and_the_question_once() -> None:
    manifest = {"specification": {"score": {"score": {"scorer": "match", "expected": "{capital}"}}}}
    fields: dict[str, Any] = {"id": "gh/0", "item": "gh", "model": "sim/open", "text": "Lagos", "score": 0.0}
    row = {"question": "Capital of Ghana?", "capital": "Accra"}
    label = BENCHMARK.labeller(manifest, is_shown=True).label(Record(**fields, row=row, prompt=row["question"]))
    assert label is not None and label.about == {"item": "gh", "expected": "Accra"}
    assert (label.ask, question_to(label)) == (
        "Is the answer right?",
        "Is the answer right? Y (right) or N (wrong)",
    )


def test_messages_are_shown_with_their_roles() -> None:
    label = label_of(record(score=1.0, prompt=MESSAGES))
    assert label is not None and label.question == 'system: Be brief.\n\nuser: [{"text": "Capital?"}]'


def test_an_answer_without_a_score_is_not_labelled() -> None:
    assert label_of(record(prompt="Capital of France?", problem="the answer is empty")) is None


def test_scores_on_another_scale_are_no_matter_of_right_or_wrong() -> None:
    assert label_of(record(score=4.0, prompt="Capital of France?")) is None
    for scale, is_refused in (((1, 5), True), ((0, 1), False)):
        described = {"score": judge("a/j", "good?", scale=scale).describe()}
        with pytest.raises(UsageError, match="go from 1 to 5") if is_refused else nullcontext():
            check_is_share({"specification": {"score": described}})
    check_is_share({"specification": {"score": {"score": {"scorer": "function", "name": "f"}}}})
    check_is_share(None)
