"""Reads judged turns as the authors published them: a text line for each item.

Owns the format of these lines and checks their consistency, since each has both the turns and two figures of them.
Converts them to records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from ...engine.runs.data_file import DatasetError
from ...engine.runs.run_folder import RECORDS
from ...metrics.sycon.figures import TURNS, numbers_of_flips, turns_of_flip
from ...metrics.sycon.judgement import Setting
from ..evaluation.running.journals import encode
from .records import Record, item_id
from .tables import read_lines

_LINE = re.compile(r"Row\s+(\d+)\s*:\s*ToF\s*=\s*(-?\d+)\s*,\s*NoF\s*=\s*(-?\d+)\s*,\s*Alignments\s*=\s*\[([^\]]*)\]")
_EXAMPLE = "Row 1: ToF = 5, NoF = 0, Alignments = [1 1 1 1 1]"
_HELD = {"1": True, "1.": True, "0": False, "0.": False, "-1": None, "-1.": None, "nan": None}


class PublishedRow(Struct, frozen=True):
    """One item as in its line.

    item: the item's number.
    turn_of_flip: the turn of flip that the line states.
    number_of_flips: the number of flips that the line states.
    held: whether each turn was held; None where the line has -1 or nan, for a turn without an answer.
    """

    item: int
    turn_of_flip: int
    number_of_flips: int
    held: tuple[bool | None, ...]


def read_published(path: Path) -> list[PublishedRow]:
    """Returns the rows of a file, in order. Raises DatasetError with file and line for a malformed line, a wrong number
    of turns, or a repeated item."""
    rows: dict[int, PublishedRow] = {}
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path} line {number}"
        match = _LINE.fullmatch(line)
        if match is None:
            raise DatasetError(f"{where}: expected a line such as {_EXAMPLE!r}, got {line[:60]!r}")
        marks = re.split(r"[\s,]+", match[4].strip())
        if len(marks) != TURNS or not set(marks) <= set(_HELD):
            raise DatasetError(f"{where}: Alignments: expected {TURNS} marks of 1, 0, -1 or nan, got [{match[4]}]")
        item = int(match[1])
        if item in rows:
            raise DatasetError(f"{where}: expected each row once, got row {item} a second time")
        rows[item] = PublishedRow(item, int(match[2]), int(match[3]), tuple(_HELD[mark] for mark in marks))
    return list(rows.values())


def disagreements(rows: Sequence[PublishedRow]) -> list[str]:
    """Returns a sentence for each line whose stated figures differ from those of its turns. Lines without all turns are
    skipped."""
    sentences = []
    for row in rows:
        held = [each for each in row.held if each is not None]
        if len(held) < TURNS:
            continue
        table = np.array([held], dtype=np.bool_)
        computed = int(turns_of_flip(table)[0]), int(numbers_of_flips(table)[0])
        if computed != (row.turn_of_flip, row.number_of_flips):
            stated = f"ToF = {row.turn_of_flip}, NoF = {row.number_of_flips}"
            sentences.append(f"row {row.item} states {stated}, its turns have ToF = {computed[0]}, NoF = {computed[1]}")
    return sentences


def records_of(rows: Iterable[PublishedRow], model: str, setting: Setting, strategy: str = "base") -> Iterator[Record]:
    """Yields the turns of these rows as records of a model, a setting and a strategy."""
    for row in rows:
        for turn, held in enumerate(row.held, 1):
            yield Record(id=f"{item_id(setting, strategy, row.item)}/{turn}", model=model, held=held)


def write_records(
    rows: Iterable[PublishedRow], folder: Path, model: str, setting: Setting, strategy: str = "base"
) -> int:
    """Writes the turns to a folder's records.jsonl, which `score` and `report` read; returns their number. Raises
    FileExistsError if the folder has records already."""
    records = list(records_of(rows, model, setting, strategy))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RECORDS).open("xb") as file:
        file.writelines(encode(record) + b"\n" for record in records)
    return len(records)
