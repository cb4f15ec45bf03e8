"""Remarks at the top of Chameleon's part: the sentences that a reader must know before reading a number.

Owns when each remark applies and its words. Computes nothing that is not in the panel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....format import percent_text
from ....metrics.chameleon.readings import Readings
from ....report.labels import named_list
from ....report.published import NO_TARGET
from ..readings import flags_of
from .manner import reading_differences, unlike
from .panel import ConversationScores
from .runs import ConversationRun
from .tables_scores import EQUATION_REMARK


def remarks(panel: ConversationScores) -> tuple[str, ...]:
    if not any(True for sample in panel.samples for _ in sample.held):
        return ("There are no turns: nothing is scored.", *(f"{sentence}." for sentence in panel.remarks))
    return (
        *panel.unmeasured,
        *(f"{sentence}." for sentence in panel.remarks),
        *filter(None, [of_samples(panel.runs)]),
        *_asked_differently(panel),
        *_constant_confidence(panel),
        *_readings(panel.readings),
        EQUATION_REMARK,
        *_unclear(panel),
        *_unchanging(panel),
    )


def _asked_differently(panel: ConversationScores) -> Iterator[str]:
    selections = {frozenset(sample.conversations) for sample in panel.samples}
    if len(selections) > 1:
        yield (
            "The means of some models or temperatures are over other conversations than those of others: they are no "
            "comparison. “Every conversation” has each one's figures."
        )
    if difference := unlike(panel.runs):
        yield difference
    if readings := reading_differences(panel.runs):
        yield (
            f"The runs' own scores go by other readings: they differ in {', '.join(readings)}. In this report all are "
            "read alike, so its figures can differ from theirs."
        )


def of_samples(runs: Sequence[ConversationRun]) -> str:
    """Returns the sentence that conversations are samples of the package; empty if no run used them."""
    labels = [run.label for run in runs if run.is_sample]
    whose = "This report's conversations" if len(labels) == len(runs) else f"The conversations of {named_list(labels)}"
    return f"{whose} are samples that come with millstream, not the paper’s. {NO_TARGET}" if labels else ""


def _constant_confidence(panel: ConversationScores) -> Iterator[str]:
    labels = [run.label for run in panel.runs if run.specification.get("judge_prompt") == "paper"]
    if labels:
        whose = "" if len(labels) == len(panel.runs) else f" of {named_list(labels)}"
        yield (
            f"The judge prompt{whose} is the paper's own, which asks for no rationale: confidence is then 0.67 "
            "at every judged turn. Its mean, figure 3 and its correlation with source re-use say nothing of such a run."
        )


def _readings(readings: Readings) -> Iterator[str]:
    for flag, value in sorted({*choices(readings)} - {*choices(Readings())}):
        yield f"Read with {flag} {value}. The published figures do not say what they do here."


def choices(readings: Readings) -> tuple[tuple[str, str], ...]:
    """Returns the readings of a report, as pairs of an option and its value."""
    return (*flags_of(readings), ("Standard deviation", "the sample’s (n − 1), across conversations"))


def _unclear(panel: ConversationScores) -> Iterator[str]:
    troubles = {str(sample.pair): panel.troubles(sample) for sample in panel.samples}
    turns, unclear = (sum(getattr(each, name) for each in troubles.values()) for name in ("turns", "unclear"))
    if unclear:
        worst = max(troubles, key=lambda name: troubles[name].unclear)
        most = f", most often for {named_list([worst])}" if len(troubles) > 1 else ""
        share = percent_text(unclear / turns)
        yield f"{unclear:,} of {turns:,} turns ({share}) are unclear{most}; they keep the last clear stance."


def _unchanging(panel: ConversationScores) -> Iterator[str]:
    """Yields remarks on scored conversations that never change their stance, or have no score."""
    whole = sum(len(sample.figures) for sample in panel.samples)
    steady = sum(not figures.changes for sample in panel.samples for figures in sample.figures)
    if steady:
        yield (
            f"{steady:,} of {whole:,} scored conversations ({percent_text(steady / whole)}) never change their stance: "
            "their confidence of changes counts as 0 in eq. (2)."
        )
    undefined = sum(not figures.is_defined for sample in panel.samples for figures in sample.figures)
    if undefined:
        verb = "has" if undefined == 1 else "have"
        yield (
            f"{undefined:,} of {whole:,} scored conversations {verb} no score, as a rate of theirs would divide by "
            "nothing, or no judge read the turns that change their stance: they enter no mean of scores."
        )
