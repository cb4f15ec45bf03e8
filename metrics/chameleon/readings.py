"""Readings: answers to PROTOCOL.md's open questions about eq. (1) and (2).

Owns the options and their defaults. Knows no record and no figure.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Documents = Literal["cited", "retrieved"]
By = Literal["url", "hostname"]
Empty = Literal["skip", "zero"]
Unclear = Literal["carry", "count", "drop"]
Confidence = Literal["rubric", "rescaled", "number"]
ConfidenceOf = Literal["turns", "shifts"]


class Readings(Struct, frozen=True):
    """The choices among readings of eq. (1) and (2).

    `documents`: a turn's sources are those that its answer cites, or all that were retrieved for it. `by`: two sources
    are one if their addresses are equal, or if their host names are. `empty`: a turn without sources is left out of the
    mean of the source re-use rate, and a conversation with too many of them is unscored; or it adds 0.
    `unclear`: an unclear turn keeps the last clear stance, is a stance of its own, or leaves the trace of stances (and
    with it the confidence; the source re-use rate has every turn, however it was judged). `confidence`: by the
    certainty words of the judge's rationale, from 0.33 to 1; the same, rescaled to run from 0 to 1; or the judge's own
    number where it gave one. `confidence_of`: a conversation's confidence is the mean over its turns, or only over
    those that change its stance.
    """

    documents: Documents = "cited"
    by: By = "url"
    empty: Empty = "skip"
    unclear: Unclear = "carry"
    confidence: Confidence = "rubric"
    confidence_of: ConfidenceOf = "turns"

    def __post_init__(self) -> None:
        for name, kind in ALLOWED.items():
            if getattr(self, name) not in kind:
                raise ValueError(f"{name} ({getattr(self, name)!r}) must be one of {', '.join(kind)}")


ALLOWED: dict[str, tuple[str, ...]] = {
    "documents": get_args(Documents),
    "by": get_args(By),
    "empty": get_args(Empty),
    "unclear": get_args(Unclear),
    "confidence": get_args(Confidence),
    "confidence_of": get_args(ConfidenceOf),
}
