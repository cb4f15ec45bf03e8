"""Reads from a run's folder which conversations are done, and the turns of unfinished ones.

Owns which fields of a turn's line are read for that. Knows no call.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from ...engine.runs.pairs import FinishedItems
from ...engine.runs.run_folder import RunFolder
from ..evaluation.journals import DoneLine, StepLine
from ..evaluation.journals import read_done as read_journals
from .context import PromptCuts
from .conversation import RecordedTurn


class TurnLine(StepLine, frozen=True, kw_only=True):
    """The part of a journal line that identifies its turn."""

    conversation: str
    step: int = field(name="turn")

    @property
    def item(self) -> str:
        return self.conversation


class _Text(Struct, frozen=True):
    turn: int
    question: str
    text: str | None = None
    filtered: bool = False
    cut: PromptCuts | None = None


class _DoneTurn(DoneLine, frozen=True):
    search: str = ""
    judge: str = ""
    usage_judge: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def is_cut_empty(self) -> bool:
        # An empty answer is a turn like others, and the conversation continues.
        return False

    @property
    def answered(self) -> Iterable[str]:
        lanes = (self.model, self.search, self.judge if bytes(self.usage_judge) != b"null" else "")
        return filter(None, lanes)


def read_done(folder: RunFolder) -> FinishedItems:
    """Returns which turns are done and which lanes have answered, with every line checked. Raises DamagedJournal, or
    RecordError if a line is no record."""
    return read_journals(folder, _DoneTurn)


def held_of(lines: Iterable[bytes]) -> dict[int, RecordedTurn]:
    """Returns the recorded turns of these journal lines, by number from 1."""
    held: dict[int, RecordedTurn] = {}
    for data in lines:
        line = msgspec.json.decode(data, type=_Text)
        dropped = line.cut.dropped if line.cut is not None else ()
        held[line.turn] = RecordedTurn(line.question, "" if line.filtered else line.text or "", dropped)
    return held
