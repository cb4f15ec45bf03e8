"""The answers of one model to a task as columns, and how the trials of an item combine.

Owns when an item or a model has no score. Knows no record.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..statistics.intervals import Bounds

Combine = Literal["mean", "majority", "any"]
Unreadable = Literal["skip", "zero"]

Values = NDArray[np.float64]

OF_FUNCTION = "the score function"
"""How the problem of an answer begins whose score function gave no score that can be used."""
GAVE_NONE = f"{OF_FUNCTION} gave None"
"""That of one whose function gave None for it, or no score of this name."""
FUNCTION_RAISED = "the score function raised"
"""How it begins if the function raised an error."""
_RIGHT = 0.5
_OTHERS, _PROBLEMS_MAX = "others", 50


@dataclass(frozen=True)
class ReadingRules:
    """How a task's answers are read.

    combine: how the trials of an item combine.
    unreadable: whether answers without a score are left out or count as 0.
    within: the least and the largest score possible; None: not known.
    items: how many items the task has; None: those of which there are answers.
    """

    combine: Combine = "mean"
    unreadable: Unreadable = "skip"
    within: Bounds | None = None
    items: int | None = None


class Problems(Counter[str]):
    """Why answers have no score, and how many. Errors of one kind that came from one line count together, under the
    words of the first; beyond 50 problems of other kinds, all count as `others`."""

    def __init__(self, problems: Mapping[str, int] = MappingProxyType({})) -> None:
        super().__init__()
        self._first: dict[str, str] = {}
        for problem, number in problems.items():
            self.add(problem, number)

    @property
    def raised(self) -> Problems:
        """Those of a score function that raised an error."""
        return Problems({each: number for each, number in self.items() if each.startswith(FUNCTION_RAISED)})

    def add(self, problem: str, number: int = 1) -> None:
        if not number:
            return
        kind = problem.partition(": ")[0] if problem.startswith(FUNCTION_RAISED) else problem
        is_listed = kind in self._first or kind != problem or len(self._first) < _PROBLEMS_MAX
        self[self._first.setdefault(kind, problem) if is_listed else _OTHERS] += number


@dataclass
class ModelAnswers:
    """One model's answers at one temperature; `item` and all after it are columns with a row for each answer.

    name: the model, with its temperature where it was asked at several.
    trials: how many answers each item was to get.
    items: the ids of the items, each with its place.
    groups: the group of each item; None without one.
    problems: why answers lack the score of a name, and how many (None: the main one, whatever its name).
    item: the place in `items` of each answer's item.
    score: the main score; NaN: it has none.
    parts: the scores by name, where answers have several.
    firsts: the first name of each answer's several scores, which is the main one.
    is_refused: whether it is a refusal.
    is_empty: whether it is empty, and no refusal.
    is_truncated: whether it is cut off at max_tokens.
    variants: the names of the prompt's variants; empty: there is one prompt. `trials` are those of each.
    variant: the place in `variants` of each answer's variant.
    """

    name: str = ""
    trials: int = 1
    items: dict[str, int] = field(default_factory=dict)
    groups: list[str | None] = field(default_factory=list)
    problems: defaultdict[str | None, Problems] = field(default_factory=lambda: defaultdict(Problems))
    item: array[int] = field(default_factory=lambda: array("q"))
    score: array[float] = field(default_factory=lambda: array("d"))
    parts: dict[str, array[float]] = field(default_factory=dict)
    firsts: set[str] = field(default_factory=set)
    is_refused: array[int] = field(default_factory=lambda: array("b"))
    is_empty: array[int] = field(default_factory=lambda: array("b"))
    is_truncated: array[int] = field(default_factory=lambda: array("b"))
    variants: list[str] = field(default_factory=list)
    variant: array[int] = field(default_factory=lambda: array("q"))

    @property
    def count(self) -> int:
        return len(self.score)

    def without_score(self, part: str | None = None) -> int:
        return int(np.isnan(self.column(part)).sum())

    def has_own_problems(self, part: str) -> bool:
        """Returns whether the scores of this name are missing for other reasons, or elsewhere, than the main ones."""
        return bool(self.problems[part]) and self.problems[part] != self.problems[None]

    def silent(self, part: str | None = None) -> int:
        """Returns how many answers have no score and are empty."""
        return int((np.isnan(self.column(part)) & (np.asarray(self.is_empty) == 1)).sum())

    def of_variant(self, name: str) -> ModelAnswers:
        """Returns the items and scores of the answers in one variant of the prompt, under its name."""
        kept = np.flatnonzero(np.asarray(self.variant) == self.variants.index(name))
        item, score = np.asarray(self.item)[kept], self.column()[kept]
        return ModelAnswers(
            name, self.trials, self.items, self.groups, item=array("q", item.tolist()), score=array("d", score.tolist())
        )

    def column(self, part: str | None = None) -> Values:
        """Returns the main scores, or those of the part of this name, for numpy."""
        return np.asarray(self.score if part is None else self.parts[part])

    def is_worthless(self, part: str | None = None) -> bool:
        """Returns whether half of the answers or more are empty or cannot be read."""
        return self.count > 0 and 2 * self.without_score(part) >= self.count

    def outside(self, within: Bounds | None) -> int:
        """Returns how many answers have a score outside these bounds: another program wrote or changed them."""
        low, high = within or (-np.inf, np.inf)
        return int(((self.column() < low) | (self.column() > high)).sum())

    def values(self, rules: ReadingRules, part: str | None = None) -> Values:
        """Returns the value of each item, of the main score or of the part of this name; NaN where fewer than half of
        its trials have a score. All are NaN if half of the answers or more have none, or if one is out of bounds.

        `mean`: the mean of its trials' scores. `majority`: 1 where more than half of them score at least 0.5, else 0.
        `any`: the best of them. Answers without a score are left out, or count as 0 if `unreadable` is `zero`.
        """
        number = len(self.items)
        values: Values = np.full(number, np.nan)
        if self.is_worthless(part) or (part is None and self.outside(rules.within)):
            return values
        score, item = self.column(part), np.asarray(self.item)
        has_score = ~np.isnan(score)
        if rules.unreadable == "zero":
            score = np.where(has_score, score, 0.0)
        else:
            score, item = score[has_score], item[has_score]
        count = np.bincount(item, minlength=number)
        is_scored = (count > 0) & (2 * count >= self.trials * max(1, len(self.variants)))
        if rules.combine == "any":
            best = np.full(number, -np.inf)
            np.maximum.at(best, item, score)
            values[is_scored] = best[is_scored]
        else:
            amounts = (score >= _RIGHT).astype(np.float64) if rules.combine == "majority" else score
            share = np.bincount(item, amounts, minlength=number)[is_scored] / count[is_scored]
            values[is_scored] = (share > _RIGHT).astype(np.float64) if rules.combine == "majority" else share
        return values
