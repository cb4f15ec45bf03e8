"""The report on writing conversations: a few lines for a person, or one JSON object for a program.

Pure functions. Says what was rejected, what to do next, and how many questions are challenging or open, as appendix A.2
asks: judged by wordings alone, since the paper's format has no field for it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from msgspec import Struct, structs, to_builtins

from ....report.text import columns, cut
from ..order import OTHER, kind_of_question
from .write_conversations import WritingResult

CHALLENGING_FROM, CHALLENGING_TO = Fraction(30, 100), Fraction(40, 100)
RULES = (
    "challenging: its words request counter-evidence, critique methodology, pose a what-if or weigh a trade-off; open: "
    "it has how, why or a conditional clause, and does not begin as a yes/no question"
)
_OPEN = re.compile(r"\b(?:how|why|if|unless|suppose|supposing|assuming|provided that|given that)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"(?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would)\b", re.IGNORECASE
)


class QuestionShares(Struct, frozen=True):
    """The counts of a data set's questions."""

    questions: int
    """All questions."""
    challenging: int
    """Those that are challenging."""
    open: int
    """Those that are open."""
    conversations: int
    """All conversations."""
    within: int
    """The conversations of whose questions 30 to 40% are challenging, as the prompt asks."""


def shares_of(conversations: Iterable[Sequence[str]]) -> QuestionShares:
    """Returns the counts over conversations, each given as its questions."""
    every = [list(questions) for questions in conversations]
    challenging = [sum(kind_of_question(question) != OTHER for question in questions) for questions in every]
    within = [
        CHALLENGING_FROM <= Fraction(number, len(questions)) <= CHALLENGING_TO
        for number, questions in zip(challenging, every, strict=True)
        if questions
    ]
    return QuestionShares(
        questions=sum(map(len, every)),
        challenging=sum(challenging),
        open=sum(is_open(question) for questions in every for question in questions),
        conversations=len(every),
        within=sum(within),
    )


def is_open(question: str) -> bool:
    """Returns whether a question is open in the words of appendix A.2."""
    return _OPEN.search(question) is not None and _YES_NO.match(question.lstrip()) is None


_SHOWN = 20
_REASON_MAX = 160


def report_text(written: WritingResult) -> str:
    parts = [_failures(written), "\n".join(_summary(written))]
    return "\n\n".join(part for part in parts if part)


def _failures(written: WritingResult) -> str:
    failures = written.generation.failures
    rows = [(domain, topic, cut(reason, _REASON_MAX)) for (domain, topic), reason in failures.items()]
    if not rows:
        return ""
    more = f"\nand {len(rows) - _SHOWN:,} more (--json has them all)" if len(rows) > _SHOWN else ""
    return columns([("domain", "topic", "not written, since"), *rows[:_SHOWN]]) + more


def _summary(written: WritingResult) -> list[str]:
    made = written.generation
    cost = "no price" if made.cost is None else f"${made.cost:,.4f}"
    count, topics = len(made.conversations), sum(map(len, made.topics.values()))
    lines = [
        f"{count:,} conversations on {topics:,} topics in {len(made.topics):,} domains, written by {made.model}: "
        f"{made.answers:,} answers, {made.cached:,} of them from the cache{f', {cost}' if made.answers else ''}"
    ]
    if made.refused:
        unusable = sum(bool(refused.topic) and not _is_duplicate(refused.reason) for refused in made.refused)
        duplicates = sum(_is_duplicate(refused.reason) for refused in made.refused)
        lists = len(made.refused) - unusable - duplicates
        lines.append(
            f"not taken: {unusable:,} conversations, {lists:,} lists of topics, and {duplicates:,} topics that were "
            f"nearly the same as another"
        )
    if made.maybe_billed:
        lines.append(f"{made.maybe_billed:,} attempts brought no whole answer and may have been billed all the same")
    if made.failures:
        lines.append(f"{len(made.failures):,} topics have no conversation")
    if made.lacking and not written.is_unfinished:
        short = ", ".join(f"{domain} {missing:,}" for domain, missing in made.lacking.items())
        lines.append(f"fewer topics were found than asked for: {short} missing")
    return lines + (_pending(written) if written.is_unfinished else _file(written))


def _is_duplicate(reason: str) -> bool:
    return reason.startswith("nearly the same")


def _pending(written: WritingResult) -> list[str]:
    why = "; ".join(dict.fromkeys(" ".join(stop.detail.split()) for stop in written.generation.stops))
    if written.interrupted_by is not None:
        why = f"interrupted by {signal.Signals(written.interrupted_by).name}"
    return [
        f"stopped before the end: {why}; the same command goes on: the cache has the answers so far",
        "nothing was written",
    ]


def _file(written: WritingResult) -> list[str]:
    if written.dataset is None:
        return ["nothing was written"]
    return [
        _shares(_shares_of(written)),
        f"digest {written.dataset.digest}",
        str(written.out) if written.is_written else f"{written.out}: holds the same already, and was left as it is",
    ]


def _shares_of(written: WritingResult) -> QuestionShares:
    return shares_of(each["questions"] for each in written.generation.contents())


def _shares(shares: QuestionShares) -> str:
    return (
        f"{shares.challenging:,} of {shares.questions:,} questions ({shares.challenging / shares.questions:.1%}) are "
        f"challenging, 30 to 40% in {shares.within:,} of {shares.conversations:,} conversations, as the prompt asks; "
        f"{shares.open:,} ({shares.open / shares.questions:.1%}) are open. By their words: {RULES}"
    )


def as_json(written: WritingResult) -> dict[str, Any]:
    made = written.generation
    return {
        "exit_code": written.exit_code,
        "out": None if written.dataset is None else str(written.out),
        "written": written.is_written,
        "digest": None if written.dataset is None else written.dataset.digest,
        "model": made.model,
        "conversations": len(made.conversations),
        "topics": {domain: len(topics) for domain, topics in made.topics.items()},
        "lacking": dict(made.lacking),
        "questions": None if written.dataset is None else to_builtins(_shares_of(written)),
        "failed": [
            {"domain": domain, "topic": topic, "reason": reason} for (domain, topic), reason in made.failures.items()
        ],
        "refused": [
            {"domain": refused.domain, "topic": refused.topic or None, "reason": refused.reason}
            for refused in made.refused
        ],
        "pending": len(made.pending),
        "answers": made.answers,
        "cached": made.cached,
        "cost": made.cost,
        "maybe_billed": made.maybe_billed,
        "stops": [structs.asdict(stop) for stop in made.stops],
        "signal": written.interrupted_by,
    }
