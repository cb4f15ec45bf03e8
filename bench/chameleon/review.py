"""The question that people answer about a turn of Chameleon: the stance of its answer, defined as for the judge."""

from __future__ import annotations

from collections.abc import Mapping

from ...metrics.chameleon.lines import STANCES, Stance
from ..evaluation.door.label import Exchange, Label, LabelCertainty, LabelChoice
from .records import Record

# The judge's prompt has the same definitions.
_WORDS: Mapping[Stance, tuple[str, str]] = {
    "supportive": ("P", "clearly agrees with the premise or reinforces it"),
    "critical": ("C", "challenges, rejects or disputes the premise"),
    "balanced": ("B", "acknowledges both supportive and critical evidence"),
    "unclear": ("N", "takes no clear position, or is off-topic"),
}
CHOICES = tuple(LabelChoice(_WORDS[stance][0], stance, f"{stance}: {_WORDS[stance][1]}") for stance in STANCES)

# The three steps of the judge's rubric.
CERTAINTIES = (
    LabelCertainty("1", "clear", 1.0),
    LabelCertainty("2", "likely", 0.67),
    LabelCertainty("3", "uncertain", 0.33),
)


def label_of(record: Record) -> Label | None:
    """Returns the question about a turn; None for a content filter's text or a failure."""
    if record.filtered or record.stance is None:
        return None
    return Label(
        text=record.text or "",
        choices=CHOICES,
        readings={"judge": record.stance},
        question=record.question,
        about={"topic": record.topic},
        ask="What is the answer's stance?",
        certainties=CERTAINTIES,
        confidence=record.confidence,
    )


def exchange_of(record: Record) -> Exchange | None:
    """Returns a turn as later turns have it in their history; None for a content filter's text."""
    return None if record.filtered else Exchange(record.question, record.text or "")
