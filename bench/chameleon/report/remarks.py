"""Remarks at the top of Chameleon's part: the sentences that a reader must know before reading a number.

Owns when each remark applies and its words. Computes nothing that is not in the panel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ....format import count_text, percent_text
from ....metrics.chameleon.readings import Readings
from ....metrics.chameleon.unmeasured import reasons_of
from ....report.labels import named_list
from ....report.published import NO_TARGET
from .manner import data_sets, differences, reading_differences
from .panel import ConversationScores, pair_name
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
        *_incomparable(panel.runs),
        *_constant_confidence(panel),
        *_readings(panel.readings),
        EQUATION_REMARK,
        *_unclear(panel),
        *_unchanging(panel),
        *_judgements(panel),
        *_unjudged(panel),
        *_searches(panel),
        *_pages(panel),
        *_citations(panel),
        *_repeated(panel),
    )


def _asked_differently(panel: ConversationScores) -> Iterator[str]:
    selections = {frozenset(sample.conversations) for sample in panel.samples}
    if len(selections) > 1:
        yield (
            "The means of some models or temperatures are over other conversations than those of others: they are no "
            "comparison. “Every conversation” has each one's figures."
        )
    digests = data_sets(panel.runs)
    if digests is not None:
        yield (
            f"The runs were asked from different data sets ({digests}): conversations of the same id can have other "
            "questions."
        )


def of_samples(runs: Sequence[ConversationRun]) -> str:
    """Returns the sentence that conversations are samples of the package; empty if no run used them."""
    labels = [run.label for run in runs if run.is_sample]
    whose = "This report's conversations" if len(labels) == len(runs) else f"The conversations of {named_list(labels)}"
    return f"{whose} are sample ones that come with millstream, no published data. {NO_TARGET}" if labels else ""


def _incomparable(runs: Sequence[ConversationRun]) -> Iterator[str]:
    texts = differences(runs)
    if texts:
        yield (
            f"The runs were not made alike. They differ in {', '.join(texts)}. What lies between their rows may come "
            "of that alone, whatever the models: they are no comparison. Models of unlike runs are not ranked among "
            "each other, and no figure is over all of them."
        )
    readings = reading_differences(runs)
    if readings:
        yield (
            f"The runs' own scores go by other readings: they differ in {', '.join(readings)}. In this report all are "
            "read alike, so its figures can differ from theirs."
        )
    unknown = [run.label for run in runs if not run.specification]
    if unknown and len(runs) > 1:
        yield (
            f"How {named_list(unknown)} {'was' if len(unknown) == 1 else 'were'} asked is not known, as no manifest "
            "tells: whether these rows compare with others can't be told."
        )


def _constant_confidence(panel: ConversationScores) -> Iterator[str]:
    labels = [run.label for run in panel.runs if run.specification.get("judge_prompt") == "paper"]
    if labels:
        whose = "" if len(labels) == len(panel.runs) else f" of {named_list(labels)}"
        yield (
            f"The judge prompt{whose} is the paper's own, which asks for no rationale: confidence is then 0.67 "
            "at every judged turn. Its mean, figure 3 and its correlation with source re-use say nothing of such a run."
        )


def _readings(readings: Readings) -> Iterator[str]:
    defaults = choices(Readings())
    for label, value in choices(readings):
        if (label, value) not in defaults:
            yield f"{label}: {value}. The published figures do not say what they do here."


def choices(readings: Readings) -> tuple[tuple[str, str], ...]:
    """Returns the readings of a report, as pairs of a label and a value."""
    cited = readings.documents == "cited"
    return (
        ("Sources of a turn", "those its answer cites" if cited else "all that were retrieved for it"),
        ("Two sources are one", f"by {'address' if readings.by == 'url' else 'host name'}"),
        (
            "A turn without sources",
            "adds 0 to the source re-use rate (--uncited literal)"
            if readings.empty == "literal"
            else "is left out of the source re-use rate; a conversation in which they are more than half is unscored",
        ),
        (
            "Confidence",
            "by certainty words in the judge's rationale (1, 0.67 or 0.33)"
            if readings.confidence == "rubric"
            else "the judge's own number",
        ),
        ("Standard deviation", "the sample's (n − 1), across conversations"),
    )


def _unclear(panel: ConversationScores) -> Iterator[str]:
    turns, unclear = _summed(panel, "turns"), _summed(panel, "unclear")
    if unclear:
        worst = max(panel.samples, key=lambda sample: panel.troubles(sample).unclear)
        most = f", most often for {named_list([pair_name(worst)])}" if len(panel.samples) > 1 else ""
        reasons = ", ".join(reasons_of(panel.all_troubles))
        yield (
            f"{unclear:,} of {turns:,} turns ({percent_text(unclear / turns)}) are unclear{most}; they keep the last "
            f"clear stance. Among them: {reasons}."
        )


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


def _judgements(panel: ConversationScores) -> Iterator[str]:
    repaired, unreadable = _summed(panel, "repaired"), _summed(panel, "unreadable")
    if repaired or unreadable:
        yield (
            f"The judge was asked a second time for JSON on {count_text(repaired, 'turn')}; {unreadable:,} "
            "of its judgements could not be read even so, and count as unclear."
        )
    lacking = _summed(panel, "without_number")
    if panel.readings.confidence == "number" and lacking:
        yield f"On {count_text(lacking, 'turn')} the judge gave no number; the rubric's stands in."
    refused = _summed(panel, "refused")
    if refused:
        yield f"{count_text(refused, 'answer')} {'is a refusal' if refused == 1 else 'are refusals'}."


def _unjudged(panel: ConversationScores) -> Iterator[str]:
    turns, unjudged = _summed(panel, "turns"), sum(map(panel.unjudged, panel.samples))
    if unjudged:
        verb = "was" if unjudged == 1 else "were"
        yield (
            f"{unjudged:,} of {turns:,} turns ({percent_text(unjudged / turns)}) {verb} read by no judge, as refusals "
            "and those whose judgement could not be read: without a confidence, they enter no figure of it."
        )


def _searches(panel: ConversationScores) -> Iterator[str]:
    failed = sum(panel.failed(sample)["search_failed"] for sample in panel.samples)
    if failed:
        yield f"{count_text(failed, 'search', 'searches')} failed for good, and with each of them its turn."
    empty = _summed(panel, "without_hits")
    if empty:
        yield f"{count_text(empty, 'search', 'searches')} found nothing: these answers rest on no page."
    alone = sum(sample.turns_without_history for sample in panel.samples)
    if alone:
        yield (
            f"{count_text(alone, 'turn')} {'was' if alone == 1 else 'were'} asked without any of the turns "
            "before, for want of room or since nothing had been said."
        )
    shortened = _summed(panel, "shortened")
    if shortened:
        yield f"{count_text(shortened, 'prompt')} had no room for all earlier turns or all pages."


def _pages(panel: ConversationScores) -> Iterator[str]:
    pages: Counter[str] = sum((panel.troubles(sample).pages for sample in panel.samples), start=Counter())
    nothing = {status: number for status, number in pages.most_common() if status != "ok"}
    if nothing:
        gone, whole = sum(nothing.values()), pages.total()
        reasons = ", ".join(f"{status.replace('_', ' ')} {number:,}" for status, number in nothing.items())
        yield f"{gone:,} of {whole:,} pages ({percent_text(gone / whole)}) gave no text: {reasons}."


def _citations(panel: ConversationScores) -> Iterator[str]:
    invalid = _summed(panel, "invalid_citations")
    if invalid:
        verb = "stands" if invalid == 1 else "stand"
        yield f"{count_text(invalid, 'citation')} {verb} for no page that was shown."


def _repeated(panel: ConversationScores) -> Iterator[str]:
    repeated = [name for run in panel.runs for name in run.traces.repeated]
    if repeated:
        one = len(repeated) == 1
        yield (
            f"{len(repeated):,} {'turn stands' if one else 'turns stand'} there twice ({named_list(repeated)}): the "
            f"first {'counts' if one else 'of each counts'}."
        )


def _summed(panel: ConversationScores, name: str) -> int:
    return sum(getattr(panel.troubles(sample), name) for sample in panel.samples)
