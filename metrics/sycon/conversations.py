"""Judged turns, gathered into conversations: which items can be measured, and why the others can't.

Owns that an item needs all five turns judged, that a turn occurs once, and when a series of conversations measured
nothing. Knows no file and no formula of a figure.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ...engine.pairs import Pair
from .figures import TURNS
from .judgement import Setting, read_judgement


class SyconSeries(NamedTuple):
    """The conversations that are averaged together: those with the same pair, setting and strategy."""

    pair: Pair
    setting: Setting
    strategy: str


class SyconTurn(Struct, frozen=True, kw_only=True):
    """One turn of a conversation, as it is recorded.

    series: which conversations it belongs to.
    item: the item's number within its setting.
    number: which turn it is, from 1 to 5.
    held: whether the stance was held; None where nothing could be judged.
    judgement: the judge's answer; None where it is unknown.
    is_assumed: whether the answer counts as not held although no judge read it.
    is_refused: whether the model or its provider refused to answer.
    is_cut: whether the answer ended at max_tokens.
    is_empty: whether the answer has no text.
    """

    series: SyconSeries
    item: int
    number: int
    held: bool | None
    judgement: str | None = None
    is_assumed: bool = False
    is_refused: bool = False
    is_cut: bool = False
    is_empty: bool = False


class TurnTally(Struct):
    """Counts of a series' turns with properties that a reader should know.

    turns: all turns.
    answers_cut: turns whose answer ended at max_tokens.
    answers_empty: turns whose answer has no text.
    refused: turns that were refused.
    unjudged: turns of which it is unknown whether the stance was held.
    assumed_not_held: unjudged turns that count as not held.
    judgements_doubtful: judge's answers with several of the requested words, or with one denied.
    judgements_unreadable: judge's answers without any of the requested words.
    """

    turns: int = 0
    answers_cut: int = 0
    answers_empty: int = 0
    refused: int = 0
    unjudged: int = 0
    assumed_not_held: int = 0
    judgements_doubtful: int = 0
    judgements_unreadable: int = 0

    def add(self, turn: SyconTurn) -> None:
        self.turns += 1
        self.answers_cut += turn.is_cut
        self.answers_empty += turn.is_empty
        self.refused += turn.is_refused
        self.unjudged += turn.held is None or turn.is_assumed
        self.assumed_not_held += turn.is_assumed
        if turn.held is not None and turn.judgement:
            clarity = read_judgement(turn.series.setting, turn.judgement).clarity
            self.judgements_doubtful += clarity == "doubtful"
            self.judgements_unreadable += clarity == "unreadable"

    @property
    def is_mostly_silent(self) -> bool:
        """Whether half of the turns or more were not judged, or not in the requested words."""
        return self.turns > 0 and 2 * (self.unjudged + self.judgements_unreadable) >= self.turns


class SeriesConversations:
    """The turns of one series: whether each was held, by item and turn, and counts of their problems (`tally`)."""

    def __init__(self) -> None:
        self.tally = TurnTally()
        self._items: dict[int, dict[int, bool | None]] = {}

    def __repr__(self) -> str:
        return f"<SeriesConversations [Items: {len(self._items)}, Turns: {self.tally.turns}]>"

    def __len__(self) -> int:
        return len(self._items)

    def add(self, turn: SyconTurn) -> None:
        """Adds a turn. Raises ValueError for a turn number that no conversation has, and for a turn that was added
        before."""
        if not 1 <= turn.number <= TURNS:
            raise ValueError(f"turn: expected a number from 1 to {TURNS}, got {turn.number}")
        turns = self._items.setdefault(turn.item, {})
        if turn.number in turns:
            raise ValueError(f"turn {turn.number} of item {turn.item} stands there twice: keep one")
        turns[turn.number] = turn.held
        self.tally.add(turn)

    def complete(self) -> dict[int, tuple[bool, ...]]:
        """Returns the items with all five turns judged, in order of their numbers, with whether each turn was held."""
        items = {}
        for item, turns in sorted(self._items.items()):
            held = tuple(is_held for number in range(1, TURNS + 1) if (is_held := turns.get(number)) is not None)
            if len(held) == TURNS:
                items[item] = held
        return items

    def unfinished(self) -> int:
        """Returns how many items lack a turn."""
        return sum(len(turns) < TURNS for turns in self._items.values())
