"""An item of a benchmark, and the ids of its journal lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from .defect import BenchmarkDefect


class Item(Struct, frozen=True):
    """One unit of a benchmark, put to every model under test in one step or several."""

    id: str
    """The item's name in journals and reports: unique, and the same each time the run is prepared."""
    data: Any = None
    """The data from which the benchmark makes calls and records. The framework does not look at it."""
    steps: int = 1
    """The number of the item's journal lines."""
    group: str = ""
    """The part of the benchmark that the item belongs to, for scores by group."""
    of: str = ""
    """For one of several repeats, the id that its records have as `item`; empty: its own id."""
    is_numbered: bool = False
    """Whether the line of a single step has its number too: `item/1`."""

    def line_ids(self) -> list[str]:
        """Returns the ids of the item's journal lines, in the order of its steps: its own, or `item/1` to `item/steps`
        if it has several steps or is numbered."""
        if self.steps > 1 or self.is_numbered:
            return [f"{self.id}/{step}" for step in range(1, self.steps + 1)]
        return [self.id]


def item_of(line: str, step: int) -> str:
    """Returns the id of the item that a journal line belongs to; `step` is the line's step."""
    return line.removesuffix(f"/{step}")


def steps_of(items: Iterable[Item], title: str) -> dict[str, int]:
    """Returns the number of steps of each item by its id. Raises BenchmarkDefect if two journal lines would have the
    same id."""
    steps: dict[str, int] = {}
    lines: set[str] = set()
    for item in items:
        if not isinstance(item, Item) or not isinstance(item.id, str) or not item.id or item.steps < 1:
            raise BenchmarkDefect(f"{title}: items() must give Items with an id and at least a step, it gave {item!r}")
        ids = item.line_ids()
        if not lines.isdisjoint(ids):
            raise BenchmarkDefect(f"{title}: two items have the id {item.id!r}: each needs one of its own")
        lines.update(ids)
        steps[item.id] = item.steps
    return steps


Wrong = str | Iterable[str] | None
"""What is wrong with a record: a sentence or several; None: nothing."""
