"""The checked specification of a load test, which `execution` carries out.

Owns the struct alone; `spec_from_options` builds it from options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...engine.call import Call
from ...wiring import Settings
from .goal import Search
from .plan import LoadPlan

CallSource = Callable[[str, int], Iterator[Call]]
"""Yields enough calls for a model and a step of the search, numbered from 0. Lengths and order depend on the seed, the
model and the step alone; first words and trial numbers are new every time."""


class LoadSpec(Struct, frozen=True, kw_only=True):
    """The specification of one run of all models at once, or of a search for each model's highest rate that keeps a
    goal."""

    models: tuple[str, ...]
    """The models, each of which has a lane of its own."""
    settings: Settings
    """Settings of an engine that measures: no retries, and answers are neither stored nor taken from a cache."""
    plan: LoadPlan
    """The plan of the run or, in a search, of each step except for its rate and number of calls."""
    calls: CallSource
    """Yields the calls."""
    out: Path
    """The folder of the test."""
    search: Search | None = None
    """The goal that the highest rate must keep, and the range of rates that are searched; None: no search."""
    cluster: str | None = None
    """The Ray cluster whose workers send the calls, or `local`; None: this process does."""
    workers: int | None = None
    """How many workers; None: one for each core of the cluster."""
    said: Mapping[str, Any] = {}
    """The options by name, for `load.json`."""
    notes: tuple[str, ...] = ()
    """What the user should read before the test begins."""
