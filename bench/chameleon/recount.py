"""Counts a run's journals: how each turn ended, and how often the judge had to be asked again.

Owns which fields of a turn's line are read for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import field

from ...engine.runs.pairs import Pair
from ..evaluation.recount import CountLine
from ..evaluation.recount import StepTotals as Counted
from ..evaluation.recount import recount as recount_lines


class TurnRecount(Counted):
    """The counts of a run's turns so far: how they ended, what they cost, and how often the judge was asked again."""

    repaired: int = 0
    """Turns whose judge was asked twice."""
    unreadable: int = 0
    """Turns whose judgement was unreadable even after the repair request."""

    def add(self, pair: Pair, line: CountLine) -> None:
        super().add(pair, line)
        assert isinstance(line, _TurnCountLine)
        self.repaired += line.judge_repaired
        self.unreadable += line.raw_judgement is not None


class _TurnCountLine(CountLine, frozen=True, kw_only=True):
    step: int = field(name="turn")
    role: str = field(name="step", default="")
    judge_repaired: bool = False
    raw_judgement: str | None = None


def recount(
    records: Iterable[bytes],
    failures: Iterable[bytes] = (),
    asked: Mapping[Pair, Mapping[str, int]] | None = None,
    source: str = "records.jsonl",
) -> TurnRecount:
    """Counts the lines of both journals, except blank ones, and returns the counts. `asked` has the number of turns of
    each conversation, which gives how many turns a failed one holds back."""
    return recount_lines(TurnRecount(), {source: records, "failures.jsonl": failures}, asked, _TurnCountLine)
