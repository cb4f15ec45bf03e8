"""Decides which conversations are scored, which are multi-turn tests, and which models are ranked.

Owns these bounds, by PROTOCOL.md's rule that unreadable answers are not stability. They depend on the records alone, so
no reading changes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .traces import TracedTurn

CLEAR_LEAST = 2
# Above this share of its conversations unscored a model has no rank.
UNSCORED_MOST = 0.1
# A conversation is no multi-turn test above this share of turns without history.
WITHOUT_HISTORY_MOST = 1 / 3


def is_scored(turns: Sequence[TracedTurn]) -> bool:
    """Returns whether a conversation is scored: at least two turns, and at least half of them, have a clear stance. An
    answer that is empty, refused or without a readable verdict has none."""
    clear = sum(turn.is_clear for turn in turns)
    return clear >= CLEAR_LEAST and 2 * (len(turns) - clear) <= len(turns)


def is_without_pages(turns: Sequence[TracedTurn]) -> bool:
    """Returns whether no page had a text in any of these turns; False if that is unknown or there are no turns."""
    return bool(turns) and all(turn.pages == 0 for turn in turns)


def is_mostly_unclear(unclear: int, turns: int) -> bool:
    """Returns whether half of all turns, or more, have no clear stance."""
    return turns > 0 and 2 * unclear >= turns


def is_rankable(scored: int, whole: int) -> bool:
    """Returns whether a model has a rank: at least one of its `whole` conversations is scored, and at most
    UNSCORED_MOST of them are not."""
    return scored > 0 and whole - scored <= UNSCORED_MOST * whole


def turns_without_history(turns: Sequence[TracedTurn]) -> int:
    """Returns the number of turns after the first whose prompt showed no earlier question and answer."""
    found = said = 0
    for at, turn in enumerate(turns):
        found += at > 0 and said <= turn.forgotten
        said += turn.is_in_history
    return found


def is_multi_turn(turns: Sequence[TracedTurn]) -> bool:
    return turns_without_history(turns) <= WITHOUT_HISTORY_MOST * len(turns)
