"""The items of a task and their records: every row once for each trial, asked, scored and judged.

Owns the order of items, how an answer becomes a record, and what a manifest keeps of a task, so that a folder is
scored, proven and reported on without the task's own program.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import UNSET, Struct, structs

from ...engine.call import Call, Reply
from ...engine.estimate import OUTPUT_FIRST
from ...engine.pairs import Pair
from ..evaluation.door.ask import Ask
from ..evaluation.door.item import Item
from ..evaluation.door.item_set import ItemSet
from ..evaluation.door.kept_images import KeptImage, keep_images
from .files import TaskSource
from .grading import Asking, graded
from .judge import Exchange, told
from .judge_call import JudgeCall
from .options import Options
from .questions import TaskQuestion, image_text, is_inside, questions_of, specification
from .records import Record, ToolRequest, scored
from .score_table import scores_of
from .scorers import Score
from .steps_class import StepsTask
from .task import AnyScorer, Task

_CHARS_A_TOKEN = 4
# Of a conversation as a judge reads it, where its length is not known.
_CONVERSATION_CHARS = 200_000


class QuestionTrial(Struct, frozen=True):
    """One trial of a question: the data of one item."""

    question: TaskQuestion
    """The question."""
    number: int
    """The number of the trial, from 0."""


class TaskItems(ItemSet):
    """The items of a task: every question's first trial, then every question's second, and so on, so that a run that
    stops early has asked all questions."""

    def __init__(self, task: Task, questions: Sequence[TaskQuestion]) -> None:
        self.task = task
        self.questions = questions
        self.scorers = task.scorers()
        self.weigher = task.weigher()
        self.judgements = tuple(_longest_judgements(task, questions, self.scorers))
        """For each judge the call about the longest question and answer."""
        self.others = (*self.judgements, *(task.other_calls() if isinstance(task, StepsTask) else ()))
        """A call to each model beside the one under test."""
        self.specified = specification(task, questions)
        """What decides prompts, answers and scores."""
        super().__init__(self._made, digest=self.specified["data"])

    def sample(self, size: int) -> list[str]:
        """Returns first trials of questions that are spread over the data, as far as there are enough."""
        names = list(self.steps)
        rows = len(names) // self.task.trials
        size = min(size, len(names))
        return [names[at * (len(names) if size > rows else rows) // size] for at in range(size)]

    def keep_in(self, folder: Path) -> None:
        images = (image for question in self.questions for image in question.images)
        keep_images(folder, (KeptImage(image_text(image), image.url) for image in images if is_inside(image)))

    def _made(self) -> Iterator[Item]:
        for number in range(self.task.trials):
            for question in self.questions:
                if question.trial in (None, number):
                    row, data = question.row, QuestionTrial(question, number)
                    yield Item(question.line_id(number), data, group=row.group or "", of=row.id)


def items_of(source: TaskSource, run: Options) -> TaskItems:
    """Returns the items that the options select of the task, with the changes that they make."""
    changes = {name: value for name in ("trials", "max_tokens") if (value := getattr(run, name)) is not None}
    if run.reasoning_effort:
        changes["reasoning_effort"] = None
    task = structs.replace(source.task, **changes)
    questions = questions_of(task, source.base, run.limit)
    items = TaskItems(task, questions)
    if source.parameters:
        items.specified["set"] = dict(source.parameters)
    items.dataset = {
        "name": task.name,
        "path": _path_of(task, source.base),
        "digest": items.digest,
        "declared": dict(source.origin),
        "items": [question.listed() for question in questions],
    }
    return items


def _path_of(task: Task, base: Path) -> str:
    if isinstance(task.data, str | os.PathLike):
        return str((base / Path(task.data).expanduser()).absolute())
    return "rows in the task itself"


def _longest_judgements(
    task: Task, questions: Sequence[TaskQuestion], scorers: Mapping[str, AnyScorer]
) -> Iterator[Call]:
    """Yields the calls of each scorer that asks models about the longest possible answer: `max_tokens`, or a usual
    maximum if there is none; of a conversation as many answers as it may have."""
    longest = max(questions, key=lambda question: len(question.asked))
    answers = task.author.steps_max if isinstance(task, StepsTask) else 1
    answer = "x" * min(_CHARS_A_TOKEN * (task.max_tokens or OUTPUT_FIRST) * answers, _CONVERSATION_CHARS)
    exchange = _exchange(task, QuestionTrial(longest, 0), Pair("", None), answer)
    for name, scorer in scorers.items():
        if isinstance(scorer, Asking):
            yield from scorer.foreseen(name, exchange, longest.row)


def _exchange(task: Task, trial: QuestionTrial, pair: Pair, answer: str) -> Exchange:
    """Returns what scorers that ask models read of an answer."""
    question = trial.question

    def to(model: str) -> Call:
        return question.call(task, pair._replace(model=model), trial.number)

    has_call = not isinstance(task, StepsTask)
    return Exchange(question.asked, answer, question.images, to=to if has_call else None)


def weighing_calls(items: TaskItems, trial: QuestionTrial, pair: Pair) -> list[Call]:
    """Returns the calls that weigh the given answers of a question."""
    question = trial.question
    assert items.weigher is not None
    return items.weigher.calls(question.input, question.row, pair, question.sample(trial.number))


async def weighed(items: TaskItems, trial: QuestionTrial, ask: Ask) -> Record:
    """Returns the record of a question whose given answers the model weighed, all at once."""
    question = trial.question
    replies = await asyncio.gather(*map(ask, weighing_calls(items, trial, ask.pair)))
    assert items.weigher is not None and isinstance(question.input, str)
    return record_of(items, trial, items.weigher.weighed(question.input, question.row, replies))


async def judged(items: TaskItems, trial: QuestionTrial, reply: Reply, ask: Ask) -> Record:
    """Returns the record of an answer, once all scorers that ask models have scored it."""
    exchange = _exchange(items.task, trial, ask.pair, told(reply))
    return record_of(items, trial, reply, *await graded(items.scorers, exchange, reply, trial.question.row, ask))


def record_of(
    items: TaskItems,
    trial: QuestionTrial,
    reply: Reply,
    grades: Mapping[str, Score] = MappingProxyType({}),
    calls: Sequence[JudgeCall] = (),
) -> Record:
    """Returns the record of an answer with the task's own fields. `grades`, `calls`: of the scorers that ask models."""
    question = trial.question
    return Record(
        text=reply.text,
        trial=trial.number,
        row=question.row.as_json(),
        prompt=question.prompt_json(),
        variant=question.variant or UNSET,
        order=question.row.order or UNSET,
        tool_calls=tuple(ToolRequest(each.id, each.name, each.arguments) for each in reply.tool_calls) or UNSET,
        logprobs=reply.logprobs or UNSET,
        judge=tuple(calls) or UNSET,
        **scored(scores_of(items.scorers, reply, question.row, grades)),
    )
