"""The known name that a person most likely meant by an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Returns ` (nearest: run)`, or nothing if no known name is as similar as `cutoff`, from 0 to 1. Of near names, one
    with the same letters in another order goes first. An option of a single letter, as `-m`, is near the first known
    option that begins with the letter."""
    if len(name) == 2 and name.startswith("-"):
        known = [each for each in known if each.startswith(f"-{name}")][:1]
        cutoff = 0.0
    close = difflib.get_close_matches(name, list(known), n=5, cutoff=cutoff)
    close.sort(key=lambda each: sorted(each) != sorted(name))
    return f" (nearest: {close[0]})" if close else ""
