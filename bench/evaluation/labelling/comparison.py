"""Compares people's labels with our readings of the same answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ....metrics.statistics.agreement import Agreement, agreement
from .label import Label
from .sample import SampleEntry


class LabelAgreement(Struct, frozen=True):
    """The agreement of one reading with the labels, over all answers and by model."""

    whole: Agreement
    """The agreement over all answers."""
    models: Mapping[str, Agreement]
    """The agreement over the answers of each model and temperature, by the pair's name."""


def compare(sample: Sequence[SampleEntry], given: Sequence[str | None]) -> dict[str, LabelAgreement]:
    """Compares the given labels (None: not labelled) with each reading that covers every labelled answer, and returns
    the agreements by the reading's name. In their tables, rows are the person's labels."""
    labelled = [(sampled, label) for sampled, label in zip(sample, given, strict=True) if label is not None]
    labels = [sampled.label for sampled, _ in labelled] or [sampled.label for sampled in sample]
    readings = list(dict.fromkeys(name for label in labels for name in label.readings))
    return {
        reading: _compared(labelled, reading, names_of(labels))
        for reading in readings
        if all(reading in label.readings for label in labels)
    }


def names_of(labels: Sequence[Label]) -> list[str]:
    """Returns the names of all choices in these labels, each once, in order."""
    return list(dict.fromkeys(choice.name for label in labels for choice in label.choices))


def _compared(labelled: Sequence[tuple[SampleEntry, str]], reading: str, names: Sequence[str]) -> LabelAgreement:
    by_pair: dict[str, list[tuple[str, str]]] = {}
    for sampled, label in labelled:
        by_pair.setdefault(str(sampled.key.pair), []).append((label, sampled.label.readings[reading]))
    every = [said for pairs in by_pair.values() for said in pairs]
    models = {name: agreement(by_pair[name], names) for name in sorted(by_pair)}
    return LabelAgreement(agreement(every, names), models)
