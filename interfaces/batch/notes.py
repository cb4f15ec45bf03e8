"""The notes of a batch that are on disk: which of them is a row's, and what all calls have cost.

A kill between note and row leaves a note without a row, and the line may get another answer when it is sent again. Owns
no wording of what is wrong: whoever reads the notes says it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...engine.folder_file import line_at, open_to_read
from ...engine.runs.journal import is_intact, read_lines
from ...engine.runs.run_folder import FAILURES, RECORDS
from .place import BatchPlace
from .rows import Note

ANSWERED, FAILED, RETIRED = 0, 1, 2
"""The kinds of notes, by their file; retired are those of failures that were sent again."""


class Notes(ExitStack):
    """The places of every line's latest note, in eight bytes a line and file of notes. Use as a context manager.
    `wrong` is called with the file, the number from 1 and the mistake of a line that is no whole note. `cost` is that
    of all calls in dollars; None: no model has a price."""

    def __init__(self, place: BatchPlace, wrong: Callable[[Path, int, str], None]) -> None:
        super().__init__()
        self.cost: float | None = None
        self._files: list[tuple[int, BinaryIO, array[int]]] = []
        self._decode = msgspec.json.Decoder(Note).decode
        kinds = {place.folder / RECORDS: ANSWERED, place.folder / FAILURES: FAILED}
        there = {path: self._read(path, wrong) for path in (*kinds, *place.retired) if path.exists()}
        for path, places in there.items():
            self._files.append((kinds.get(path, RETIRED), self.enter_context(open_to_read(path)), places))

    def _read(self, path: Path, wrong: Callable[[Path, int, str], None]) -> array[int]:
        # 0 stands for a line without a note.
        places, place = array("Q"), 1
        for number, line in enumerate(read_lines(path), 1):
            here, place = place, place + len(line) + 1
            if not is_intact(line, must_be_sealed=True):
                wrong(path, number, "damaged: its checksum is missing or wrong")
                continue
            try:
                note = self._decode(line)
            except (msgspec.MsgspecError, UnicodeError) as error:
                wrong(path, number, f"no note of a batch: {error}")
                continue
            if note.cost is not None:
                self.cost = (self.cost or 0.0) + note.cost
            if note.row_crc is not None:
                if note.line >= len(places):
                    places.frombytes(bytes(8 * (note.line + 1 - len(places))))
                places[note.line] = here
        return places

    def of(self, line: int, row_crc: int) -> tuple[int, Note] | None:
        """Returns the kind and the note of a line's row; None: no note belongs to it."""
        for kind, file, places in self._files:
            if 0 < line < len(places) and places[line]:
                note = self._decode(line_at(file, places[line] - 1))
                if note.row_crc == row_crc:
                    return kind, note
        return None

    def is_known(self, line: int) -> bool:
        return any(0 < line < len(places) and places[line] for _, _, places in self._files)
