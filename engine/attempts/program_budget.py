"""The budget of an engine that has no run folder: a file beside the cache that lives as long as its program.

A clean end removes it. What a killed program left is continued by the next program of the same identity, so that a
restart does not begin the limit anew. How a budget is kept: budget_file.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from ..fault import LocalFault
from .budget_file import BudgetFile, BudgetPlace, Leftover, is_held, left_in


def program_budget(folder: Path, identity: str, limit: float, *, takes_up: bool = True) -> BudgetFile:
    """Returns a budget of `limit` dollars for this process alone, which ends with it. With `takes_up` it continues the
    file that a killed process of the same `identity` left, and all that this may have spent counts."""
    stem = hashlib.sha256(identity.encode()).hexdigest()[:16]
    for path in _largest_first(folder, stem) if takes_up else ():
        try:
            taken = BudgetFile(BudgetPlace(path), limit, ends=True)
        except LocalFault:
            if is_held(path):
                continue
            raise
        left = left_in(path)
        if left is None or not taken.is_in_place:
            taken.close(is_finished=False)  # its owner ended a moment ago
            continue
        taken.leftover = left
        return taken
    name = f"{stem}-{time.time_ns():x}-{os.getpid()}"
    return BudgetFile(BudgetPlace(folder / name), limit, ends=True)


def forget_leftovers(folder: Path, identity: str) -> list[Leftover]:
    """Removes the budget files that killed processes of an `identity` left, and returns what they held."""
    stem = hashlib.sha256(identity.encode()).hexdigest()[:16]
    leftovers = []
    for path in _largest_first(folder, stem):
        if not is_held(path):
            with suppress(LocalFault, OSError):
                left = left_in(path)
                path.unlink()
                if left is not None:
                    leftovers.append(left)
    return leftovers


def _largest_first(folder: Path, stem: str) -> list[Path]:
    files = []
    for path in folder.glob(f"{stem}-*") if folder.is_dir() else ():
        with suppress(OSError):
            files.append((path.read_bytes(), path))
    return [path for _, path in sorted(files, reverse=True)]
