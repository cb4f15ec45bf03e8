"""What a task's run asks: the task that its options name, with the changes that they make.

Owns what a manifest keeps of a task, so that a folder is scored, proven and reported on without the task's own program.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import structs

from ...configuration.errors import UsageError
from .asking import TaskItems
from .files import TaskSource, load_task
from .options import Options, options_of_word, split_name
from .questions import questions_of
from .task import Task


def source_of(run: Options, config: str | None) -> TaskSource:
    """Returns the task of the file that the options name, or else of the table `[task]` in the configuration's file.
    Raises UsageError if neither declares one."""
    file = run.file or config
    if file is None or (run.file is None and options_of_word(file, has_run=True) is None):
        raise UsageError(
            "this run's task was declared by a program, with evaluate(): run that program again to go on; --file FILE "
            "names a file that declares one"
        )
    return load_task(*split_name(file))


def items_of(source: TaskSource, run: Options) -> TaskItems:
    """Returns the items that the options select of the task, with the changes that they make."""
    changes = {name: value for name in ("trials", "max_tokens") if (value := getattr(run, name)) is not None}
    if run.reasoning_effort:
        changes["reasoning_effort"] = None
    task = structs.replace(source.task, **changes)
    questions = questions_of(task, source.base, run.limit)
    items = TaskItems(task, questions)
    items.dataset = {
        "name": task.name,
        "path": _path_of(task, source.base),
        "digest": items.digest,
        "declared": dict(source.origin),
        "items": [[question.row.id, question.row.group, question.digest()] for question in questions],
    }
    return items


def _path_of(task: Task, base: Path) -> str:
    if isinstance(task.data, str | os.PathLike):
        return str((base / Path(task.data).expanduser()).absolute())
    return "rows in the task itself"
