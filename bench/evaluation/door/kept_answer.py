"""A kept answer of a run, as people, judges and readings address it, and what one of them says about it.

Owns the answer's key, the hash of its text, and the fields that a line of labels.jsonl and one of judgements.jsonl
share: both hold for one text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from ....configuration.errors import UsageError
from ....engine.fault import DamagedJournal
from ....engine.pairs import Pair, TreatedLine, pair_of
from ....engine.runs.journal import is_intact, read_lines


class AnswerLine(TreatedLine, Protocol):
    """The interface of a line that names an answer."""

    @property
    def id(self) -> str: ...


class Key(NamedTuple):
    """The key of an answer within its run: its pair and its record's id."""

    pair: Pair
    id: str

    def __str__(self) -> str:
        return f"{self.id} of {self.pair}"


def key_of(line: AnswerLine) -> Key:
    return Key(pair_of(line), line.id)


def unique_name(key: Key) -> str:
    """Returns a name for an answer that no other of its run has."""
    model, temperature, effort = key.pair
    return "\n".join((model, repr(temperature), *([] if effort is None else [effort]), key.id))


def text_hash(text: str | None) -> str:
    """Returns the SHA-256 of an answer's text, in hex."""
    return hashlib.sha256((text or "").encode("utf-8", "surrogatepass")).hexdigest()


class Verdict(Struct, frozen=True):
    """What a person or a judge makes of one answer; neither label nor grade if a judge's reply could not be read."""

    label: str | None
    """One of a closed set of labels; None: a judge that gives grades only."""
    grade: float | None = None
    """A grade; None: there are labels only."""
    confidence: float | None = None
    """How sure the person or the judge is of the label, from 0 to 1; None: they did not say."""

    def is_read(self, labels: tuple[str, ...]) -> bool:
        """Whether the reply could be read: where judges give `labels` it has a label, else a grade."""
        return (self.label if labels else self.grade) is not None


class VerdictLine(Struct, frozen=True, kw_only=True):
    """A line on a verdict: the answer that it is about. Who gave the verdict, and what it is, stands in the fields of
    labels and of judgements."""

    id: str = ""
    """The id of the answer's record, unique within its pair."""
    model: str = ""
    """The model that gave the answer."""
    temperature: float | None = None
    """The temperature of the answer; None: none was sent."""
    effort: str | None = None
    """The reasoning effort of the answer; None: none was sent."""
    text_sha256: str = ""
    """The hash of the answer's text: a verdict holds for this text alone."""

    @property
    def answer(self) -> Key:
        return key_of(self)

    def holds_for(self, text: str | None) -> bool:
        """Whether the answer has the text that was read."""
        return self.text_sha256 == text_hash(text)


_Line = TypeVar("_Line", bound=VerdictLine)


def verdict_lines(path: Path, kind: type[_Line], noun: str) -> Iterator[_Line]:
    """Yields every whole line of a file of verdicts; a missing file has none, and half a line at the end is skipped.
    Raises DamagedJournal for a line with a wrong checksum, UsageError for one of another kind; `noun` is the word for
    a line."""
    decode = msgspec.json.Decoder(kind).decode
    for number, line in enumerate(read_lines(path), 1):
        if not is_intact(line, must_be_sealed=False):
            raise DamagedJournal(f"{path} line {number} is damaged: restore the file, or remove this line")
        try:
            yield decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise UsageError(
                f"{path} line {number}: expected a {noun}, got something else ({error}): correct it"
            ) from error
