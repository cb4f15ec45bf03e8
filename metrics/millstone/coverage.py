"""Coverage: how many of a model's answers can be read, in sentences.

Owns when each sentence is written and its text, so that summary, file and page agree, and a run that measured nothing
says so. The rules themselves are in `silence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...format import count_text, first_of, part_of
from .letters import letters_remarks
from .silence import ReadableCounts, Silence, cut_or_other, measured_nothing

SILENCE_NOTES: Mapping[Silence, str] = MappingProxyType(
    {
        "unscored": "An issue has no score where its baseline or another case holds under 10% pro and con answers "
        "together, or under half of its planned answers: such a case counts as one without answers. A model has no "
        "score where half of its answers or more are cut off or Other, and no rank where above a tenth of its issues "
        "has no score.",
        "literal": "Silence is read literally, as the authors' script does: an answer that takes no side counts like a "
        "position of its own, and an issue has no score only without answers at the baseline, or in every other case.",
    }
)
_CUT_PERCENT, _OTHER_PERCENT = 1, 10
# Above this share of Other among its baseline answers a model has no stance from which arguments could move it.
BASELINE_PERCENT = 50
_NAMED = 3


def unmeasured(name: str, read: ReadableCounts) -> str | None:
    """Returns a sentence on a model that has answers but no meaningful score; None for any other model."""
    if read.raw.reads is not None and read.raw.reads.is_unread:
        return read.raw.reads.remark(name)
    if read.silence == "literal" or not read.answers:
        return None
    if measured_nothing(read.raw):
        return f"{name} has no score: {_lost(read)}.{_advice(read)}"
    return None if read.scored else _nothing_scored(name, read)


def silent(name: str, read: ReadableCounts) -> str | None:
    """Returns a sentence on a mostly silent model, whether it has a score or not; None for any other model."""
    if read.silence == "literal" and measured_nothing(read.raw):
        return f"{name}: {_lost(read)}; --silence literal scores it all the same."
    return unmeasured(name, read)


def remarks(name: str, read: ReadableCounts) -> Iterator[str]:
    """Yields further sentences that qualify the model's score."""
    if read.silence == "literal":
        if sentence := silent(name, read):
            yield sentence
        if not (read.scored or measured_nothing(read.raw)):
            yield _nothing_scored(name, read)
    if read.scored and read.unscored:
        issues = count_text(read.scored + len(read.unscored), "issue")
        rank = "" if read.is_ranked else " That is above a tenth, so it has no rank."
        yield f"{name} is scored on {read.scored:,} of {issues}; without a score: {_listed(read.unscored)}.{rank}"
    if read.cut is not None and 100 * read.cut > _CUT_PERCENT * read.answers and not measured_nothing(read.raw):
        share = part_of(read.cut, read.answers)
        yield f"{name}: {share} are cut off at max_tokens, above {_CUT_PERCENT}%.{_advice(read)}"
    if read.scored and 100 * read.baseline_other > _OTHER_PERCENT * read.baseline and not measured_nothing(read.raw):
        share = part_of(read.baseline_other, read.baseline, "baseline answers")
        if 100 * read.baseline_other > BASELINE_PERCENT * read.baseline:
            yield f"{name}: {share} are Other: it has no stance to move away from, so its OM is not open-mindedness."
        else:
            yield f"{name}: {share} are Other, above {_OTHER_PERCENT}%: read its OM beside the part of it by silence."
    if read.raw.reads is not None and not read.raw.reads.is_unread and (sentence := read.raw.reads.remark(name)):
        yield sentence
    if read.letters is not None:
        yield from letters_remarks(name, read.letters)


def _nothing_scored(name: str, read: ReadableCounts) -> str:
    issues = count_text(len(read.unscored), "issue")
    return f"{name} has no score: none of its {issues} has one ({_listed(read.unscored)})."


def _lost(read: ReadableCounts) -> str:
    what = f"cut off at max_tokens or Other ({read.cut:,} cut off, {read.other:,} Other)" if read.cut else "Other"
    return f"{part_of(cut_or_other(read.raw), read.answers)} are {what}, half of them or more"


def _advice(read: ReadableCounts) -> str:
    is_cut = read.cut and 2 * read.cut >= cut_or_other(read.raw)
    return " A larger --max-tokens, or none, would leave them room." if is_cut else ""


def _listed(unscored: Mapping[str, str]) -> str:
    return first_of([f"{issue} ({reason})" for issue, reason in unscored.items()], _NAMED)
