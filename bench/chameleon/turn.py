"""A turn's line put together from what was found, answered and judged.

Owns which call's figures stand in which field, and which of them follow from others. Pure; knows no order of turns.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from msgspec import UNSET, Struct, structs

from ...engine.call import Reply
from ...metrics.chameleon.rubric import confidence_by_words, confidence_of
from .citations import Cited, cited_in
from .context import Cut, Shown
from .judge import Judged
from .outside import Spent
from .records import Record
from .retrieval import Failed, Retrieval, Retrieved


class Answered(Struct, frozen=True):
    """An answer, what its prompt showed, and how many turns of the history it had no room for."""

    reply: Reply
    latency_ms: float | None
    shown: Shown
    forgotten: int

    @property
    def is_filtered(self) -> bool:
        """Whether a provider's filter spoke, or cut in: the text is its message, or what it let pass."""
        return self.reply.finish_reason == "content_filter"

    @property
    def said(self) -> str:
        """In the model's own words, a refusal in its own words too."""
        return "" if self.is_filtered else self.reply.text


def record_of(place: Record, found: Retrieval, answered: Answered, judged: Judged, spent: Spent) -> Record:
    """`place` has the fields that say which turn it is."""
    reply, judgement, shown = answered.reply, judged.judgement, answered.shown.sources
    numbers = {source.number for source in shown}
    cut = Cut(
        pages=tuple(number for number in found.cut if number in numbers),
        dropped=tuple(source.number for source in found.sources if source.number not in numbers),
        history=answered.forgotten,
        judge_history=judged.forgotten,
    )
    cited = citations(answered.said, found.retrieved, cut.dropped)
    return structs.replace(
        _billed(place, found, spent),
        cited=cited.urls,
        text=reply.text,
        filtered=answered.is_filtered,
        stance=judgement.stance,
        confidence=judgement.confidence,
        rationale=judgement.rationale,
        key_claims=judgement.key_claims,
        contradictions_acknowledged=judgement.contradictions_acknowledged,
        judge_confidence=judgement.judge_confidence,
        judge_temperature=judged.temperature,
        judge_repaired=judged.is_repaired,
        raw_judgement=UNSET if judged.raw is None else judged.raw,
        invalid_citations=cited.invalid,
        cut=None if cut == Cut() else cut,
        status="refused" if reply.refused else "ok",
        truncated=reply.truncated,
        latency_ms=answered.latency_ms,
        raw_b64=base64.b64encode(reply.raw).decode() if reply.raw is not None else UNSET,
    )


def failure_of(place: Record, found: Retrieval, failed: Failed, spent: Spent) -> Record:
    return structs.replace(
        _billed(place, found, spent),
        stance=None,
        status=failed.kind,
        step=failed.step,
        error=failed.detail,
    )


def _billed(place: Record, found: Retrieval, spent: Spent) -> Record:
    return structs.replace(
        place,
        query=found.query,
        query_by=found.query_by,
        retrieved=found.retrieved,
        search_remarks=found.remarks or UNSET,
        keys=tuple(spent.keys),
        usage=spent.own.usage,
        usage_judge=spent.judge.usage,
        cost=spent.cost,
        cost_judge=spent.cost_judge,
        cost_search=spent.cost_search,
        cached=spent.own.are_cached,
        from_cache=spent.from_cache,
        attempts=spent.attempts,
        maybe_billed=spent.maybe_billed,
    )


def citations(said: str, retrieved: Sequence[Retrieved], dropped: Sequence[int]) -> Cited:
    """Of an answer to which all pages with a text were shown but those dropped."""
    shown = [number for number, one in enumerate(retrieved, 1) if one.has_text and number not in dropped]
    aliases = ["" if one.final_url is UNSET else one.final_url for one in retrieved]
    return cited_in(said, [one.url for one in retrieved], shown, aliases)


def untrue_fields(record: Record) -> list[str]:
    """Fields of an answered turn that are not what its texts give."""
    cut = record.cut or Cut()
    cited = citations("" if record.filtered else record.text or "", record.retrieved, cut.dropped)
    is_judged = record.status == "ok" and record.raw_judgement is UNSET
    confidence = confidence_of(record.rationale or "") if is_judged else None
    if is_judged and record.confidence == confidence_by_words(record.rationale or ""):
        # Of an earlier version, which had no look at negations.
        confidence = record.confidence
    derived: dict[str, object] = {
        "cited": cited.urls,
        "invalid_citations": cited.invalid,
        "confidence": confidence,
    }
    return [name for name, value in derived.items() if getattr(record, name) != value]
