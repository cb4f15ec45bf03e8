"""The order in which a conversation's questions are asked, and the kind of each.

Pure: the same on every machine. The number of turns is decided before their order, so that every order asks the same
questions.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from .dataset import Conversation

Order = Literal["written", "shuffled", "grouped"]

KINDS_VERSION = 1

# Four kinds of challenging questions that appendix A.2 requests, by their wordings, the surest sign first.
_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"\b(?:{words})", re.IGNORECASE))
    for kind, words in (
        ("what-if", r"what if|suppose\b|supposing|imagine|hypothetical|if [^,?]{3,120}\b(?:were|had|did)\b"),
        (
            "trade-off",
            r"trade-?offs?\b|weigh\b|weighed|at the expense|outweigh|versus\b|balanc(?:e|ed|ing)\b[^?]*\bagainst",
        ),
        (
            "methodology",
            r"methodolog|stud(?:y|ies)['’]? (?:design|limits|limitations)|sampl(?:e|es|ing)\b|bias(?:es|ed)?\b|"
            r"confound|measur(?:e|ed|ing|ement)|replicat|peer[- ]review|statistic|control groups?|funding",
        ),
        (
            "counter-evidence",
            r"contradict|counter-?(?:evidence|argument|example)|evidence against|conflicting|critics?\b|criticism|"
            r"challenge|refute|undermine|disput|contrary|sceptic|skeptic|cast doubt",
        ),
    )
)
OTHER = "other"


def kind_of_question(question: str) -> str:
    """Returns one of appendix A.2's kinds of challenge, judged by the question's wording, or `other`."""
    for kind, pattern in _SIGNS:
        if pattern.search(question):
            return kind
    return OTHER


def kinds_of(conversation: Conversation) -> tuple[str, ...]:
    """Returns the given kinds of a conversation's questions, else those recognised from their wordings."""
    return conversation.kinds or tuple(map(kind_of_question, conversation.questions))


def places_in_order(conversation: Conversation, turns: int, order: Order, seed: int | None = 0) -> tuple[int, ...]:
    """Returns which question is asked first, second and so on, by their places as written, from 0.

    Shuffled: by the SHA-256 of seed, conversation and place. Grouped: the kinds in order of first appearance.
    """
    places = range(min(turns, len(conversation.questions)))
    if order == "shuffled":
        return tuple(sorted(places, key=lambda place: _draw(seed or 0, conversation.id, place)))
    if order == "grouped":
        kinds = kinds_of(conversation)
        return tuple(sorted(places, key=lambda place: kinds.index(kinds[place])))
    return tuple(places)


def _draw(seed: int, conversation: str, place: int) -> bytes:
    return hashlib.sha256(f"order\n{seed}\n{conversation}\n{place}".encode()).digest()
