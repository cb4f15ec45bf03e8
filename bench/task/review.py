"""The question that `review` asks people about a task's answer: whether it is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...configuration.errors import UsageError
from ..evaluation.door.label import Label, LabelChoice
from .records import Record
from .score_document import bounds_of

CHOICES = (LabelChoice("Y", "right", "right"), LabelChoice("N", "wrong", "wrong"))
# From this score on a trial counts as passed, as it does for the majority of trials.
_RIGHT_FROM = 0.5


def label_of(record: Record, expected: str = "") -> Label | None:
    """Returns the question to people about a record; None if its score is missing or not from 0 to 1. `expected`: the
    right answer as the scorer has it; empty: people see the row's columns that the question doesn't repeat."""
    if record.score is None or not 0 <= record.score <= 1:
        return None
    question = question_of(record)
    columns = ((name, _text(value)) for name, value in record.row.items())
    row = "; ".join(f"{name}: {text}" for name, text in columns if text not in question)
    return Label(
        text=record.text or "",
        choices=CHOICES,
        readings={"score": "right" if record.score >= _RIGHT_FROM else "wrong"},
        question=question,
        about={"item": record.item, **({"expected": expected} if expected else {"row": row} if row else {})},
        ask="Is the answer right?",
    )


def check_is_share(manifest: Mapping[str, Any] | None) -> None:
    """Raises UsageError if a run's main scores don't go from 0 (wrong) to 1 (right), such as a judge's grades from 1 to
    5."""
    bounds = None if manifest is None else bounds_of(manifest["specification"]["score"])
    if bounds is not None and bounds != (0, 1):
        low, high = bounds
        raise UsageError(
            f"review: the scores of this run go from {low:g} to {high:g}: whether an answer is right can be compared "
            f"with scores from 0 to 1 alone"
        )


def question_of(record: Record) -> str:
    """Returns a record's prompt as a text, or the conversation before its last answer; messages have their roles before
    them."""
    if record.transcript:
        return record.transcript.conversation()
    if isinstance(record.prompt, str):
        return record.prompt
    return "\n\n".join(f"{message.get('role')}: {_text(message.get('content'))}" for message in record.prompt)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
