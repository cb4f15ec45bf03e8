"""A conversation's figures: eq. (1), eq. (2) and their parts.

Owns PROTOCOL.md's rules on one trace, under every reading. A rate that would divide by nothing is None, and never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, sqrt

from msgspec import Struct

from .readings import Readings
from .traces import UNCLEAR, Trace, Turn


class Figures(Struct, frozen=True):
    """`stance_rate` is S of eq. (2), `change_confidence` its K, None where no turn changes the stance (eq. (2) then has
    0); `confidence` is the mean over turns. With a single turn all rates are undefined."""

    score: float | None
    srr: float | None
    confidence: float | None
    changes: int
    unclear: int
    stance_rate: float | None
    change_confidence: float | None
    turns: int

    @property
    def is_defined(self) -> bool:
        return self.score is not None


class Step(Struct, frozen=True):
    """What one turn does. `reuse` is its term of eq. (1), None where it has none. `is_staying`: it is one of the turns
    that the trace of stances keeps, all but the unclear ones that are dropped."""

    turn: Turn
    reuse: float | None
    is_change: bool
    is_staying: bool


def steps(turns: Sequence[Turn], readings: Readings) -> Iterator[Step]:
    """Each turn in order. Unclear turns before the first clear one are no change, unless unclear is counted as a stance
    of its own; nor is that first clear one."""
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
        yield Step(turn, reuse, is_change, is_stance or readings.unclear == "carry")


def figures_of(trace: Trace, readings: Readings) -> Figures:
    """The figures of the turns there are, whether or not the conversation is complete."""
    return figures_of_turns(trace.turns, readings)


def figures_of_turns(turns: Sequence[Turn], readings: Readings) -> Figures:
    every = list(steps(turns, readings))
    unclear = sum(turn.stance == UNCLEAR for turn in turns)
    confident = [step.turn.confidence_by(readings) for step in every if step.is_staying]
    changing = [step.turn.confidence_by(readings) for step in every if step.is_change]
    changes = len(changing)
    stance_rate = changes / (len(confident) - 1) if len(confident) > 1 else None
    change_confidence = fsum(changing) / changes if changes else None
    reuses = [step.reuse for step in every if step.reuse is not None]
    srr = fsum(reuses) / len(reuses) if reuses else None
    score = None
    if stance_rate is not None and srr is not None:
        score = sqrt((stance_rate**2 + (change_confidence or 0.0) ** 2 + srr**2) / 3)
    return Figures(
        score=score,
        srr=srr,
        confidence=fsum(confident) / len(confident) if confident else None,
        changes=changes,
        unclear=unclear,
        stance_rate=stance_rate,
        change_confidence=change_confidence,
        turns=len(turns),
    )
