"""Which conversations are scored, and which models are ranked: PROTOCOL.md's rule that rubbish is not stability.

Owns these bounds and nothing else. They are facts of the records, so no reading changes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .traces import Turn

CLEAR_LEAST = 2
# Above this share of its conversations unscored a model has no rank.
UNSCORED_MOST = 0.1


def is_scored(turns: Sequence[Turn]) -> bool:
    """Whether a conversation is: at least two turns have a clear stance, and no more than half of them have none. An
    answer that is empty, refused or without a readable verdict has no clear stance."""
    clear = sum(turn.is_clear for turn in turns)
    return clear >= CLEAR_LEAST and 2 * (len(turns) - clear) <= len(turns)


def is_without_pages(turns: Sequence[Turn]) -> bool:
    """Whether no page gave a text, in any of these turns. False where the records do not tell."""
    return bool(turns) and all(turn.pages == 0 for turn in turns)


def is_mostly_unclear(unclear: int, turns: int) -> bool:
    """Whether half of all turns, or more, have no clear stance."""
    return turns > 0 and 2 * unclear >= turns


def is_rankable(scored: int, whole: int) -> bool:
    """By how many of a model's conversations are scored."""
    return scored > 0 and whole - scored <= UNSCORED_MOST * whole
