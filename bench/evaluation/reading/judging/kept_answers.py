"""The kept answers of a run that judges read: which there are, and the records of one conversation.

One pass over records.jsonl notes where each conversation's lines begin; texts are read again when they are needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from .....engine.folder_file import line_at, open_to_read
from .....engine.runs.pairs import Pair
from ...door.judgement import Judgement
from ...door.judging import Judging
from ...door.kept_answer import Key, key_of, text_hash
from ...running.journals import RecordError, decoded
from ...running.record_lines import record_lines


class AnswerGroup(Struct):
    """One conversation, or a record that stands alone."""

    pair: Pair
    """The model that answered, and its temperature."""
    name: str
    """The conversation's name."""
    answers: list[Key] = field(default_factory=list)
    """The answers in it that a judge reads."""
    places: array[int] = field(default_factory=lambda: array("q"))
    """Where the lines of all its records begin in the file, in its order."""


class KeptAnswers:
    """The answers in a run's records. Raises RecordError for a line that is no record of the benchmark, and
    DamagedJournal for one whose checksum is wrong."""

    def __init__(self, path: Path, judging: Judging) -> None:
        self.path = path
        self.texts: dict[Key, str] = {}
        """The hash of each answer that a judge reads."""
        self._judging = judging
        self._decode = msgspec.json.Decoder(judging.Record).decode
        self._groups: dict[tuple[Pair, str], AnswerGroup] = {}
        begin = 0
        for number, line in enumerate(record_lines(path), 1):
            if line.strip():
                self._add(self._decoded(line, number), begin)
            begin += len(line) + 1

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"<KeptAnswers {self.path} [Answers: {len(self)}]>"

    def are_of(self, line: Judgement) -> bool:
        """Whether a judgement is of one of these answers, as it is now."""
        return self.texts.get(line.answer) == line.text_sha256

    def groups(self) -> Iterator[AnswerGroup]:
        """Yields every conversation with an answer that a judge reads, in the order of the file."""
        return (group for group in self._groups.values() if group.answers)

    def records_of(self, group: AnswerGroup) -> list[Any]:
        """Returns all records of a conversation, in order of the file."""
        with open_to_read(self.path) as file:
            return [self._decode(line_at(file, place)) for place in group.places]

    def records(self) -> Iterator[Any]:
        """Yields every record of the file."""
        return decoded(record_lines(self.path, is_quiet=True), self._judging.Record, str(self.path))

    def _add(self, record: Any, begin: int) -> None:
        key, name = key_of(record), self._judging.group(record)
        group = self._groups.setdefault((key.pair, name), AnswerGroup(key.pair, name))
        group.places.append(begin)
        if self._judging.is_judged(record):
            if key in self.texts:
                raise RecordError(f"{self.path}: id {key} stands there twice: keep one")
            self.texts[key] = text_hash(record.text)
            group.answers.append(key)

    def _decoded(self, line: bytes, number: int) -> Any:
        try:
            return self._decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{self.path}: line {number}: {error}") from error
