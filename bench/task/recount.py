"""Reads the records of a task into columns of scores, for each pair.

Owns which answers count as empty and which as without a score. Keeps no text.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import isnan

import numpy as np

from ...engine.pairs import Pair
from ...metrics.naming import row_names
from ...metrics.task.trials import GAVE_NONE, ModelAnswers, Problems
from .records import Record

_PROBLEM_CHARS_MAX = 200


def model_answers(
    records: Iterable[Record], pairs: Sequence[Pair] = (), trials: int | None = None
) -> dict[Pair, ModelAnswers]:
    """Returns the answers of every pair. `pairs`: the pairs of the run, in order; one without answers has empty
    columns. `trials`: the planned trials of each item (None: as many as the item with the most has)."""
    models = defaultdict(ModelAnswers, {pair: ModelAnswers() for pair in pairs})
    for record in records:
        _add(models[record.pair], record)
    names = row_names(models)
    for pair, model in models.items():
        seen = max(Counter(model.item).values(), default=1)
        model.name, model.trials = names[pair], trials or -(-seen // max(1, len(model.variants)))
    return models


def _add(model: ModelAnswers, record: Record) -> None:
    """Adds a record's answer as a row."""
    at = model.items.setdefault(record.item, len(model.items))
    if at == len(model.groups):
        model.groups.append(record.group or None)
    model.item.append(at)
    model.score.append(_number(record.score))
    if record.variant:
        if record.variant not in model.variants:
            model.variants.append(record.variant)
        model.variant.append(model.variants.index(record.variant))
    model.is_refused.append(record.status == "refused")
    model.is_empty.append(record.status != "refused" and record.is_empty)
    model.is_truncated.append(record.truncated)
    parts = record.scores or {}
    if parts:
        model.firsts.add(next(iter(parts)))
    for name in parts:
        if name not in model.parts:
            model.parts[name] = array("d", [np.nan] * (model.count - 1))
            model.problems[name] = Problems(model.problems[None])
            model.problems[name].add(GAVE_NONE, model.count - 1 - model.problems[None].total())
    for name, column in model.parts.items():
        column.append(_number(parts.get(name)))
    for part, column in ((None, model.score), *model.parts.items()):
        if isnan(column[-1]):
            model.problems[part].add(record.problem_of(part)[:_PROBLEM_CHARS_MAX])


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
