"""What is decided of a run before its specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ....engine.runs.pairs import Pair
from ....wiring import Settings
from .item_set import ItemSet


class RunBasis(Struct, frozen=True, kw_only=True):
    """What is decided of a run before its specification."""

    options: Any
    """The benchmark's options, settled."""
    readings: Any
    """The readings of the run's own scores."""
    limits: Mapping[Pair, int | None]
    """The models under test and their treatments, with the max_tokens of their calls; None: none is sent."""
    items: ItemSet
    """The items."""
    settings: Settings
    """The settings by which calls are sent."""
    endpoints: Mapping[str, str]
    """The address of each lane, as in the cache keys of its calls."""
    out: Path
    """The run's folder. What a run has begun with there stays, whatever the table of models says by now."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The models under test and their treatments."""
        return tuple(self.limits)
