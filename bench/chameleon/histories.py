"""What a run's folder holds of conversations that are not over, found by where their lines begin.

Owns the reading back of questions and answers; keeps no text until a conversation goes on. Knows no call.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ...engine.pairs import Done, Pair
from ...engine.run_folder import RunFolder
from .context import Cut
from .conversation import Held
from .records import RecordError


class _Place(Struct, frozen=True):
    model: str
    conversation: str
    turn: int
    temperature: float | None = None


class _Text(Struct, frozen=True):
    turn: int
    question: str
    text: str | None = None
    filtered: bool = False
    cut: Cut | None = None


class _Line(Struct, frozen=True):
    id: str
    model: str
    temperature: float | None = None
    cost: float | None = None
    stance: str | None = None
    search: str = ""
    judge: str = ""
    usage_judge: msgspec.Raw = msgspec.Raw(b"null")


UNRECORDED = "cost_unrecorded"
"""The manifest's field for what turns cost that a stop left without a line."""


def read_done(folder: RunFolder) -> Done:
    """What the journals hold, every line checked, and whom its records show to have answered. Raises DamagedJournal, or
    RecordError where a line is no record."""
    ids: dict[Pair, set[str]] = {}
    answered: set[str] = set()
    cost = float(folder.manifest.get(UNRECORDED, 0.0))
    decode = msgspec.json.Decoder(_Line).decode
    for journal in (folder.records, folder.failures):
        for number, data in enumerate(journal.read(), 1):
            try:
                line = decode(data)
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise RecordError(f"{journal.path}: line {number}: {error}") from error
            ids.setdefault(Pair(line.model, line.temperature), set()).add(line.id)
            cost += line.cost or 0.0
            if line.stance is not None:
                answered |= {line.model, line.search}
                if bytes(line.usage_judge) != b"null":
                    answered.add(line.judge)
    return Done(ids, cost, frozenset(answered - {""}))


class Histories:
    """The turns that have a record, of conversations that are not over."""

    def __init__(self, records: Path, places: Mapping[tuple[Pair, str], array[int]]) -> None:
        self._records = records
        self._places = places

    def of(self, pair: Pair, conversation: str) -> dict[int, Held]:
        """Texts by turn, read now."""
        places = self._places.get((pair, conversation))
        if not places:
            return {}
        held: dict[int, Held] = {}
        with self._records.open("rb") as file:
            for place in places:
                file.seek(place)
                line = msgspec.json.decode(file.readline(), type=_Text)
                dropped = line.cut.dropped if line.cut is not None else ()
                said = "" if line.filtered else line.text or ""
                held[line.turn] = Held(line.question, said, dropped)
        return held


def histories(folder: RunFolder, turns: Mapping[str, int], done: Done) -> Histories:
    """Where the lines of unfinished conversations begin; what is over, or has failed, needs none."""
    places: dict[tuple[Pair, str], array[int]] = {}
    if not done.count():
        return Histories(folder.records.path, places)
    decode = msgspec.json.Decoder(_Place).decode
    begin = 0
    for line in folder.records.read():
        found = decode(line)
        key = (Pair(found.model, found.temperature), found.conversation)
        places.setdefault(key, array("q")).append(begin)
        begin += len(line) + 1
    open_ones = {key: at for key, at in places.items() if len(at) < turns.get(key[1], 0)}
    return Histories(folder.records.path, open_ones)
