"""Names of rows in scores: the one place where they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..engine.pairs import Pair


def treated_name(pair: Pair) -> str:
    return f"{pair.model} @ {pair.treatment}"


def row_names(pairs: Iterable[Pair]) -> dict[Pair, str]:
    """Returns each pair's name: the model's own if it has a single treatment here, else with it, as `M @ 0.5, low`."""
    each_once = list(dict.fromkeys(pairs))
    treatments = Counter(pair.model for pair in each_once)
    return {pair: pair.model if treatments[pair.model] == 1 else treated_name(pair) for pair in each_once}
