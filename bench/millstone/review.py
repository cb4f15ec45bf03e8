"""The question that people answer about a MillStone answer: which position it takes.

Owns which wording is shown with an answer, and the position that each reading finds in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from ...engine.remarks import remark
from ...metrics.millstone.stance import Letter, Reading, letter_of
from ..evaluation.door.label import Label, LabelChoice, Labeller
from .dataset import DatasetError, IssueDataset
from .issue import PARAPHRASES
from .work import dataset_of

CHOICES = (LabelChoice("A"), LabelChoice("B"), LabelChoice("O", "other", "another position, none or both"))
_ASK = "Which position does the answer take? A or B; O: another, none or both"
_READINGS: tuple[Reading, ...] = ("paper", "careful")

Questions = Mapping[tuple[str, int], str]


class AnswerToLabel(Struct, frozen=True, kw_only=True):
    """The fields of a record that labelling needs. `letter` is unset if another program left it out."""

    id: str
    issue: str
    template: Annotated[int, Meta(ge=1, le=PARAPHRASES)]
    model: str
    temperature: float | None = None
    effort: str | None = None
    status: str = "ok"
    text: str | None = None
    letter: Letter | UnsetType | None = UNSET


def labeller(manifest: Mapping[str, Any] | None, *, is_shown: bool) -> Labeller:
    """Returns the labeller of a run. Questions are looked up only if they are shown."""
    stance = None if manifest is None else manifest["specification"].get("stance")
    recorded: Reading | None = stance if stance in _READINGS else None
    questions = _questions(manifest) if is_shown else {}
    return Labeller(AnswerToLabel, partial(label_of, recorded=recorded, questions=questions))


def label_of(answer: AnswerToLabel, recorded: Reading | None, questions: Questions) -> Label:
    return Label(
        text=answer.text or "",
        choices=CHOICES,
        readings=readings_of(answer, recorded),
        question=questions.get((answer.issue, answer.template), ""),
        about={"issue": answer.issue},
        ask=_ASK,
    )


def readings_of(answer: AnswerToLabel, recorded: Reading | None) -> dict[str, str]:
    """Returns the position that each reading finds in an answer, by the reading's name.

    `recorded` is the reading that the run used, so that its records' letters count as that reading's. If it isn't known
    (None), a letter in the record is a reading of its own.
    """
    names: tuple[str, ...] = _READINGS
    if recorded is not None:
        names = (recorded, *(reading for reading in _READINGS if reading != recorded))
    elif answer.letter is not UNSET:
        names = ("recorded", *_READINGS)
    return {name: read_as(answer, name, recorded) for name in names}


def read_as(answer: AnswerToLabel, reading: str, recorded: Reading | None = None) -> str:
    """Returns the position that a reading finds in an answer: A, B or other. The letter in the record is taken where
    the reading is `recorded`, or the one that it was recorded by. A refusal is always other."""
    if answer.letter is not UNSET and reading in ("recorded", recorded):
        return answer.letter or "other"
    if answer.status == "refused":
        return "other"
    return letter_of(answer.text or "", "careful" if reading == "careful" else "paper") or "other"


def questions_of(dataset: IssueDataset) -> dict[tuple[str, int], str]:
    """Returns each template's wording by issue and template (from 1): it says what A and B mean."""
    return {
        (issue.id, number): paraphrase.question
        for issue in dataset.issues
        for number, paraphrase in enumerate(issue.paraphrases, 1)
    }


def _questions(manifest: Mapping[str, Any] | None) -> Questions:
    """Returns the wordings of a run's questions; empty, with a remark, if its data set has changed or is gone."""
    if manifest is None:
        return {}
    lack = "the data set is no longer the one that was asked: its digest differs"
    try:
        dataset = dataset_of(manifest)
        if dataset.digest == manifest["specification"].get("data"):
            return questions_of(dataset)
    except (DatasetError, OSError):
        lack = "the data set is no longer where it was when the run was made, or can't be read"
    remark(f"the answers are shown without their questions, since {lack}")
    return {}
