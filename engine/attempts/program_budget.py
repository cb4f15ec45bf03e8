"""The limit on an engine that has no folder: a budget beside the cache, for as long as its program lives.

A clean end removes it. What a killed program left is taken up by the next one like it, so that a program that is
restarted does not begin its limit anew. How a budget is kept: budget_file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..fault import LocalFault
from .budget_file import BudgetFile, BudgetPlace, Leftover, is_held, left_in


def program_budget(folder: Path, identity: str, limit: float, *, takes_up: bool = True) -> BudgetFile:
    """A budget of this process alone, which ends with it. One that a killed process of the same `identity` left is
    taken up, and all it may have spent counts."""
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
    """Remove what killed processes of an `identity` left, and say what it was."""
    stem = hashlib.sha256(identity.encode()).hexdigest()[:16]
    found = []
    for path in _largest_first(folder, stem):
        if not is_held(path):
            with suppress(LocalFault, OSError):
                left = left_in(path)
                path.unlink()
                if left is not None:
                    found.append(left)
    return found


def identity_of(program: str, models: Sequence[str], limit: float | None) -> str:
    """What makes two engines the same program's: its file, the models of its lanes and its limit."""
    return json.dumps([program, sorted(models), limit])


def _largest_first(folder: Path, stem: str) -> list[Path]:
    found = []
    for path in folder.glob(f"{stem}-*") if folder.is_dir() else ():
        with suppress(OSError):
            found.append((path.read_bytes(), path))
    return [path for _, path in sorted(found, reverse=True)]
