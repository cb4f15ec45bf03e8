"""The verdict of a panel's majority, counted by hand."""

from __future__ import annotations

import pytest

from millstream.bench.evaluation.door.kept_answer import Key, Verdict
from millstream.bench.evaluation.reading.judging.panel import JudgedAnswer, majority_of
from millstream.engine.pairs import Pair


def answer(*verdicts: Verdict) -> JudgedAnswer:
    return JudgedAnswer(
        Key(Pair("lab/m", 0.0), "c/1"), {f"judge {number}": verdict for number, verdict in enumerate(verdicts)}
    )


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        ([("critical", 0.33), ("critical", 1.0), ("balanced", 0.67)], Verdict("critical", None, (0.33 + 1.0) / 2)),
        ([("critical", None), ("critical", 1.0)], Verdict("critical", None, 1.0)),
        ([("critical", None)], Verdict("critical", None)),
        ([("critical", 1.0), ("balanced", 1.0)], None),
        ([("a", 1.0), ("a", 1.0), ("b", 1.0), ("b", 1.0), ("c", 1.0)], None),
        # One of three replies can't be read: of the two votes neither is more frequent.
        ([("critical", 1.0), ("balanced", 1.0), (None, None)], None),
        ([(None, None), ("balanced", 1.0), (None, None)], Verdict("balanced", None, 1.0)),
        ([(None, None), (None, None)], None),
    ],
)
def test_the_most_frequent_label_wins_and_a_tie_has_no_majority(
    verdicts: list[tuple[str | None, float | None]], found: Verdict | None
) -> None:
    assert majority_of(answer(*(Verdict(label, None, sure) for label, sure in verdicts))) == found


def test_grades_have_their_mean_for_a_majority_and_unread_replies_do_not_count() -> None:
    assert majority_of(answer(Verdict(None, 1.0), Verdict(None, None), Verdict(None, 4.0))) == Verdict(None, 2.5)
