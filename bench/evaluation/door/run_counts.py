"""What a run's journals hold: how its items ended, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ....engine.pairs import Pair, PairCounts
from ....metrics.naming import treated_name
from .served_rows import ONE_ROW_EACH, ServedRows


class RunCounts(Struct, frozen=True):
    """What a run's journals hold: how each pair's items ended, and the scores. `remarks` are a benchmark's own
    sentences, `details` the same for programs; `rows` are those of its scores; `judges`: the dollars of judging each
    pair's answers, a part of its cost.

    `unmeasured` has a sentence with the reason for each thing that could not be measured, such as a model without
    answers. If there is one, the exit code is 3, or 4 while work is pending.
    """

    ended: Mapping[Pair, PairCounts]
    scores: dict[str, Any]
    remarks: tuple[str, ...] = ()
    details: Mapping[str, Any] = MappingProxyType({})
    unmeasured: tuple[str, ...] = ()
    rows: ServedRows = ONE_ROW_EACH
    judges: Mapping[Pair, float] = MappingProxyType({})

    def of(self, pair: Pair) -> PairCounts:
        return self.ended.get(pair) or PairCounts()


def entry_of(scores: Mapping[str, Any], pair: Pair) -> Mapping[str, Any]:
    """Returns a pair's scores, empty if it has none. A model with a single treatment has an entry under its
    name alone; under that name there may also be an entry for each treatment."""
    models = scores["models"]
    entry: Mapping[str, Any] = models.get(treated_name(pair)) or models.get(pair.model) or {}
    nested = entry.get(pair.treatment)
    return nested if isinstance(nested, Mapping) else entry
