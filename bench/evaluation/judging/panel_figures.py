"""Figures of a panel: the verdict of the majority. Pure."""

from __future__ import annotations

from collections import Counter

from .panel import JudgedAnswer, Verdict

MAJORITY = "majority"
"""The name of the majority among the judges of `Panel.scores`."""


def majority_of(answer: JudgedAnswer) -> Verdict | None:
    """Returns the label that more judges give than any other; None for a tie. Where judges give grades alone, it is the
    mean of their grades. A reply that could not be read is no vote."""
    labels = Counter(verdict.label for verdict in answer.verdicts.values() if verdict.label is not None)
    if labels:
        (label, most), *others = labels.most_common()
        return None if others and others[0][1] == most else Verdict(label, None)
    grades = [verdict.grade for verdict in answer.verdicts.values() if verdict.grade is not None]
    return Verdict(None, sum(grades) / len(grades)) if grades else None
