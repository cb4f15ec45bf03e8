"""Compares people's labels of a run with each other and with our readings of the same answers.

The figures of the labelled answers are of a sample that is even over labels; those `in_run` are weighted back to the
answers of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from .....metrics.statistics.agreement import Agreement, agreement
from .....metrics.statistics.stratified_agreement import (
    SingleLabelAgreement,
    StratifiedAgreement,
    StratumPairs,
    single_label_agreement,
    stratified_agreement,
)
from ...door.kept_answer import Key, Verdict
from .label_lines import UsableLabels, labels_that_count, read_label_lines, usable_labels
from .sample import AnswerFile, SampleEntry, Stratum, StratumSizes

FEW_LABELS = 30
"""With fewer labelled answers than this, figures are marked."""
FEW = "few labels"
_LabelPair = tuple[str, str]


class AgreementFigures(Struct, frozen=True):
    """The agreement of two labellings of some answers. In tables the first labelling has the rows."""

    labelled: Agreement
    """The agreement on the labelled answers as they are."""
    in_run: StratifiedAgreement
    """The agreement weighted back to the answers of the run."""
    labels: Mapping[str, SingleLabelAgreement]
    """The agreement on each label against the rest, weighted back to the answers of the run."""


class ReadingComparison(Struct, frozen=True):
    """The agreement of one rater's labels with one reading."""

    whole: AgreementFigures
    """The agreement over all models."""
    models: Mapping[str, AgreementFigures]
    """The agreement over the answers of each model and temperature, by the pair's name."""
    uncovered: int
    """The labelled answers that the reading does not cover; no figure counts them."""


class CertaintyRow(NamedTuple):
    """The confidence of the first reading where a rater was certain to one degree."""

    certainty: float
    labelled: int
    confidence: float


class RaterComparison(Struct, frozen=True):
    """The comparison of one rater's labels with every reading."""

    labelled: int
    """The answers that the rater has labelled."""
    readings: Mapping[str, ReadingComparison]
    """The agreement with each reading, by its name."""
    certainties: Sequence[CertaintyRow]
    """The first reading's mean confidence by the rater's certainty; the most certain first."""


class RaterPair(Struct, frozen=True):
    """The agreement of two raters on the answers that both have labelled."""

    first: str
    """The name of the rater with the table's rows."""
    second: str
    """The name of the rater with the table's columns."""
    figures: AgreementFigures
    """Their agreement."""


class LabelComparison(Struct, frozen=True):
    """Everything that the labels of a run give."""

    raters: Mapping[str, RaterComparison]
    """The comparison of each rater with the readings, by the rater's name."""
    pairs: Sequence[RaterPair]
    """The comparison of each two raters."""
    remarks: Sequence[str]
    """Sentences about labels that are left out."""
    nobody: RaterComparison
    """The comparison of somebody who has labelled nothing."""


def compared_in(path: Path, answers: AnswerFile) -> LabelComparison:
    """Returns the agreement of the labels in a file. `answers` are those of the same run."""
    lines = labels_that_count(read_label_lines(path))
    entries = answers.find(list(dict.fromkeys(line.answer for line in lines)))
    return compare(usable_labels(lines, entries), answers.sizes())


def compare(labels: UsableLabels, sizes: StratumSizes) -> LabelComparison:
    """Returns the agreement of each rater with each reading, and of each two raters. `sizes` are those of the run."""
    entries = labels.entries
    raters = {name: compare_rater(verdicts, entries, sizes) for name, verdicts in labels.raters.items()}
    pairs = []
    for (first, firsts), (second, seconds) in combinations(labels.raters.items(), 2):
        both = {key: (str(firsts[key].label), str(seconds[key].label)) for key in firsts if key in seconds}
        pairs.append(RaterPair(first, second, _figures(both, entries, _names(both, entries), sizes.whole)))
    return LabelComparison(raters, pairs, labels.remarks, compare_rater({}, {}, sizes))


def compare_rater(
    labels: Mapping[Key, Verdict], entries: Mapping[Key, SampleEntry], sizes: StratumSizes
) -> RaterComparison:
    """Returns the agreement of one rater's labels with each reading."""
    readings = {}
    for reading, counts in sizes.readings.items():
        covered = {
            key: (str(label.label), entries[key].label.readings[reading])
            for key, label in labels.items()
            if reading in entries[key].label.readings
        }
        names = _names(covered, entries)
        models = {}
        for model in sorted({str(key.pair) for key in covered}):
            pairs = {key: pair for key, pair in covered.items() if str(key.pair) == model}
            sizes_of = {stratum: size for stratum, size in counts.items() if str(stratum.pair) == model}
            models[model] = _figures(pairs, entries, names, sizes_of)
        whole = _figures(covered, entries, names, counts)
        readings[reading] = ReadingComparison(whole, models, len(labels) - len(covered))
    return RaterComparison(len(labels), readings, _certainties(labels, entries))


def note_on(labelled: int) -> str | None:
    """Returns the mark of figures that are over this number of labelled answers; None: they need none."""
    return FEW if labelled < FEW_LABELS else None


def _names(keys: Iterable[Key], entries: Mapping[Key, SampleEntry]) -> list[str]:
    """Returns the names of all choices of these answers, each once, in order."""
    return list(dict.fromkeys(choice.name for key in keys for choice in entries[key].label.choices))


def _figures(
    pairs: Mapping[Key, _LabelPair],
    entries: Mapping[Key, SampleEntry],
    names: Sequence[str],
    counts: Mapping[Stratum, int],
) -> AgreementFigures:
    by_stratum: dict[Stratum, list[_LabelPair]] = {}
    for key, pair in pairs.items():
        by_stratum.setdefault(entries[key].stratum, []).append(pair)
    strata = [StratumPairs(size, by_stratum.get(stratum, [])) for stratum, size in counts.items()]
    plain = agreement(pairs.values(), names)
    labels = {label: single_label_agreement(strata, label) for label in plain.labels}
    return AgreementFigures(plain, stratified_agreement(strata), labels)


def _certainties(verdicts: Mapping[Key, Verdict], entries: Mapping[Key, SampleEntry]) -> list[CertaintyRow]:
    steps: dict[float, list[float]] = {}
    for key, label in verdicts.items():
        confidence = entries[key].label.confidence
        if label.confidence is not None and confidence is not None:
            steps.setdefault(label.confidence, []).append(confidence)
    return [CertaintyRow(step, len(some), sum(some) / len(some)) for step, some in sorted(steps.items(), reverse=True)]
