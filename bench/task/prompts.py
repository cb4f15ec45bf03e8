"""The prompt of each row: system prompt, few shots and question, as the input of a call.

Owns how a template or a function becomes messages. All prompts are built before anything is sent, so that a mistake
costs nothing. Knows no model and no scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ...engine.call import Message, message_of
from ...engine.content import Image
from ..evaluation.data.data_rows import entries_of_iterable
from .rows import TaskError, TaskRow, shown
from .template import Template, template

PromptFunction: TypeAlias = Callable[[dict[str, Any]], Any]
Input: TypeAlias = str | tuple[Message, ...]
Shots: TypeAlias = Iterable[Mapping[str, Any]] | Iterable[tuple[str, str]]


class Prompts(Struct, frozen=True):
    """The prompt of a task, from which the input of each row is made.

    ask: the template of the question, or a function of the row.
    system: the template of the system prompt; None: none is sent.
    shots: the turns before the question, alternately of the user and the assistant.
    """

    ask: Template | PromptFunction
    system: Template | None = None
    shots: tuple[Message, ...] = ()

    def of(self, row: TaskRow) -> tuple[Input, str, tuple[Image, ...]]:
        """Returns the input of a row's call (a text if the question is all of it, else messages), and for a judge the
        question alone and its images."""
        question = _question(self.ask, row)
        return self._whole(question, row), alone(question), images_in(question)

    def _whole(self, question: Input, row: TaskRow) -> Input:
        if self.system is None and not self.shots:
            return question
        system = () if self.system is None else (Message("system", self.system.fill(row)),)
        asked = (Message("user", question),) if isinstance(question, str) else question
        if self.shots and asked[-1].words in {shot.words for shot in self.shots[::2]}:
            raise TaskError(f"{row.where}: a shot asks the same and gives the answer: leave one of them out")
        return (*system, *self.shots, *asked)


def images_in(question: Input) -> tuple[Image, ...]:
    """Returns the images of a question, in their order."""
    parts = [] if isinstance(question, str) else [part for turn in question for part in turn.content]
    return tuple(part for part in parts if isinstance(part, Image))


def alone(question: Input) -> str:
    """Returns the question without its system prompt, as a judge reads it."""
    if isinstance(question, str):
        return question
    turns = [message for message in question if message.role != "system"]
    return turns[0].words if len(turns) == 1 else "\n\n".join(f"{turn.role}: {turn.words}" for turn in turns)


def prompts(
    ask: str | PromptFunction, system: str | None = None, shots: Shots = (), shot_answer: str | None = None
) -> Prompts:
    """Returns a task's prompt, checked and parsed. `shots` are pairs of texts, or rows whose answer is filled into the
    template `shot_answer`."""
    question: Template | PromptFunction
    if isinstance(ask, str):
        question = template(ask, "prompt")
    elif callable(ask):
        question = ask
    else:
        raise TaskError(f"prompt: expected a text, or a function of the row, got {shown(ask)}")
    return Prompts(
        question, None if system is None else template(system, "system"), _turns(question, shots, shot_answer)
    )


def _turns(ask: Template | PromptFunction, shots: Shots, shot_answer: str | None) -> tuple[Message, ...]:
    answers = None if shot_answer is None else template(shot_answer, "shot_answer")
    turns: list[Message] = []
    for number, shot in enumerate(shots, 1):
        where = f"shot {number}"
        if isinstance(shot, tuple | list):
            if len(shot) != 2 or not all(isinstance(text, str) for text in shot):
                raise TaskError(f"{where}: expected a pair of texts, question and answer, got {shown(shot)}")
            turns += [Message("user", shot[0]), Message("assistant", shot[1])]
            continue
        (entry,) = entries_of_iterable([shot])
        if not isinstance(entry.content, Mapping):
            raise TaskError(f"{where}: expected a row or a pair of texts, got {shown(shot)}")
        if answers is None:
            raise TaskError(f'{where}: a shot that is a row needs its answer: set shot_answer="{{column}}"')
        row = TaskRow(where, dict(entry.content), where)
        question = _question(ask, row)
        turns += (Message("user", question),) if isinstance(question, str) else question
        turns.append(Message("assistant", answers.fill(row)))
    return tuple(turns)


def _question(ask: Template | PromptFunction, row: TaskRow) -> Input:
    if isinstance(ask, Template):
        return _not_empty(ask.fill(row), row)
    try:
        prompt = ask(row.copied())
    except (Exception, SystemExit) as error:  # a user's function: any error is reported with its row
        raise TaskError(f"prompt: the function raised {type(error).__name__} for {row.where}: {error}") from error
    if isinstance(prompt, str):
        return _not_empty(prompt, row)
    if not isinstance(prompt, Sequence) or not prompt:
        raise TaskError(
            f"prompt: expected the function to give a text or messages for {row.where}, got {shown(prompt)}"
        )
    return tuple(_message(each, row) for each in prompt)


def _not_empty(text: str, row: TaskRow) -> str:
    if not text.strip():
        raise TaskError(f"prompt: empty for {row.where}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TaskError(f"prompt: not valid Unicode for {row.where}, at character {error.start}") from error
    return text


def _message(given: Any, row: TaskRow) -> Message:
    if not isinstance(given, Message | Mapping):
        raise TaskError(f"prompt: expected ms.Message, or role and content, for {row.where}, got {shown(given)}")
    try:
        return message_of(given)
    except (TypeError, ValueError) as error:
        raise TaskError(f"prompt: {row.where}: {error}") from error
