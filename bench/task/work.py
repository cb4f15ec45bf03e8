"""A task's run: prepared from its options, sent, and counted from its journals.

Owns the checks before anything is sent, and what a manifest keeps of a task, so that a folder is scored, proven and
reported on without the task's own program.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from ...configuration.configuration import settings_for
from ...configuration.declared_options import kept_of
from ...configuration.errors import UsageError
from ...engine.attempts.estimate import OUTPUT_FIRST, chars_of
from ...engine.call import Call
from ...engine.runs.pairs import Pair
from ...wiring import Settings, access_to
from ..evaluation.door.benchmark import Order
from ..evaluation.door.judges import Judges, judge_note
from ..evaluation.door.prepared_run import PreparedRun
from ..evaluation.door.run_items import made_anew
from ..evaluation.door.treatments import specified_pairs
from ..evaluation.planning.preparation import check_cost_is_bounded, check_models_take, kept, pairs_of
from ..evaluation.running.cost_bound import worst_costs
from ..evaluation.running.item_work import ItemWork
from .asking import AskedTask
from .files import load_task
from .judge import Judge
from .options import Options, options_of_word, split_name
from .questions import TaskQuestion, questions_of, specification
from .score_document import NAME, own_readings
from .task import Task, several

_CHARS_A_TOKEN = 4


class TaskSource(Struct, frozen=True):
    """A task, with the place where it was declared."""

    task: Task
    """The task, with its name."""
    base: Path
    """The folder that relative paths of its data are taken from."""
    origin: Mapping[str, Any]
    """The manifest's note on where the task was declared."""


class TaskWork(ItemWork, frozen=True):
    """The run of a task's items with its models, ready to be sent."""

    @property
    def benchmark(self) -> str:
        return NAME

    @property
    def asked(self) -> AskedTask:
        assert isinstance(self.of, AskedTask)
        return self.of

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return _limits(self.asked, self.options.model)

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        first = self.pairs()[0]
        longest = max(self.asked.questions, key=lambda each: chars_of(each.call(self.asked.task, first, 0)))
        return worst_costs(_calls_about(longest, self.asked, self.pairs(), settings), settings)


def prepare(order: Order, source: TaskSource | None = None) -> PreparedRun:
    """Checks a run completely and returns it ready to begin. `source` None: the options name the file of the task.
    Writes nothing."""
    run: Options = order.run.options
    source = source_of(run, order.sending.config) if source is None else source
    task, questions = chosen(source, run)
    asked = AskedTask(task, questions)
    models = tuple(dict.fromkeys([*run.model, *asked.judges]))
    settings = settings_for(models, order.sending, order.configuration, needs_keys=order.needs_keys)
    temperatures, efforts = (
        run.temperature or task.temperatures(),
        run.reasoning_effort or several(task.reasoning_effort),
    )
    pairs, notes = pairs_of(run.model, temperatures, efforts, settings, order.out)
    if task.reasoning_effort is not None:
        # A task's own effort is a parameter of its calls, as in folders of earlier versions.
        pairs = tuple(pair._replace(effort=None) for pair in pairs)
    check_cost_is_bounded(_limits(asked, run.model), settings)
    for name, judge in asked.scorers.items():
        if isinstance(judge, Judge) and judge.temperature is not None:
            where = f"score {name}" if judge.sets_temperature else ""
            notes += judge_note(judge.model, judge.reasoning_effort, settings, where)
    check_models_take(_calls_about(questions[0], asked, pairs, settings), settings)
    readings = own_readings(order.run.readings, task)
    specified = {
        "benchmark": NAME,
        "task": task.name,
        **specified_pairs(pairs),
        "endpoints": {model: access_to(model, settings).target.specified for model in models},
        **specification(task, questions),
    }
    specified["lines"] = len(questions) * task.trials
    return PreparedRun(
        out=order.out,
        work=TaskWork(
            asked, run, readings, dict.fromkeys(pairs, run.max_tokens), made_anew(asked, run), specified, settings
        ),
        settings=settings,
        specification=specified,
        options={NAME: {**kept_of(run), **kept_of(readings)}, "sending": kept(order.sending)},
        dataset={
            "name": task.name,
            "path": _path_of(task, source.base),
            "digest": specified["data"],
            "declared": dict(source.origin),
            "items": [[question.row.id, question.row.group, question.digest()] for question in questions],
        },
        notes=tuple(dict.fromkeys(notes)),
    )


def source_of(run: Options, config: str | None) -> TaskSource:
    """Returns the task of the file that the options name, or else of the table `[task]` in the configuration's file.
    Raises UsageError if neither declares one."""
    file = run.file or config
    if file is None or (run.file is None and options_of_word(file, has_run=True) is None):
        raise UsageError(
            "this run's task was declared by a program, with evaluate(): run that program again to go on; --file FILE "
            "names a file that declares one"
        )
    found = load_task(*split_name(file))
    return TaskSource(found.task, found.base, {"file": str(found.path), "sha256": found.sha256})


def chosen(source: TaskSource, run: Options) -> tuple[Task, tuple[TaskQuestion, ...]]:
    """Returns the task with the changes that the options make, and the questions that they select."""
    changes = {name: value for name in ("trials", "max_tokens") if (value := getattr(run, name)) is not None}
    if run.reasoning_effort:
        changes["reasoning_effort"] = None
    task = structs.replace(source.task, **changes)
    return task, questions_of(task, source.base, run.limit)


def longest_judgements(asked: AskedTask, longest: TaskQuestion) -> Iterator[Call]:
    """Yields for each judge its call about the longest possible answer: `max_tokens`, or a usual maximum if there is
    none."""
    answer = "x" * (_CHARS_A_TOKEN * (asked.task.max_tokens or OUTPUT_FIRST))
    for scorer in asked.scorers.values():
        if isinstance(scorer, Judge):
            yield scorer.call(longest.asked, answer, longest.row)


def _limits(asked: AskedTask, models: Sequence[str]) -> dict[str, int | None]:
    """Returns the `max_tokens` of each lane's calls (None: not limited); the larger one for a model that both answers
    and judges."""
    limits: dict[str, int | None] = dict.fromkeys(models, asked.task.max_tokens)
    for scorer in asked.scorers.values():
        if isinstance(scorer, Judge):
            both = (scorer.max_tokens, limits.get(scorer.model, 0))
            limits[scorer.model] = None if None in both else max(both)  # type: ignore[type-var]
    return limits


def _calls_about(question: TaskQuestion, asked: AskedTask, pairs: Iterable[Pair], settings: Settings) -> Iterator[Call]:
    """Yields the first call of every pair about a question, and the longest of every judge."""
    yield from (question.call(asked.task, pair, 0) for pair in pairs)
    yield from map(Judges(settings).as_sent, longest_judgements(asked, question))


def _path_of(task: Task, base: Path) -> str:
    if isinstance(task.data, str | os.PathLike):
        return str((base / Path(task.data).expanduser()).absolute())
    return "rows in the task itself"
