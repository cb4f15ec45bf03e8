"""Coverage: how many of a model's answers can be read, in numbers, and what must be said of it, in sentences.

Owns when each sentence is due (PROTOCOL.md, "A run that measured nothing says so") and its words, so that summary, file
and page say the same. The rules themselves stand in `silence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .counts import ModelCounts
from .millstone import STANCES
from .silence import Heard, Silence, cut_or_other, measured_nothing, openness_of

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
    """A model's answers, and how many of them were cut off (None: unknown), are Other, or are one of the two or both;
    the same of the baseline; how many issues have a score, and why the others have none. `is_worthless`: half of the
    answers or more are cut off or Other."""

    answers: int
    cut: int | None
    other: int
    cut_or_other: int
    baseline: int
    baseline_other: int
    scored: int
    unscored: Mapping[str, str]
    is_worthless: bool
    is_ranked: bool
    silence: Silence


def coverage(counts: ModelCounts, found: Heard) -> Coverage:
    """`counts` are all of a model's answers, `found` what of them can be read."""
    return Coverage(
        answers=int(counts.pooled.sum()),
        cut=None if counts.cut is None else int(counts.cut.sum()),
        other=int(counts.pooled[..., _OTHER].sum()),
        cut_or_other=cut_or_other(counts),
        baseline=int(counts.pooled[:, 0].sum()),
        baseline_other=int(counts.pooled[:, 0, _OTHER].sum()),
        scored=int(openness_of(found.counts).is_scored.sum()),
        unscored=found.unscored,
        is_worthless=measured_nothing(counts),
        is_ranked=found.is_ranked,
        silence=found.silence,
    )


def unmeasured(name: str, found: Coverage) -> str | None:
    """The sentence on a model that has answers and no score worth reading; None for any other."""
    if found.silence == "literal" or not found.answers:
        return None
    if found.is_worthless:
        return f"{name} has no score: {_lost(found)}.{_advice(found)}"
    return None if found.scored else _nothing_scored(name, found)


def silent(name: str, found: Coverage) -> str | None:
    """The sentence on a model that hardly says anything, whether it has a score for that or not."""
    if found.silence == "literal" and found.is_worthless:
        return f"{name}: {_lost(found)}; --silence literal scores it all the same."
    return unmeasured(name, found)


def remarks(name: str, found: Coverage) -> Iterator[str]:
    """What else a reader must know before the model's score."""
    if found.silence == "literal":
        if sentence := silent(name, found):
            yield sentence
        if not (found.scored or found.is_worthless):
            yield _nothing_scored(name, found)
    if found.scored and found.unscored:
        yield (
            f"{name} is scored on {found.scored:,} of {_issues(found.scored + len(found.unscored))}; without a score: "
            f"{_listed(found.unscored)}.{'' if found.is_ranked else ' That is above a tenth, so it has no rank.'}"
        )
    if found.cut is not None and 100 * found.cut > _CUT_PERCENT * found.answers and not found.is_worthless:
        share = _share(found.cut, found.answers)
        yield f"{name}: {share} are cut off at max_tokens, above {_CUT_PERCENT}%.{_advice(found)}"
    if found.scored and 100 * found.baseline_other > _OTHER_PERCENT * found.baseline and not found.is_worthless:
        yield (
            f"{name}: {_share(found.baseline_other, found.baseline, 'baseline answers')} are Other, above "
            f"{_OTHER_PERCENT}%: read its OM beside the part of it by silence."
        )


def _nothing_scored(name: str, found: Coverage) -> str:
    return f"{name} has no score: none of its {_issues(len(found.unscored))} has one ({_listed(found.unscored)})."


def _lost(found: Coverage) -> str:
    what = f"cut off at max_tokens or Other ({found.cut:,} cut off, {found.other:,} Other)" if found.cut else "Other"
    return f"{_share(found.cut_or_other, found.answers)} are {what}, half of them or more"


def _advice(found: Coverage) -> str:
    is_cut = found.cut and 2 * found.cut >= found.cut_or_other
    return " A larger --max-tokens, or none, would leave them room." if is_cut else ""


def _share(part: int, whole: int, what: str = "answers") -> str:
    return f"{part:,} of its {whole:,} {what} ({100 * part / whole:.1f}%)"


def _issues(number: int) -> str:
    return f"{number:,} {'issue' if number == 1 else 'issues'}"


def _listed(unscored: Mapping[str, str]) -> str:
    named = [f"{issue} ({reason})" for issue, reason in list(unscored.items())[:_NAMED]]
    more = len(unscored) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")
