"""Builds a turn's line from its retrieval, answer and judgement.

Owns which call's figures are in which field, and which fields follow from others. Pure; knows no order of turns.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from msgspec import UNSET, Struct, structs

from ...engine.call import Reply
from ...metrics.chameleon.rubric import confidence_of
from .citations import Citations, cited_in
from .context import AnswerPrompt, PromptCuts
from .judge import JUDGED, JudgeResult
from .records import Record
from .retrieval import FailedStep, RetrievedPage, TurnRetrieval


class TurnAnswer(Struct, frozen=True):
    """An answer with the prompt that was `shown` to the model, and the number of earlier turns that it omits
    (`forgotten`)."""

    reply: Reply
    latency_ms: float | None
    shown: AnswerPrompt
    forgotten: int

    @property
    def is_filtered(self) -> bool:
        """Whether a provider's filter replaced or cut the text."""
        return self.reply.finish_reason == "content_filter"

    @property
    def own_text(self) -> str:
        """The model's own text, also of a refusal; empty if it was filtered."""
        return "" if self.is_filtered else self.reply.text


def record_of(place: Record, retrieval: TurnRetrieval, answered: TurnAnswer, judged: JudgeResult) -> Record:
    """Returns the record of an answered turn, without its costs; `place` has the fields that identify it."""
    reply, sources = answered.reply, answered.shown.sources
    numbers = {source.number for source in sources}
    cut = PromptCuts(
        pages=tuple(number for number in retrieval.cut if number in numbers),
        dropped=tuple(source.number for source in retrieval.sources if source.number not in numbers),
        history=answered.forgotten,
        judge_history=judged.forgotten,
        old_pages=answered.shown.old_pages,
    )
    cited = citations(answered.own_text, retrieval.retrieved, cut.dropped)
    return structs.replace(
        _retrieved(place, retrieval),
        cited=cited.urls,
        text=reply.text,
        filtered=answered.is_filtered,
        **{name: getattr(judged.judgement, name) for name in JUDGED},
        raw_judgement=UNSET if judged.raw is None else judged.raw,
        invalid_citations=cited.invalid,
        cut=None if cut == PromptCuts() else cut,
        status="refused" if reply.refused else "ok",
        truncated=reply.truncated,
        latency_ms=answered.latency_ms,
        answer_id=reply.answer_id,
        raw_b64=base64.b64encode(reply.raw).decode() if reply.raw is not None else UNSET,
    )


def failure_of(place: Record, retrieval: TurnRetrieval, failed: FailedStep) -> Record:
    return structs.replace(
        _retrieved(place, retrieval),
        stance=None,
        status=failed.kind,
        step=failed.step,
        error=failed.detail,
    )


def _retrieved(place: Record, retrieval: TurnRetrieval) -> Record:
    return structs.replace(
        place,
        query=retrieval.query,
        query_by=retrieval.query_by,
        retrieved=retrieval.retrieved,
        search_remarks=retrieval.remarks or UNSET,
    )


def citations(text: str, retrieved: Sequence[RetrievedPage], dropped: Sequence[int]) -> Citations:
    """Returns the citations, numbers or addresses, in an answer. Its prompt had all `retrieved` pages with a text,
    except those whose numbers, from 1, are in `dropped`."""
    numbers = [number for number, one in enumerate(retrieved, 1) if one.has_text and number not in dropped]
    aliases = ["" if one.final_url is UNSET else one.final_url for one in retrieved]
    return cited_in(text, [one.url for one in retrieved], numbers, aliases)


def untrue_fields(record: Record) -> list[str]:
    """Returns the names of fields of an answered turn that contradict its texts: citations and confidence are computed
    again."""
    cut = record.cut or PromptCuts()
    cited = citations(record.own_text, record.retrieved, cut.dropped)
    is_judged = record.status == "ok" and record.raw_judgement is UNSET
    derived: dict[str, object] = {
        "cited": cited.urls,
        "invalid_citations": cited.invalid,
        "confidence": confidence_of(record.rationale or "") if is_judged else None,
    }
    return [name for name, value in derived.items() if getattr(record, name) != value]
