"""Combines the trials of an item into one figure.

Owns how trials combine and when an item or a model has no score. Pure functions over numpy; knows no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Combine = Literal["mean", "majority", "any"]
Unreadable = Literal["skip", "zero"]

Values = NDArray[np.float64]
Places = NDArray[np.int64]

FUNCTION_RAISED = "the score function raised"
"""How the problem of an answer begins whose score function raised an error."""
_RIGHT = 0.5


@dataclass(frozen=True)
class TaskAnswers:
    """The answers of one model at one temperature, a row each.

    items: the ids of the items, each once.
    item: the place in `items` of each answer's item.
    score: each answer's score; NaN where it has none.
    trials: how many answers each item was to get.
    """

    items: tuple[str, ...]
    item: Places
    score: Values
    trials: int


def figures(answers: TaskAnswers, combine: Combine = "mean", unreadable: Unreadable = "skip") -> Values:
    """Returns the figure of each item; NaN where fewer than half of its trials have a score.

    `mean`: the mean of its trials' scores. `majority`: 1 where more than half of them score at least 0.5, else 0.
    `any`: the best of them. Answers without a score are left out, or count as 0 if `unreadable` is `zero`.
    """
    number = len(answers.items)
    score, item = answers.score, answers.item
    if unreadable == "zero":
        score = np.nan_to_num(score, nan=0.0)
    else:
        has_score = ~np.isnan(score)
        score, item = score[has_score], item[has_score]
    count = np.bincount(item, minlength=number)
    values: Values = np.full(number, np.nan)
    is_scored = (count > 0) & (2 * count >= answers.trials)
    if combine == "any":
        best = np.full(number, -np.inf)
        np.maximum.at(best, item, score)
        values[is_scored] = best[is_scored]
    else:
        amounts = (score >= _RIGHT).astype(np.float64) if combine == "majority" else score
        share = np.bincount(item, amounts, minlength=number)[is_scored] / count[is_scored]
        values[is_scored] = (share > _RIGHT).astype(np.float64) if combine == "majority" else share
    return values


def measured_nothing(answers: int, without_score: int) -> bool:
    """Returns whether half of a model's answers or more are empty or cannot be read."""
    return answers > 0 and 2 * without_score >= answers
