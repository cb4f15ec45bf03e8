"""Reads from a run's folder which turns are done.

Owns which fields of a turn's line are read for that. Knows no call.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import field

from ...engine.runs.pairs import FinishedItems
from ...engine.runs.run_folder import RunFolder
from ..evaluation.journals import DoneLine, StepLine
from ..evaluation.journals import read_done as read_journals


class TurnLine(StepLine, frozen=True, kw_only=True):
    """The part of a journal line that identifies its turn."""

    step: int = field(name="turn")


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
