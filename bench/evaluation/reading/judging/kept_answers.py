"""The kept answers of a run that judges read: which there are, and the records of one conversation.

One pass over records.jsonl notes where each conversation's lines begin; texts are read again when they are needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from .....engine.folder_file import line_at, open_to_read
from .....engine.pairs import Pair
from ...door.judgement import Judgement
from ...door.judging import Judging
from ...door.kept_answer import Key, key_of, text_hash
from ...running.journals import RecordError, decoded
from ...running.record_lines import record_lines


class KeptAnswer(Struct, frozen=True):
    """One answer that a judge reads."""

    key: Key
    """Its key."""
    text_sha256: str
    """The hash of its text."""
    places: array[int]
    """Where the lines of its conversation begin in the file, in its order; of a record that stands alone, its own."""


class KeptAnswers:
    """The answers in a run's records that a judge reads. Raises RecordError for a line that is no record of the
    benchmark, and DamagedJournal for one whose checksum is wrong."""

    def __init__(self, path: Path, judging: Judging) -> None:
        self.path = path
        self._judging = judging
        self._decode = msgspec.json.Decoder(judging.Record).decode
        self._answers: dict[Key, KeptAnswer] = {}
        self._last: tuple[array[int], list[Any]] = array("q"), []
        places: dict[tuple[Pair, str], array[int]] = {}
        begin = 0
        for number, line in enumerate(record_lines(path), 1):
            if line.strip():
                record = self._decoded(line, number)
                key = key_of(record)
                of_group = places.setdefault((key.pair, judging.group(record)), array("q"))
                of_group.append(begin)
                if judging.is_judged(record):
                    if key in self._answers:
                        raise RecordError(f"{path}: id {key} stands there twice: keep one")
                    self._answers[key] = KeptAnswer(key, text_hash(record.text), of_group)
            begin += len(line) + 1

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, key: Key) -> bool:
        return key in self._answers

    def __iter__(self) -> Iterator[KeptAnswer]:
        """Yields the answers, those of one conversation together, in the order of the file."""
        return iter(sorted(self._answers.values(), key=lambda answer: answer.places[0]))

    def __repr__(self) -> str:
        return f"<KeptAnswers {self.path} [Answers: {len(self)}]>"

    def are_of(self, line: Judgement) -> bool:
        """Whether a judgement is of one of these answers, as it is now."""
        answer = self._answers.get(line.answer)
        return answer is not None and answer.text_sha256 == line.text_sha256

    def records_of(self, answer: KeptAnswer) -> list[Any]:
        """Returns all records of an answer's conversation, in the order of their steps, wherever their lines stand."""
        if self._last[0] is not answer.places:
            with open_to_read(self.path) as file:
                records = (self._decode(line_at(file, place)) for place in answer.places)
                self._last = answer.places, sorted(records, key=lambda record: record.place[1])
        return self._last[1]

    def records(self) -> Iterator[Any]:
        """Yields every record of the file."""
        return decoded(record_lines(self.path, is_quiet=True), self._judging.Record, str(self.path))

    def _decoded(self, line: bytes, number: int) -> Any:
        try:
            return self._decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{self.path}: line {number}: {error}") from error
