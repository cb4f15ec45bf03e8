"""A load test as it was asked for, checked to the end: what `execution` carries out.

Owns the struct alone. How options become one: arguments and inputs; what is measured of it: the bench's load room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...bench.load.arrivals import Process
from ...bench.load.goal import Goal, Search
from ...bench.load.plan import Plan
from ...engine.call import Call
from ...wiring import Settings

Source = Callable[[str, int], Iterator[Call]]
"""The calls of a model, enough of them: for the second step of a search others than for the first. Their lengths and
their order depend on the seed, the model and the step alone; how they begin, and their trials, are new every time."""


class Order(Struct, frozen=True, kw_only=True):
    """`settings` measure, and have a lane for each model. With a `goal`, `plan` holds for each step of its `search`,
    but for the arrivals, which are of `process` and `burstiness` at the step's rate, and for its calls. `said`: the
    options by their names, for `load.json`."""

    models: tuple[str, ...]
    settings: Settings
    plan: Plan
    calls: Source
    out: Path
    process: Process = "poisson"
    burstiness: float = 1.0
    goal: Goal | None = None
    goal_text: str = ""
    search: Search | None = None
    said: Mapping[str, Any] = {}
    show_progress: bool = True
