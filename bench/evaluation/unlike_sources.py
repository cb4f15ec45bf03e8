"""The remark of `score` on runs that are in one table but were not made in the same way.

Their scores are computed and ranked separately, so nothing has to be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .benchmark import Benchmark


def unlike(scored: Mapping[str, tuple[Benchmark, Mapping[str, Any]]], given: Mapping[str, Any]) -> str:
    """Returns a sentence on how the sources differ; empty if they are alike. `given`: the scores' readings."""
    manners = {
        source: {
            "benchmark": benchmark.title,
            **benchmark.manner(Path(source), scores, given),
        }
        for source, (benchmark, scores) in scored.items()
    }
    told = []
    for what in dict.fromkeys(what for own in manners.values() for what in own):
        values: dict[str, list[str]] = {}
        for source, own in manners.items():
            values.setdefault(own.get(what, "not known"), []).append(source)
        if len(values) > 1:
            shown = "; ".join(f"{value} in {', '.join(own)}" for value, own in values.items())
            told.append(f"{what} ({shown})")
    return f"these are no comparison, since they were not made alike: they differ in {', '.join(told)}" if told else ""
