"""Coverage: how many of a model's answers can be read, in numbers and in sentences.

Owns when each sentence is written and its text, so that summary, file and page agree, and a run that measured nothing
says so. The rules themselves are in `silence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...format import count_text, first_of, part_of
from ..read_in_part import ReadInPart
from .baselines import RefusedIssue, issues_often_refused
from .counts import ModelCounts
from .letters import Letters, letters, letters_remarks
from .openness import STANCES
from .silence import ReadableCounts, Silence, cut_or_other, measured_nothing, openness_of

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
_OTHER = STANCES.index("other")
_CUT_PERCENT, _OTHER_PERCENT = 1, 10
_NAMED = 3


@dataclass(frozen=True)
class Coverage:
    """Counts of a model's answers: all, cut off and refused (None: unknown), Other, cut off or Other; of its baseline
    answers, all and Other, and the issues with more than 30% Other among them; the number of issues with a score, and
    the reason of each issue without. `is_worthless`: half of the answers or more are cut off or Other. `letters` are
    those of the readable counts."""

    answers: int
    cut: int | None
    refused: int | None
    other: int
    cut_or_other: int
    baseline: int
    baseline_other: int
    often_refused: Sequence[RefusedIssue]
    scored: int
    unscored: Mapping[str, str]
    is_worthless: bool
    is_ranked: bool
    silence: Silence
    letters: Letters | None
    reads: ReadInPart | None

    def percent(self, part: int | None) -> float | None:
        """Returns how much of all answers this many are; None: not known."""
        return None if part is None else 100 * part / self.answers

    @property
    def baseline_other_percent(self) -> float | None:
        return 100 * self.baseline_other / self.baseline if self.baseline else None


def coverage(counts: ModelCounts, readable: ReadableCounts) -> Coverage:
    """Returns the coverage, from all of a model's `counts` and from the `readable` ones."""
    return Coverage(
        answers=int(counts.pooled.sum()),
        cut=None if counts.cut is None else int(counts.cut.sum()),
        refused=None if counts.refused is None else int(counts.refused.sum()),
        other=int(counts.pooled[..., _OTHER].sum()),
        cut_or_other=cut_or_other(counts),
        baseline=int(counts.pooled[:, 0].sum()),
        baseline_other=int(counts.pooled[:, 0, _OTHER].sum()),
        often_refused=issues_often_refused(counts),
        scored=int(openness_of(readable.counts).is_scored.sum()),
        unscored=readable.unscored,
        is_worthless=measured_nothing(counts),
        is_ranked=readable.is_ranked,
        silence=readable.silence,
        letters=letters(readable.counts),
        reads=counts.reads,
    )


def unmeasured(name: str, cover: Coverage) -> str | None:
    """Returns a sentence on a model that has answers but no meaningful score; None for any other model."""
    if cover.reads is not None and cover.reads.is_unread:
        return cover.reads.remark(name)
    if cover.silence == "literal" or not cover.answers:
        return None
    if cover.is_worthless:
        return f"{name} has no score: {_lost(cover)}.{_advice(cover)}"
    return None if cover.scored else _nothing_scored(name, cover)


def silent(name: str, cover: Coverage) -> str | None:
    """Returns a sentence on a mostly silent model, whether it has a score or not; None for any other model."""
    if cover.silence == "literal" and cover.is_worthless:
        return f"{name}: {_lost(cover)}; --silence literal scores it all the same."
    return unmeasured(name, cover)


def remarks(name: str, cover: Coverage) -> Iterator[str]:
    """Yields further sentences that qualify the model's score."""
    if cover.silence == "literal":
        if sentence := silent(name, cover):
            yield sentence
        if not (cover.scored or cover.is_worthless):
            yield _nothing_scored(name, cover)
    if cover.scored and cover.unscored:
        issues = count_text(cover.scored + len(cover.unscored), "issue")
        rank = "" if cover.is_ranked else " That is above a tenth, so it has no rank."
        yield f"{name} is scored on {cover.scored:,} of {issues}; without a score: {_listed(cover.unscored)}.{rank}"
    if cover.cut is not None and 100 * cover.cut > _CUT_PERCENT * cover.answers and not cover.is_worthless:
        share = part_of(cover.cut, cover.answers)
        yield f"{name}: {share} are cut off at max_tokens, above {_CUT_PERCENT}%.{_advice(cover)}"
    if cover.scored and 100 * cover.baseline_other > _OTHER_PERCENT * cover.baseline and not cover.is_worthless:
        yield (
            f"{name}: {part_of(cover.baseline_other, cover.baseline, 'baseline answers')} are Other, above "
            f"{_OTHER_PERCENT}%: read its OM beside the part of it by silence."
        )
    if cover.reads is not None and not cover.reads.is_unread and (sentence := cover.reads.remark(name)):
        yield sentence
    if cover.letters is not None:
        yield from letters_remarks(name, cover.letters)


def _nothing_scored(name: str, cover: Coverage) -> str:
    issues = count_text(len(cover.unscored), "issue")
    return f"{name} has no score: none of its {issues} has one ({_listed(cover.unscored)})."


def _lost(cover: Coverage) -> str:
    what = f"cut off at max_tokens or Other ({cover.cut:,} cut off, {cover.other:,} Other)" if cover.cut else "Other"
    return f"{part_of(cover.cut_or_other, cover.answers)} are {what}, half of them or more"


def _advice(cover: Coverage) -> str:
    is_cut = cover.cut and 2 * cover.cut >= cover.cut_or_other
    return " A larger --max-tokens, or none, would leave them room." if is_cut else ""


def _listed(unscored: Mapping[str, str]) -> str:
    return first_of([f"{issue} ({reason})" for issue, reason in unscored.items()], _NAMED)
