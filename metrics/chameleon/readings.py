"""Readings: answers to what the paper leaves open about eq. (1) and (2).

Owns the options and their defaults. Knows no record and no figure.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Sources = Literal["cited", "retrieved"]
SourcesBy = Literal["url", "hostname"]
Uncited = Literal["skip", "literal"]
Confidence = Literal["rubric", "number"]


class Readings(Struct, frozen=True, rename={"sources": "documents", "sources_by": "by", "uncited": "empty"}):
    """The choices among readings of eq. (1) and (2), named as their options; files have other names for three.

    `sources`: a turn's sources are those that its answer cites, or all that were retrieved for it. `sources_by`: two
    sources are one if their addresses are equal, or if their host names are. `uncited`: a turn without sources is left
    out of the mean of the source re-use rate, and a conversation with too many of them is unscored; or it adds 0.
    `confidence`: by the certainty words of the judge's rationale, from 0.33 to 1; or the judge's own number where it
    gave one.
    """

    sources: Sources = "cited"
    sources_by: SourcesBy = "url"
    uncited: Uncited = "skip"
    confidence: Confidence = "rubric"
