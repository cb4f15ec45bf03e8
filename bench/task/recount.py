"""Reads the records of a task into columns of scores, for each pair.

Owns which answers count as empty and which as without a score. Keeps no text.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ...engine.pairs import Pair
from ...metrics.naming import row_names
from ...metrics.task.summary import ModelAnswers
from ...metrics.task.trials import TaskAnswers
from .records import Record

_PROBLEM_CHARS_MAX = 200
_PROBLEMS_MAX = 50


class _PairColumns:
    """The answers of one pair, collected as columns while records are read."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.groups: list[str | None] = []
        self.item = array("q")
        self.score = array("d")
        self.parts: dict[str, array[float]] = {}
        self.most: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()
        self.empty = self.refused = self.truncated = 0

    def add(self, record: Record) -> None:
        at = self.items.setdefault(record.item, len(self.items))
        if at == len(self.groups):
            self.groups.append(record.group or None)
        self.item.append(at)
        self.score.append(_number(record.score))
        self.most[record.item] += 1
        self.truncated += record.truncated
        if record.status == "refused":
            self.refused += 1
        elif record.is_empty:
            self.empty += 1
        if record.score is None:
            problem = (record.problem or "no score").splitlines()[0][:_PROBLEM_CHARS_MAX]
            self.problems[problem if problem in self.problems or len(self.problems) < _PROBLEMS_MAX else "others"] += 1
        for name, value in (record.scores or {}).items():
            column = self.parts.get(name)
            if column is None:
                column = self.parts[name] = array("d", [np.nan] * (len(self.score) - 1))
            column.append(_number(value))
        for column in self.parts.values():
            if len(column) < len(self.score):
                column.append(np.nan)

    def as_answers(self, name: str, trials: int | None) -> ModelAnswers:
        most = max(self.most.values(), default=1)
        return ModelAnswers(
            name=name,
            answers=TaskAnswers(
                tuple(self.items), np.array(self.item, dtype=np.int64), np.array(self.score), trials or most
            ),
            groups=self.groups,
            parts={part: np.array(column) for part, column in self.parts.items()},
            empty=self.empty,
            refused=self.refused,
            truncated=self.truncated,
            problems=self.problems,
        )


def model_answers(
    records: Iterable[Record], pairs: Sequence[Pair] = (), trials: int | None = None
) -> list[ModelAnswers]:
    """Returns the answers of every pair. `pairs`: the pairs of the run, in order; one without answers has empty
    columns. `trials`: the planned trials of each item (None: as many as the item with the most has)."""
    columns: dict[Pair, _PairColumns] = {pair: _PairColumns() for pair in pairs}
    for record in records:
        columns.setdefault(record.pair, _PairColumns()).add(record)
    names = row_names(columns)
    return [found.as_answers(names[pair], trials) for pair, found in columns.items()]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
