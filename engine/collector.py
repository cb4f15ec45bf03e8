"""Makes Python's cyclic garbage collector run seldom while a program of our own runs calls.

Outcomes hold no cycles and are freed by reference count, so that searching for cycles costs a tenth of a run for
nothing. A program that embeds the engine keeps its own settings: nothing in the engine calls this.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# With ten times as many young objects a collection takes up to 70 ms, during which the loop stands still; with this
# number no run is measurably slower.
YOUNG_MAX = 5_000
# A process that froze its modules has many times as many frozen objects; Python 3.12 itself starts with a few hundred.
_FROZEN_BY_PYTHON_MAX = 10_000


@contextmanager
def calm_collector(young_max: int = YOUNG_MAX) -> Iterator[None]:
    """Exempts all objects that exist now from garbage collection, and makes collections rarer, until the block ends:
    one for `young_max` new objects; 0: none at all. Objects that the process had frozen itself stay exempt."""
    before = gc.get_threshold()
    has_frozen = gc.get_freeze_count() > _FROZEN_BY_PYTHON_MAX
    if not has_frozen:
        gc.freeze()
    gc.set_threshold(young_max, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not has_frozen:
            gc.unfreeze()
