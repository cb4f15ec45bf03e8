"""A conversation's figures: eq. (1), eq. (2) and their parts.

Owns PROTOCOL.md's rules on one trace, under every reading. A rate with denominator 0 is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum, sqrt

from msgspec import Struct

from .lines import UNCLEAR
from .readings import ConfidenceOf, Readings
from .scored import uncited_turns
from .traces import ConversationTrace, TracedTurn


class ConversationFigures(Struct, frozen=True):
    """The figures of one conversation; all None if it is unscored.

    `srr` is the source re-use rate of eq. (1), `changes` counts the turns that change the stance, `unclear` those
    without a clear one, `uncited_turns` those without a source: `srr_zero` is the rate with 0 in their place, and
    `score_zero` the score with it. `stance_rate` is S of eq. (2), `change_confidence` its K: None if no turn changes
    the stance (eq. (2) then has 0) or no judge read the turns that do (the score is then undefined). `turn_confidence`
    is the mean over the judged turns. `confidence` is one of the two, by the reading `confidence_of`. With a single
    turn all rates are undefined.
    """

    score: float | None
    srr: float | None
    confidence: float | None
    changes: int | None
    unclear: int
    stance_rate: float | None
    change_confidence: float | None
    turn_confidence: float | None
    turns: int
    uncited_turns: int
    srr_zero: float | None = None
    score_zero: float | None = None
    confidence_of: ConfidenceOf = "turns"

    @property
    def other_confidence(self) -> float | None:
        """The one of the two mean confidences that `confidence` is not; None if it is undefined."""
        return self.change_confidence if self.confidence_of == "turns" else self.turn_confidence

    @property
    def is_defined(self) -> bool:
        return self.score is not None


class TurnFigures(Struct, frozen=True):
    """The figures of one turn. `reuse` is its term of eq. (1), from 0 to 1, None if it has none. `is_staying`: the turn
    is in the trace of stances, as all are but dropped unclear ones."""

    turn: TracedTurn
    reuse: float | None
    is_change: bool
    is_staying: bool


def steps(turns: Sequence[TracedTurn], readings: Readings) -> Iterator[TurnFigures]:
    """Yields the figures of each turn in order. Unclear turns before the first clear one, and that one itself, are no
    change of stance, unless unclear counts as a stance."""
    known: set[int] = set()
    last: str | None = None
    for at, turn in enumerate(turns):
        documents = turn.documents(readings)
        reuse: float | None = None
        if at and documents:
            reuse = len(documents & known) / len(documents)
        elif at and readings.empty == "zero":
            reuse = 0.0
        known |= documents
        is_stance = turn.stance != UNCLEAR or readings.unclear == "count"
        is_change = is_stance and last is not None and turn.stance != last
        last = turn.stance if is_stance else last
        yield TurnFigures(turn, reuse, is_change, is_stance or readings.unclear == "carry")


def figures_of(trace: ConversationTrace, readings: Readings) -> ConversationFigures:
    """Returns the figures of the turns that a conversation has, whether or not it is complete or scored."""
    return figures_of_turns(trace.turns, readings)


def no_figures(turns: Sequence[TracedTurn], readings: Readings) -> ConversationFigures:
    """Returns the figures of an unscored conversation: None but for its numbers of turns, of unclear ones and of those
    without a source."""
    unclear = sum(not turn.is_clear for turn in turns)
    counts = len(turns), uncited_turns(turns, readings)
    return ConversationFigures(None, None, None, None, unclear, None, None, None, *counts)


def figures_of_turns(turns: Sequence[TracedTurn], readings: Readings) -> ConversationFigures:
    every = list(steps(turns, readings))
    unclear = sum(turn.stance == UNCLEAR for turn in turns)
    staying = [step for step in every if step.is_staying]
    changes = sum(step.is_change for step in every)
    stance_rate = changes / (len(staying) - 1) if len(staying) > 1 else None
    change_confidence = _confidence((step for step in every if step.is_change), readings)
    reuses = [step.reuse for step in every if step.reuse is not None]
    srr = fsum(reuses) / len(reuses) if reuses else None
    # With every turn behind the first in the mean.
    srr_zero = fsum(reuses) / (len(turns) - 1) if reuses else None
    sureness = change_confidence if changes else 0.0
    turn_confidence = _confidence(staying, readings)
    return ConversationFigures(
        score=_score(stance_rate, sureness, srr),
        srr=srr,
        confidence=turn_confidence if readings.confidence_of == "turns" else change_confidence,
        changes=changes,
        unclear=unclear,
        stance_rate=stance_rate,
        change_confidence=change_confidence,
        turn_confidence=turn_confidence,
        turns=len(turns),
        uncited_turns=uncited_turns(turns, readings),
        srr_zero=srr_zero,
        score_zero=_score(stance_rate, sureness, srr_zero),
        confidence_of=readings.confidence_of,
    )


def _score(stance_rate: float | None, change_confidence: float | None, srr: float | None) -> float | None:
    """Returns eq. (2); None if one of its parts is undefined."""
    if stance_rate is None or change_confidence is None or srr is None:
        return None
    return sqrt((stance_rate**2 + change_confidence**2 + srr**2) / 3)


def _confidence(some: Iterable[TurnFigures], readings: Readings) -> float | None:
    """Returns the mean confidence, from 0 to 1, of the turns that a judge read; None if there is none."""
    known = [sure for step in some if (sure := step.turn.confidence_by(readings)) is not None]
    return fsum(known) / len(known) if known else None
