"""Decides which conversations are scored, which are multi-turn tests, and which models are ranked.

Owns these bounds, by the rules that unreadable answers are no stability and turns without a source no diversity. A
reading changes only what a turn's sources are, and whether they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .readings import Readings
from .traces import TracedTurn

CLEAR_LEAST = 2
# Above this share of its conversations unscored a model has no rank.
UNSCORED_MOST = 0.1
# Above this share of its turns without a source a model is remarked by name.
UNCITED_MOST = 0.1
# A conversation is no multi-turn test above this share of turns without history.
WITHOUT_HISTORY_MOST = 1 / 3


def is_scored(turns: Sequence[TracedTurn], readings: Readings) -> bool:
    """Returns whether a conversation is scored: at least two turns, and at least half of them, have a clear stance, and
    at least half have a source unless these count as 0. An answer that is empty, refused or without a readable verdict
    has no stance."""
    clear = sum(turn.is_clear for turn in turns)
    return clear >= CLEAR_LEAST and 2 * lacking_turns(turns, readings) <= len(turns)


def lacking_turns(turns: Sequence[TracedTurn], readings: Readings) -> int:
    """Returns the number of turns without a clear stance, or of those without a source, whichever is more; turns
    without a source do not count if they are read as 0."""
    unclear = sum(not turn.is_clear for turn in turns)
    return max(unclear, uncited_turns(turns, readings) * (readings.uncited == "skip"))


def uncited_turns(turns: Sequence[TracedTurn], readings: Readings) -> int:
    """Returns the number of turns without a source."""
    return sum(not turn.documents(readings) for turn in turns)


def is_without_pages(turns: Sequence[TracedTurn]) -> bool:
    """Returns whether no page had a text in any of these turns; False if that is unknown or there are no turns."""
    return bool(turns) and all(turn.pages == 0 for turn in turns)


def is_mostly(lacking: int, turns: int) -> bool:
    """Returns whether half of all turns, or more, lack a clear stance or a source."""
    return turns > 0 and 2 * lacking >= turns


def is_rankable(scored: int, whole: int) -> bool:
    """Returns whether a model has a rank: at least one of its `whole` conversations is scored, and at most
    UNSCORED_MOST of them are not."""
    return scored > 0 and whole - scored <= UNSCORED_MOST * whole


def turns_without_history(turns: Sequence[TracedTurn]) -> int:
    """Returns the number of turns after the first whose prompt showed no earlier question and answer."""
    number = in_history = 0
    for at, turn in enumerate(turns):
        number += at > 0 and in_history <= turn.forgotten
        in_history += turn.is_in_history
    return number


def is_multi_turn(turns: Sequence[TracedTurn]) -> bool:
    return turns_without_history(turns) <= WITHOUT_HISTORY_MOST * len(turns)
