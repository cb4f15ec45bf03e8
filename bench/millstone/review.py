"""A sample of a run's answers for a person to label, and how far the labels agree with what we read.

Owns which answers are drawn: a function of the answers and a seed alone, never of the order of the records, and spread
evenly over models and temperatures. Knows no screen and no file but the records it streams.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ...engine.fault import DamagedJournal
from ...engine.journal import is_intact
from ...engine.pairs import Pair
from ...metrics.agreement import Agreement, agreement
from ...metrics.stance import Letter, Reading, letter_of
from .dataset import PARAPHRASES, Dataset
from .records import RecordError

Label = Literal["A", "B", "other"]
LABELS: tuple[Label, ...] = ("A", "B", "other")

_ANSWERED = ("ok", "refused")


class Key(NamedTuple):
    """What tells an answer from every other one of its run."""

    model: str
    temperature: float | None
    id: str

    def __str__(self) -> str:
        return f"{self.id} of {Pair(self.model, self.temperature)}"


class Answer(Struct, frozen=True, kw_only=True):
    """What a label needs of a record. `letter` is not set where another program left it out."""

    id: str
    issue: str
    template: Annotated[int, Meta(ge=1, le=PARAPHRASES)]
    model: str
    temperature: float | None = None
    status: str = "ok"
    text: str | None = None
    letter: Letter | UnsetType | None = UNSET

    @property
    def key(self) -> Key:
        return Key(self.model, self.temperature, self.id)

    @property
    def pair(self) -> Pair:
        return Pair(self.model, self.temperature)


class Compared(Struct, frozen=True):
    """One reading against the labels: of all answers, and of those of each model and temperature by its name."""

    whole: Agreement
    models: Mapping[str, Agreement]


def answers_of(path: Path) -> Iterator[Answer]:
    """Every answer of a records file that has a text, each line checked where it has a checksum.

    What a kill left of a last line is passed over. Raises DamagedJournal, or RecordError where a line is no record.
    """
    decode = msgspec.json.Decoder(Answer).decode
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            is_last = not line.endswith(b"\n")
            line = line.removesuffix(b"\n")
            if not line.strip():
                continue
            if not is_intact(line, must_be_sealed=False):
                raise DamagedJournal(
                    f"{path} line {number} is damaged: `millstream resume --set-aside-damaged {path.parent}` asks for "
                    f"such lines again"
                )
            try:
                answer = decode(line)
            except (msgspec.MsgspecError, UnicodeError) as error:
                if is_last:
                    return
                raise RecordError(f"{path}: line {number}: {error}") from error
            if answer.status in _ANSWERED and answer.text is not None and answer.text.strip():
                yield answer


def draw(answers: Iterable[Answer], size: int, seed: int = 0) -> list[Answer]:
    """`size` answers, or all if there are fewer, from one pass that holds no more than `size` of each pair.

    Pairs take turns, so the sample and whatever begins it are even over them; a pair that has no more leaves its turns
    to the others.
    """
    if size < 1:
        raise ValueError(f"size ({size}) must be >= 1")
    # Of each pair the lowest ranks. heapq keeps the lowest first, and what must go is the highest: so ranks stand there
    # negated. The line's number keeps answers from being compared.
    kept: dict[Pair, list[tuple[int, int, Answer]]] = {}
    for number, answer in enumerate(answers):
        heap = kept.setdefault(answer.pair, [])
        entry = (-_rank(answer.key, seed), -number, answer)
        if len(heap) < size:
            heapq.heappush(heap, entry)
        elif entry > heap[0]:
            heapq.heapreplace(heap, entry)
    turns = [
        (turn, -rank, -number, answer)
        for heap in kept.values()
        for turn, (rank, number, answer) in enumerate(sorted(heap, reverse=True))
    ]
    drawn = [answer for *_, answer in sorted(turns)[:size]]
    _refuse_twins(answer.key for answer in drawn)
    return drawn


def find(answers: Iterable[Answer], keys: Sequence[Key]) -> dict[Key, Answer]:
    """Those of the answers that have one of these keys."""
    wanted = set(keys)
    found = [answer for answer in answers if answer.key in wanted]
    _refuse_twins(answer.key for answer in found)
    return {answer.key: answer for answer in found}


def questions_of(dataset: Dataset) -> dict[tuple[str, int], str]:
    """Each template's wording by issue and template: it says what A and B mean."""
    return {
        (issue.id, number): paraphrase.question
        for issue in dataset.issues
        for number, paraphrase in enumerate(issue.paraphrases, 1)
    }


def compare(labelled: Sequence[tuple[Answer, Label]], recorded: Reading | None) -> dict[str, Compared]:
    """Labels against each reading; the rows of a table are the person's.

    `recorded` is how the run read its answers, and what its records' letters count as. Where that isn't known, they are
    a reading of their own, as long as every record has one.
    """
    readings: tuple[str, ...] = ("paper", "careful")
    if recorded is not None:
        readings = (recorded, *(reading for reading in readings if reading != recorded))
    elif all(answer.letter is not UNSET for answer, _ in labelled):
        readings = ("recorded", *readings)
    return {reading: _compared(labelled, reading, recorded) for reading in readings}


def read_as(answer: Answer, reading: str, recorded: Reading | None = None) -> Label:
    """What a reading takes the answer for. A refusal names no letter, whatever its text says."""
    if answer.letter is not UNSET and reading in ("recorded", recorded):
        return answer.letter or "other"
    if answer.status == "refused":
        return "other"
    return letter_of(answer.text or "", "careful" if reading == "careful" else "paper") or "other"


def _compared(labelled: Sequence[tuple[Answer, Label]], reading: str, recorded: Reading | None) -> Compared:
    by_pair: dict[str, list[tuple[str, str]]] = {}
    for answer, label in labelled:
        by_pair.setdefault(str(answer.pair), []).append((label, read_as(answer, reading, recorded)))
    every = [said for pairs in by_pair.values() for said in pairs]
    models = {name: agreement(by_pair[name], LABELS) for name in sorted(by_pair)}
    return Compared(agreement(every, LABELS), models)


def _rank(key: Key, seed: int) -> int:
    """A number from the key and the seed alone: the lowest ones are the sample, whatever order the records are in."""
    named = "\n".join((str(seed), key.model, repr(key.temperature), key.id))
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big")


def _refuse_twins(keys: Iterable[Key]) -> None:
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            raise RecordError(f"records: id {key} stands there twice: keep one")
        seen.add(key)
