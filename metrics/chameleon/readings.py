"""Readings: answers to PROTOCOL.md's open questions about eq. (1) and (2).

Owns the options and their defaults. Knows no record and no figure.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Documents = Literal["cited", "retrieved"]
By = Literal["url", "hostname"]
Empty = Literal["skip", "literal"]
Confidence = Literal["rubric", "number"]


class Readings(Struct, frozen=True):
    """The choices among readings of eq. (1) and (2).

    `documents`: a turn's sources are those that its answer cites, or all that were retrieved for it. `by`: two sources
    are one if their addresses are equal, or if their host names are. `empty`: a turn without sources is left out of the
    mean of the source re-use rate, and a conversation with too many of them is unscored; or it adds 0. `confidence`: by
    the certainty words of the judge's rationale, from 0.33 to 1; or the judge's own number where it gave one.
    """

    documents: Documents = "cited"
    by: By = "url"
    empty: Empty = "skip"
    confidence: Confidence = "rubric"
