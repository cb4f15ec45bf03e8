"""Tests marked `alone` run while every other fork waits: they measure wall time, which neighbours would stretch."""

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
    """Two files that every fork opens for itself; their contents don't matter: the door, and the room behind it."""
    door, room = (os.open(TESTS / name, os.O_RDONLY | os.O_CLOEXEC) for name in ("pytest.ini", "conftest.py"))
    return door, room


class Room:
    """The room in which all forks run their tests, as one fork enters it. Tests in a row that are marked `alone`
    keep it."""

    def __init__(self) -> None:
        self._is_kept = False

    @contextmanager
    def entered(self, item: pytest.Item, after: pytest.Item | None) -> Iterator[None]:
        """Shares the room with the tests of other forks while this one runs; a test marked `alone` has all of it, and
        leaves it to the test `after` it if that is alone, too."""
        if not item.config.option.forks:
            yield
            return
        door, room = _locks()
        if not self._is_kept:
            kind = LOCK_EX if is_alone(item) else LOCK_SH
            # A test that waits for the whole room keeps the door, so that nobody comes in before it.
            flock(door, kind)
            flock(room, kind)
            flock(door, LOCK_UN)
        self._is_kept = is_alone(item) and after is not None and is_alone(after)
        try:
            yield
        finally:
            if not self._is_kept:
                flock(room, LOCK_UN)


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None
