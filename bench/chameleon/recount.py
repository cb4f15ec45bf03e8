"""Counts a run's journals: how each turn ended.

Owns which fields of a turn's line are read for that, and to go on with a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import field

from ...engine.runs.pairs import Pair
from ..evaluation.item_line import ItemLine
from ..evaluation.recount import StepTotals
from ..evaluation.recount import recount as recount_lines


class TurnLine(ItemLine, frozen=True, kw_only=True):
    """The fields of a turn's line."""

    step: int = field(name="turn")
    role: str = field(name="step", default="")
    search: str = ""

    @property
    def is_cut_empty(self) -> bool:
        # An empty answer is a turn like others, and the conversation continues.
        return False

    @property
    def answered(self) -> Iterable[str]:
        judge = self.judge if self.usage_judge is not None else None
        return filter(None, (self.model, self.search, judge if isinstance(judge, str) else None))


def recount(
    records: Iterable[bytes],
    failures: Iterable[bytes] = (),
    asked: Mapping[Pair, Mapping[str, int]] | None = None,
    source: str = "records.jsonl",
) -> StepTotals:
    """Counts the lines of both journals, except blank ones, and returns the counts. `asked` has the number of turns of
    each conversation, which gives how many turns a failed one holds back."""
    return recount_lines(StepTotals(), {source: records, "failures.jsonl": failures}, asked, TurnLine)
