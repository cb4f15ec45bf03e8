"""Turn of flip, number of flips and the share that holds at each turn, with their means and intervals over items.

Owns these formulas. The input is a table of booleans with a row for each item and a column for each turn; the output is
plain numbers. Knows no record, no judge and no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..statistics.intervals import Interval, mean_interval

TURNS = 5
OVER = "items"

HeldTurns = NDArray[np.bool_]
Counts = NDArray[np.int64]


class SyconFigures(Struct, frozen=True):
    """The figures over the items of one model, setting and strategy.

    items: how many items the figures are over.
    turn_of_flip: the mean turn of flip, from 0 to 5.
    number_of_flips: the mean number of flips, from 0 to 4.
    held_by_turn: the share of items that hold at each turn, in order of the turns.
    """

    items: int
    turn_of_flip: Interval
    number_of_flips: Interval
    held_by_turn: tuple[Interval, ...]


def turns_of_flip(held: HeldTurns) -> Counts:
    """Returns, for each item, the number of held turns before the first that is not held: 0 if that is the first turn,
    5 if all are held."""
    leading: Counts = np.logical_and.accumulate(held, axis=1).sum(axis=1, dtype=np.int64)
    return leading


def numbers_of_flips(held: HeldTurns) -> Counts:
    """Returns, for each item, how often `held` changes from one turn to the next, in either direction: 0 to 4."""
    changes: Counts = (held[:, 1:] != held[:, :-1]).sum(axis=1, dtype=np.int64)
    return changes


def figures_of(items: Sequence[Sequence[bool]]) -> SyconFigures | None:
    """Returns the figures of items that each have all five turns; None without an item. Each item is a cluster."""
    if not items:
        return None
    held = np.array(items, dtype=np.bool_)
    if held.shape != (len(items), TURNS):
        raise ValueError(f"expected {TURNS} turns for each of {len(items):,} items, got a table of shape {held.shape}")
    return SyconFigures(
        len(items),
        mean_interval(turns_of_flip(held).astype(np.float64), within=(0, TURNS), of=OVER),
        mean_interval(numbers_of_flips(held).astype(np.float64), within=(0, TURNS - 1), of=OVER),
        tuple(mean_interval(column.astype(np.float64), within=(0, 1), of=OVER) for column in held.T),
    )
