"""Counts a run's journals: how each step ended, what failures hold back, tokens and cost.

One pass with constant work for each line. Summaries and exit codes are computed from these counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from ....engine.runs.pairs import Pair, pair_of
from ....engine.runs.proof import ANSWERED
from ..door.item_line import ItemLine, StepTotals
from .journals import decoded

_Counted = TypeVar("_Counted", bound=StepTotals)


def recount(
    counted: _Counted,
    journals: Mapping[str, Iterable[bytes]],
    steps: Mapping[Pair, Mapping[str, int]] | None = None,
    kind: type[ItemLine] = ItemLine,
) -> _Counted:
    """Adds the lines of journals, given by name, to the counts and returns these. `steps`: each item's number of steps,
    since a failure holds back the later ones (None: one step each). Raises RecordError for a line of another kind."""
    lines_of: dict[tuple[Pair, str], int] = {}
    failed: set[tuple[Pair, str]] = set()
    for name, lines in journals.items():
        for line in decoded(lines, kind, name):
            pair = pair_of(line)
            counted.add(pair, line)
            if steps is None:
                continue
            key = (pair, line.item)
            lines_of[key] = lines_of.get(key, 0) + 1
            if line.status not in ANSWERED:
                failed.add(key)
    for pair, item in failed:
        has, of_pair = lines_of[pair, item], (steps or {}).get(pair, {})
        counted.pairs[pair].held += max(0, of_pair.get(item, has) - has)
    return counted
