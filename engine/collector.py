"""Python's cyclic garbage collector, set for a process that makes very many short-lived objects.

For programs of our own: an embedding program's collector is its own business.
"""

from __future__ import annotations

import gc

# Outcomes die by reference count; the collector only walks what lives on. Rarer walks find the same garbage.
YOUNG_MAX = 50_000


def calm_collector() -> None:
    """Leave alone what the program has loaded, and look at the rest seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, 20, 50)
