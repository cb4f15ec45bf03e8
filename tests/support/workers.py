"""Tests marked `alone` run while every other worker waits: they measure wall time, which neighbours would stretch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


@cache
def _locks() -> tuple[int, int]:
    """Two files that every worker finds; their contents don't matter: the door, and the room behind it."""
    door, room = (os.open(TESTS / name, os.O_RDONLY | os.O_CLOEXEC) for name in ("pytest.ini", "conftest.py"))
    return door, room


@contextmanager
def place_among_workers(item: pytest.Item) -> Iterator[None]:
    """Share the room with the tests of other workers while this one runs; a test marked `alone` has all of it."""
    if not hasattr(item.config, "workerinput"):
        yield
        return
    door, room = _locks()
    kind = LOCK_EX if item.get_closest_marker("alone") else LOCK_SH
    # A test that waits for the whole room keeps the door, so that nobody comes in before it.
    flock(door, kind)
    flock(room, kind)
    flock(door, LOCK_UN)
    try:
        yield
    finally:
        flock(room, LOCK_UN)
