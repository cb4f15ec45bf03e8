"""Finds the text of each answer in its file, so that a few can be shown without keeping a million in memory.

Owns sixteen bytes for each answer, in the order of the tally's rows: a mark that tells texts apart, and the byte at
which its line begins. Knows no score and no page.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...engine.folder_file import line_at
from ...engine.runs.pairs import Pair, pair_of
from ...report.escaping import visible
from .records import Record, RecordError

LONGEST = 300


class Texts(Struct, frozen=True):
    """Where one pair's answers stand in their records file: `offsets` are the bytes at which their lines begin, in the
    tally's order. `marks` are hashes of the texts, equal for equal texts, and valid only within one process."""

    path: Path
    marks: NDArray[np.int64]
    offsets: NDArray[np.int64]


class TextPlaces:
    """A recorder that follows a pass over a file: lines go through `lines`, and the record made of the latest one into
    `add`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._columns: dict[Pair, tuple[array[int], array[int]]] = {}

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the lines of the whole file, without newlines, and notes where each begins."""
        following = 0
        for line in lines:
            self._offset = following
            yield line
            following += len(line) + 1

    def add(self, record: Record) -> None:
        pair = pair_of(record)
        columns = self._columns.get(pair)
        if columns is None:
            columns = self._columns[pair] = (array("q"), array("q"))
        marks, offsets = columns
        marks.append(hash(record.text))
        offsets.append(self._offset)

    def texts(self) -> Mapping[Pair, Texts]:
        return {
            pair: Texts(self._path, np.array(marks, dtype=np.int64), np.array(offsets, dtype=np.int64))
            for pair, (marks, offsets) in self._columns.items()
        }


class Excerpt(Struct, frozen=True):
    """A text to be shown: its beginning and its end, or all of a short one in `head`, and its whole length in
    characters."""

    head: str
    tail: str
    chars: int

    @classmethod
    def of(cls, text: str) -> Excerpt:
        # Cut before its characters are checked: a text may have a million of them.
        is_short = len(text) <= LONGEST
        head = text if is_short else text[: LONGEST * 2 // 3]
        return cls(visible(head), "" if is_short else visible(text[-LONGEST // 3 :]), len(text))

    def cut(self, longest: int) -> tuple[str, int]:
        """Returns the text, cut in its middle to `longest` characters, and its whole length; 0 if nothing was cut."""
        if not self.tail and len(self.head) <= longest:
            return self.head, 0
        last = longest // 3
        return f"{self.head[: longest - last]} […] {(self.tail or self.head)[-last:]}", self.chars


class TextReader:
    """A reader of single texts of one file; each different text is read once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = msgspec.json.Decoder(Record).decode
        self._known: dict[int, Excerpt] = {}

    def excerpt(self, mark: int, offset: int) -> Excerpt:
        """Returns the excerpt of the text whose line begins at byte `offset`; an empty one if the record has no
        text."""
        excerpt = self._known.get(mark)
        if excerpt is None:
            try:
                text = self._decode(line_at(self._file, offset)).text
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise RecordError(
                    f"{self._file.name} changed while it was read: ask again once its run has ended"
                ) from error
            excerpt = self._known[mark] = Excerpt.of(text or "")
        return excerpt
