"""Turns that were asked without any history, where the window had no room for it or nothing was said before.

Owns when a turn is one, and when a conversation is no multi-turn test for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .traces import Turn

# Above this share of its turns.
WITHOUT_HISTORY_MOST = 1 / 3


def turns_without_history(turns: Sequence[Turn]) -> int:
    """Turns behind the first to which no earlier question and answer was shown."""
    found = said = 0
    for at, turn in enumerate(turns):
        found += at > 0 and said <= turn.forgotten
        said += turn.is_in_history
    return found


def is_multi_turn(turns: Sequence[Turn]) -> bool:
    return turns_without_history(turns) <= WITHOUT_HISTORY_MOST * len(turns)
