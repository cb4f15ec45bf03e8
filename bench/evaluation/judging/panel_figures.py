"""Figures of a panel: the verdict of the majority. Pure."""

from __future__ import annotations

from collections import Counter

from .panel import JudgedAnswer, Verdict

MAJORITY = "majority"
"""The name of the majority among the judges of `Panel.scores`."""


def majority_of(answer: JudgedAnswer) -> Verdict | None:
    """Returns the label that more judges give than any other, with the mean confidence of these judges; None for a tie.
    Where judges give grades alone, it is the mean of their grades. A reply that could not be read is no vote."""
    verdicts = answer.verdicts.values()
    labels = Counter(verdict.label for verdict in verdicts if verdict.label is not None)
    if labels:
        (label, most), *others = labels.most_common()
        if others and others[0][1] == most:
            return None
        sure = [each.confidence for each in verdicts if each.label == label and each.confidence is not None]
        return Verdict(label, None, _mean(sure))
    grade = _mean([verdict.grade for verdict in verdicts if verdict.grade is not None])
    return None if grade is None else Verdict(None, grade)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
