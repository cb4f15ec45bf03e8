"""The questions of a task: each row with its prompt, built and checked before anything is sent.

Owns the sample numbers of questions, their digests, and which parts of a task decide prompts and answers. Sends
nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ...engine.call import Call, Message
from ...engine.content import Image
from ...engine.pairs import Pair
from ..evaluation.data.data_rows import entries_of_file, entries_of_iterable
from ..evaluation.data.hugging_face import entries_of_folder
from .prompts import Input
from .rows import RowEntry, TaskError, TaskRow, canonical, digest_of, rows_of
from .task import Task

Turn = dict[str, Any]
PromptJson = str | list[Turn]

_DATA_URL_SHOWN = 60


class TaskQuestion(Struct, frozen=True):
    """One row of a task and how it is asked.

    row: the row.
    input: what is sent.
    asked: the question as a judge reads it.
    images: the question's images, which a judge sees too.
    copies: how many rows of the task have the same input; 0: the rank alone tells its samples apart.
    rank: the place of this row among these, from 0.
    variant: the name of the prompt's variant; empty: there is one prompt.
    trial: the trial that it is the question of; None: of all.
    """

    row: TaskRow
    input: Input
    asked: str
    images: tuple[Image, ...] = ()
    copies: int = 1
    rank: int = 0
    variant: str = ""
    trial: int | None = None

    def line_id(self, trial: int) -> str:
        """Returns the id of a trial's record."""
        return line_id(self.row.id, self.variant, trial)

    def listed(self) -> list[Any]:
        """Returns the question as a manifest lists it."""
        more = [self.variant, self.trial] if self.variant or self.trial is not None else []
        return [self.row.id, self.row.group, self.digest(), *more]

    def sample(self, trial: int) -> int:
        """Returns the sample number of a trial's call. It differs between trials and between rows with the same input,
        and does not depend on the number of trials."""
        return trial * self.copies + self.rank

    def call(self, task: Task, pair: Pair, trial: int) -> Call:
        """Returns the call of one trial, numbered from 0."""
        parameters = task.parameters() | ({} if pair.effort is None else {"reasoning_effort": pair.effort})
        return Call(pair.model, self.input, temperature=pair.temperature, trial=self.sample(trial), **parameters)

    def prompt_json(self) -> PromptJson:
        """Returns the prompt as a record holds it: a text, or messages with role and content."""
        if isinstance(self.input, str):
            return self.input
        return [{"role": message.role, "content": content_json(message)} for message in self.input]

    def digest(self) -> str:
        """Returns the SHA-256 of row and prompt, which the question's records must have too."""
        row = self.row
        return item_digest(row.id, row.group, row.as_json(), self.prompt_json(), row.order)


def questions_of(task: Task, base: Path, limit: int | None = None) -> tuple[TaskQuestion, ...]:
    """Reads and checks a task and returns its questions in the order of the rows. Relative paths of its data start at
    `base`. `limit`: only so many rows are read; None: all.

    Raises DatasetError, or TaskError, a kind of it, if the data can't be read or a row can't be asked or scored.
    """
    where = str(base / Path(task.data).expanduser()) if isinstance(task.data, str | os.PathLike) else "the data"
    rows = rows_of(islice(_entries(task, base), limit), task.group, where)
    for row in rows:
        for scorer in task.scorers().values():
            scorer.check(row)
    made = list(_versions(task, rows))
    keys = [hashlib.sha256(canonical(_input_key(question.input))).digest() for question in made]
    copies, ranks = Counter(keys), Counter[bytes]()
    questions = []
    for key, question in zip(keys, made, strict=True):
        several = copies[key] if question.trial is None else 0
        questions.append(structs.replace(question, copies=several, rank=ranks[key]))
        ranks[key] += 1
    return tuple(questions)


def _versions(task: Task, rows: Iterable[TaskRow]) -> Iterator[TaskQuestion]:
    """Yields each row in each variant of the prompt; with shuffled options for each trial, the first one first."""
    shuffler, prompts = task.shuffler(), task.prompts()
    for trial in (None,) if shuffler is None else range(task.trials):
        for row in rows:
            ordered = row if shuffler is None or trial is None else shuffler.shuffled(row, trial)
            for name, prompt in prompts.items():
                version = prompt.of(ordered)
                if ordered.data != row.data and version == prompt.of(row):
                    raise TaskError(
                        f"choice: shuffle: {row.where}: expected a prompt that shows the options, got one that is the "
                        f"same in any order"
                    )
                sent, words, images = version
                kept = structs.replace(row, order=ordered.order)
                yield TaskQuestion(kept, sent, words, images, variant=name, trial=trial)


def line_id(item: str, variant: str, trial: int) -> str:
    """Returns the id of a record: `item/trial`, or `item/variant/trial` if the prompt has variants."""
    return "/".join(part for part in (item, variant, str(trial)) if part)


def specification(task: Task, questions: Iterable[TaskQuestion]) -> dict[str, Any]:
    """Returns the values that decide a task's prompts, answers and scores, for the manifest."""
    listed = list(questions)
    rows = {question.row.id: question.row for question in listed}
    figures = {name: figure.describe() for name, figure in task.own_figures().items()}
    return {
        "items": len(rows),
        "data": digest_of(rows.values()),
        "questions": items_digest(question.listed() for question in listed),
        "trials": task.trials,
        **json_of(task.specified()),
        "score": {name: scorer.describe() for name, scorer in task.scorers().items()},
        **({"figures": figures} if figures else {}),
    }


def items_digest(listed: Iterable[Sequence[Any]]) -> str:
    """Returns the SHA-256 of the digests of all questions that a manifest lists, in order of their ids."""
    return hashlib.sha256(canonical(sorted([item, digest, *more] for item, _, digest, *more in listed))).hexdigest()


def item_digest(item: str, group: str | None, row: Mapping[str, Any], prompt: PromptJson, order: str = "") -> str:
    """Returns the SHA-256 of an item's id, group, row and prompt, and of the order of its options if they are
    shuffled."""
    return hashlib.sha256(canonical([item, group, row, prompt, *filter(None, [order])])).hexdigest()


def json_of(value: Any) -> Any:
    """Returns a value as plain JSON values."""
    return json.loads(msgspec.json.encode(value))


def _entries(task: Task, base: Path) -> Iterator[RowEntry]:
    if not isinstance(task.data, str | os.PathLike):
        if task.split is not None or task.subset is not None:
            raise TaskError("split and subset choose a part of a folder: the data is none")
        yield from entries_of_iterable(task.data)
        return
    path = base / Path(task.data).expanduser()
    if path.is_dir():
        yield from entries_of_folder(path, task.subset, task.split)
    elif task.split is not None or task.subset is not None:
        raise TaskError(f"{path}: split and subset choose a part of a folder: this is none")
    elif not path.exists():
        where = f"{path}: expected the task's data, a file or a folder, found nothing there"
        if "://" in str(task.data) or str(task.data).startswith("hf:"):
            where = (
                f"data {str(task.data)!r}: expected a file or a folder on this machine: download it; from the Hugging "
                "Face hub with datasets.load_dataset(NAME).save_to_disk(FOLDER)"
            )
        raise TaskError(where)
    else:
        yield from entries_of_file(path)


def content_json(message: Message) -> Any:
    """Returns a message's content as a record holds it: its text, or its parts, an image as its digest."""
    if isinstance(message.content, str):
        return message.content
    return [_part_json(part) for part in message.content]


def is_inside(image: Image) -> bool:
    """Returns whether an image is given by its bytes, not by an address."""
    return image.url.startswith("data:")


def image_text(image: Image) -> str:
    """Returns the description by which records hold an image that is given by its bytes."""
    digest = hashlib.sha256(image.url.encode()).hexdigest()[:16]
    return f"{image.url[:_DATA_URL_SHOWN].partition(',')[0]}, {len(image.url):,} characters, sha256 {digest}"


def _part_json(part: Any) -> Any:
    if isinstance(part, Image) and is_inside(part):
        return {"image": image_text(part)}
    return part if isinstance(part, str) else {type(part).__name__.lower(): json_of(part)}


def _input_key(given: Input) -> Any:
    return given if isinstance(given, str) else [[each.role, json_of(each.content)] for each in given]
