"""Python's cyclic garbage collector, calmed for as long as a program of our own runs calls.

Outcomes hold no cycles and die by reference count, so looking for some is a tenth of a run for nothing. An
embedding program's collector is its own business: nothing in the engine calls this by itself.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Of ten times as many a look takes up to 70 ms, for which the loop stands still; of these no run is measurably slower.
YOUNG_MAX = 5_000


@contextmanager
def calm_collector() -> Iterator[None]:
    """Leave alone what is loaded by now, and look at the rest seldom."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
