"""Provides the questions of a task as prompts of a load test."""

from __future__ import annotations

from pathlib import Path

from ...configuration.errors import UsageError
from ..evaluation.door.benchmark import LoadPrompts
from .files import load_task
from .options import split_name
from .questions import questions_of

ROWS_MOST = 5_000


def load_prompts(file: Path | None) -> LoadPrompts:
    """Returns the questions of the task in a file: all, or `ROWS_MOST` spread over its data. Executes the file. Raises
    UsageError without a file."""
    if file is None:
        raise UsageError("--dataset: expected the file that declares the task, as capitals.py, got its kind alone")
    loaded = load_task(*split_name(str(file)))
    questions = questions_of(loaded.task, loaded.base)
    count = min(len(questions), ROWS_MOST)
    chosen = [questions[at * len(questions) // count] for at in range(count)]
    many = f"{count:,}" if count == len(questions) else f"{count:,} of the {len(questions):,}"
    return LoadPrompts([question.input for question in chosen], f"{many} questions of the task {loaded.task.name}")
