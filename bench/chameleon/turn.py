"""Builds a turn's record: that of its retrieval gets the answer, then the judgement.

Owns which call's figures are in which field, and which fields follow from others. Pure; knows no order of turns.
"""

from __future__ import annotations

import base64

from msgspec import UNSET, structs

from ...engine.call import Outcome
from ...metrics.chameleon.rubric import confidence_of
from .citations import Citations, cited_in
from .context import AnswerPrompt, PromptCuts
from .judge import JUDGED, JudgeResult
from .records import Record
from .retrieval import TurnRetrieval


def answered(retrieval: TurnRetrieval, prompt: AnswerPrompt, forgotten: int, outcome: Outcome) -> Record:
    """Returns the record of an answered turn, without its judgement and its costs. `prompt` was shown to the model, and
    omits so many earlier turns."""
    reply = outcome.reply
    assert reply is not None
    numbers = {source.number for source in prompt.sources}
    cut = PromptCuts(
        pages=tuple(number for number in retrieval.cut if number in numbers),
        dropped=tuple(source.number for source in retrieval.sources if source.number not in numbers),
        history=forgotten,
        old_pages=prompt.old_pages,
    )
    record = structs.replace(
        retrieval.record,
        text=reply.text,
        filtered=reply.finish_reason == "content_filter",
        cut=_unless_whole(cut),
        status="refused" if reply.refused else "ok",
        truncated=reply.truncated,
        latency_ms=outcome.latency_ms,
        answer_id=reply.answer_id,
        raw_b64=base64.b64encode(reply.raw).decode() if reply.raw is not None else UNSET,
    )
    cited = citations(record)
    return structs.replace(record, cited=cited.urls, invalid_citations=cited.invalid)


def judged(record: Record, result: JudgeResult) -> Record:
    """Returns an answered turn's record with its judgement."""
    cut = structs.replace(record.cut or PromptCuts(), judge_history=result.forgotten)
    fields = {name: getattr(result.judgement, name) for name in JUDGED}
    raw = UNSET if result.raw is None else result.raw
    return structs.replace(record, **fields, raw_judgement=raw, cut=_unless_whole(cut))


def _unless_whole(cut: PromptCuts) -> PromptCuts | None:
    return None if cut == PromptCuts() else cut


def citations(record: Record) -> Citations:
    """Returns the citations, numbers or addresses, in an answer. Its prompt had all retrieved pages with a text, except
    the dropped ones."""
    dropped = () if record.cut is None else record.cut.dropped
    numbers = [number for number, one in enumerate(record.retrieved, 1) if one.has_text and number not in dropped]
    aliases = ["" if one.final_url is UNSET else one.final_url for one in record.retrieved]
    return cited_in(record.own_text, [one.url for one in record.retrieved], numbers, aliases)


def untrue_fields(record: Record) -> list[str]:
    """Returns the names of fields of an answered turn that contradict its texts: citations and confidence are computed
    again."""
    cited = citations(record)
    is_judged = record.status == "ok" and record.raw_judgement is UNSET
    derived: dict[str, object] = {
        "cited": cited.urls,
        "invalid_citations": cited.invalid,
        "confidence": confidence_of(record.rationale or "") if is_judged else None,
    }
    return [name for name, value in derived.items() if getattr(record, name) != value]
