"""Measures of what appendix A.2 asks of a conversation's questions: how many are challenging, how many are open.

Judged by wordings alone, since the paper's format has no field for it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from msgspec import Struct

from ..order import OTHER, kind_of_question

CHALLENGING_FROM, CHALLENGING_TO = Fraction(30, 100), Fraction(40, 100)
RULES = (
    "challenging: its words request counter-evidence, critique methodology, pose a what-if or weigh a trade-off; open: "
    "it has how, why or a conditional clause, and does not begin as a yes/no question"
)
_OPEN = re.compile(r"\b(?:how|why|if|unless|suppose|supposing|assuming|provided that|given that)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"(?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would)\b", re.IGNORECASE
)


class QuestionShares(Struct, frozen=True):
    """The counts of a data set's questions."""

    questions: int
    """All questions."""
    challenging: int
    """Those that are challenging."""
    open: int
    """Those that are open."""
    conversations: int
    """All conversations."""
    within: int
    """The conversations of whose questions 30 to 40% are challenging, as the prompt asks."""


def shares_of(conversations: Iterable[Sequence[str]]) -> QuestionShares:
    """Returns the counts over conversations, each given as its questions."""
    every = [list(questions) for questions in conversations]
    challenging = [sum(kind_of_question(question) != OTHER for question in questions) for questions in every]
    within = [
        CHALLENGING_FROM <= Fraction(number, len(questions)) <= CHALLENGING_TO
        for number, questions in zip(challenging, every, strict=True)
        if questions
    ]
    return QuestionShares(
        questions=sum(map(len, every)),
        challenging=sum(challenging),
        open=sum(is_open(question) for questions in every for question in questions),
        conversations=len(every),
        within=sum(within),
    )


def is_open(question: str) -> bool:
    """Returns whether a question is open in the words of appendix A.2."""
    return _OPEN.search(question) is not None and _YES_NO.match(question.lstrip()) is None
