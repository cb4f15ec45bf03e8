"""The items of a task and their records: every row once for each trial, asked, scored and judged.

Owns the order of items and how an answer becomes a record. Without judges an item is one call; judges are asked once
the answer is there. Knows no file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct

from ...engine.call import Call, Outcome, Reply
from ...engine.runs.pairs import Pair
from ..evaluation.door.ask import Ask
from ..evaluation.door.item import Item
from .judge import Judge
from .judge_call import ask_judge, told
from .questions import TaskQuestion
from .records import JudgeCall, ToolRequest, scored, silence_of
from .records import Record as TaskRecord
from .scorers import Score
from .task import AnyScorer, Task
from .task_records import TaskRecords


class QuestionTrial(Struct, frozen=True):
    """One trial of a question: the data of one item."""

    question: TaskQuestion
    """The question."""
    number: int
    """The number of the trial, from 0."""


def items_of(questions: Sequence[TaskQuestion], trials: int) -> Iterator[Item]:
    """Yields an item for every question's first trial, then for every question's second, and so on, so that a run that
    stops early has asked all questions."""
    for number in range(trials):
        for question in questions:
            row = question.row
            yield Item(f"{row.id}/{number}", QuestionTrial(question, number), group=row.group or "", of=row.id)


class AskedTask(TaskRecords):
    """One task as a benchmark: its items, and how their answers become records."""

    def __init__(self, task: Task, questions: Sequence[TaskQuestion]) -> None:
        self.task = task
        self.questions = questions
        self.scorers = task.scorers()
        self.judges = judges_of(self.scorers)
        # Set on the instance: every task has its own name.
        self.name = self.title = task.name or "task"  # type: ignore[misc]

    @property
    def has_calls(self) -> bool:
        return not self.judges

    def others(self, options: Any) -> Sequence[str]:
        return self.judges

    def items(self, options: Any) -> Iterable[Item]:
        return items_of(self.questions, self.task.trials)

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        trial: QuestionTrial = item.data
        return trial.question.call(self.task, pair, trial.number)

    def record(self, item: Item, outcome: Outcome, options: Any) -> TaskRecord:
        assert outcome.reply is not None
        trial: QuestionTrial = item.data
        return record_of(trial, outcome.reply, scores_of(self.scorers, outcome.reply, trial.question))

    async def run(self, item: Item, ask: Ask, done: Mapping[int, TaskRecord]) -> AsyncIterator[TaskRecord]:
        trial: QuestionTrial = item.data
        reply = await ask(self.call(item, None, ask.pair))
        found = scores_of(self.scorers, reply, trial.question)
        judgements = []
        for name, scorer in self.scorers.items():
            if isinstance(scorer, Judge) and silence_of(reply) is None:
                call = scorer.call(trial.question.asked, told(reply), trial.question.row)
                judgement, found[name] = await ask_judge(name, scorer, call, ask)
                judgements.append(judgement)
        yield record_of(trial, reply, found, tuple(judgements))


def judges_of(scorers: Mapping[str, AnyScorer]) -> tuple[str, ...]:
    """Returns the names of the judge models, without repetition."""
    return tuple(dict.fromkeys(scorer.model for scorer in scorers.values() if isinstance(scorer, Judge)))


def scores_of(scorers: Mapping[str, AnyScorer], reply: Reply, question: TaskQuestion) -> dict[str, Score]:
    """Returns each scorer's score of a reply, by name. A judge's score has no value yet, since the judge must be
    asked."""
    silence = silence_of(reply)
    found = {}
    for name, scorer in scorers.items():
        if silence is not None:
            found[name] = Score(None, problem=silence)
        elif isinstance(scorer, Judge):
            found[name] = Score(None, problem="not judged")
        else:
            found[name] = scorer.score(reply, question.row)
    return found


def record_of(
    trial: QuestionTrial, reply: Reply, found: Mapping[str, Score], judgements: tuple[JudgeCall, ...] = ()
) -> TaskRecord:
    """Returns the record of an answer with the task's own fields."""
    question = trial.question
    return TaskRecord(
        text=reply.text,
        trial=trial.number,
        row=question.row.as_json(),
        prompt=question.prompt_json(),
        tool_calls=tuple(ToolRequest(each.id, each.name, each.arguments) for each in reply.tool_calls) or UNSET,
        logprobs=reply.logprobs or UNSET,
        judge=judgements or UNSET,
        **scored(found),
    )
