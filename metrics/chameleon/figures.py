"""A conversation's figures: eq. (1), eq. (2) and their parts.

Owns how one trace becomes figures, under every reading. A rate with denominator 0 is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum, sqrt

from msgspec import Struct, structs

from .lines import UNCLEAR
from .readings import Readings
from .scored import uncited_turns
from .traces import TracedTurn


class ConversationFigures(Struct, frozen=True):
    """The figures of one conversation; all None if it is unscored.

    `srr` is the source re-use rate of eq. (1), `changes` counts the turns that change the stance, `unclear` those
    without a clear one, `uncited_turns` those without a source: `srr_zero` is the rate with 0 in their place, and
    `score_zero` the score with it. `stance_rate` is S of eq. (2), `change_confidence` its K: None if no turn changes
    the stance (eq. (2) then has 0). `confidence` is the mean over the judged turns. With a single turn all rates are
    undefined.
    """

    unclear: int
    turns: int
    uncited_turns: int
    score: float | None = None
    srr: float | None = None
    confidence: float | None = None
    changes: int | None = None
    stance_rate: float | None = None
    change_confidence: float | None = None
    srr_zero: float | None = None
    score_zero: float | None = None

    @property
    def is_scored(self) -> bool:
        return self.changes is not None

    @property
    def is_defined(self) -> bool:
        return self.score is not None


class TurnFigures(Struct, frozen=True):
    """The figures of one turn. `reuse` is its term of eq. (1), from 0 to 1, None if it has none."""

    turn: TracedTurn
    reuse: float | None
    is_change: bool


def steps(turns: Sequence[TracedTurn], readings: Readings) -> Iterator[TurnFigures]:
    """Yields the figures of each turn in order. An unclear turn keeps the last clear stance. Unclear turns before the
    first clear one, and that one itself, are no change of stance."""
    earlier_documents: set[int] = set()
    last: str | None = None
    for at, turn in enumerate(turns):
        documents = turn.documents(readings)
        reuse: float | None = None
        if at and documents:
            reuse = len(documents & earlier_documents) / len(documents)
        elif at and readings.uncited == "literal":
            reuse = 0.0
        earlier_documents |= documents
        is_stance = turn.stance != UNCLEAR
        is_change = is_stance and last is not None and turn.stance != last
        last = turn.stance if is_stance else last
        yield TurnFigures(turn, reuse, is_change)


def no_figures(turns: Sequence[TracedTurn], readings: Readings) -> ConversationFigures:
    """Returns the figures of an unscored conversation: None but for its numbers of turns, of unclear ones and of those
    without a source."""
    unclear = sum(not turn.is_clear for turn in turns)
    return ConversationFigures(unclear, len(turns), uncited_turns(turns, readings))


def figures_of_turns(turns: Sequence[TracedTurn], readings: Readings) -> ConversationFigures:
    """Returns the figures of the turns that a conversation has, whether or not it is complete or scored."""
    every = list(steps(turns, readings))
    changes = sum(step.is_change for step in every)
    stance_rate = changes / (len(turns) - 1) if len(turns) > 1 else None
    change_confidence = _confidence((step for step in every if step.is_change), readings)
    reuses = [step.reuse for step in every if step.reuse is not None]
    srr = fsum(reuses) / len(reuses) if reuses else None
    # With every turn behind the first in the mean.
    srr_zero = fsum(reuses) / (len(turns) - 1) if reuses else None
    sureness = change_confidence if changes else 0.0
    return structs.replace(
        no_figures(turns, readings),
        score=_score(stance_rate, sureness, srr),
        srr=srr,
        confidence=_confidence(every, readings),
        changes=changes,
        stance_rate=stance_rate,
        change_confidence=change_confidence,
        srr_zero=srr_zero,
        score_zero=_score(stance_rate, sureness, srr_zero),
    )


def _score(stance_rate: float | None, change_confidence: float | None, srr: float | None) -> float | None:
    """Returns eq. (2); None if one of its parts is undefined."""
    if stance_rate is None or change_confidence is None or srr is None:
        return None
    return sqrt((stance_rate**2 + change_confidence**2 + srr**2) / 3)


def _confidence(some: Iterable[TurnFigures], readings: Readings) -> float | None:
    """Returns the mean confidence, from 0 to 1, of the turns that a judge read; None if there is none."""
    values = [sure for step in some if (sure := step.turn.confidence_by(readings)) is not None]
    return fsum(values) / len(values) if values else None
