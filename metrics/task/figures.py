"""Figures over all answers of a model: F1, area under the ROC curve, calibration error, pass@k.

Owns the formulas. All are pure functions of columns with a row for each answer: `item` is the place of its item, from
0. None: the figure is not defined for these answers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..statistics.intervals import Interval, Values
from ..statistics.jackknife import Mask, jackknife_interval

Places = NDArray[np.int64]
OF = "items"
NO_LABEL = -1
"""The predicted label of an answer that gives none."""


def f1(predicted: Places, truth: Places, item: Places, labels: int, positive: int | None = None) -> Interval | None:
    """Returns the mean F1 over the labels that are the truth of an item (macro), or that of the label `positive`.

    predicted, truth: labels as numbers from 0 to below `labels`; an answer may predict NO_LABEL, or a label that is
    nobody's truth, which counts against the true label alone.
    """
    chosen = np.unique(truth) if positive is None else np.array([positive])

    def figure(kept: Mask) -> float:
        true, read = truth[kept], predicted[kept]
        right, is_truth, is_read = (
            np.bincount(each, minlength=labels)[chosen] for each in (true[true == read], true, read[read != NO_LABEL])
        )
        return float((2 * right / np.where(is_truth > 0, is_truth + is_read, np.nan)).mean())

    # For one label alone the items of all others are the other kind.
    return jackknife_interval(figure, item, truth if positive is None else truth == positive, of=OF)


def auroc(score: Values, is_right: Mask, item: Places) -> Interval | None:
    """Returns how often a right answer has a higher score than a wrong one, a tie counting as half: the area under the
    receiver operating characteristic. None without a right answer or without a wrong one."""
    values, at = np.unique(score, return_inverse=True)

    def figure(kept: Mask) -> float:
        right, wrong = (np.bincount(at[kept & kind], minlength=len(values)) for kind in (is_right, ~is_right))
        pairs = right.sum() * wrong.sum()
        return float(right @ (wrong.cumsum() - wrong / 2) / pairs) if pairs else math.nan

    return jackknife_interval(figure, item, is_right, of=OF)


def calibration_error(confidence: Values, is_right: Mask, item: Places, bins: int) -> Interval | None:
    """Returns the expected calibration error: over bins of equal width, the mean distance between the answers' mean
    confidence and their share of right ones, weighted by the number of answers. It has no interval: it is too large by
    chance alone, so that intervals of well-calibrated answers never hold the truth."""
    if not len(confidence):
        return None
    at = np.searchsorted(np.arange(1, bins) / bins, confidence)  # a confidence on an edge is in the lower bin
    away = np.bincount(at, confidence, minlength=bins) - np.bincount(at, is_right, minlength=bins)
    note = "no interval: chance alone makes the figure larger than 0, so intervals would miss the truth"
    return Interval(float(np.abs(away).sum() / len(at)), None, None, len(np.unique(item)), note=note, of=OF)


def pass_at(k: int, is_right: Mask, item: Places, cell: Places) -> Interval | None:
    """Returns the mean probability that one of k trials is right, estimated without bias from all trials of a cell
    (Chen et al., 2021). Cells with fewer than k trials are left out.

    cell: whose trials these are: those of the item, or of the item in one variant of its prompt.
    """
    _, first, place = np.unique(cell, return_index=True, return_inverse=True)
    trials, right = np.bincount(place), np.bincount(place, is_right)
    enough = trials >= k
    if not enough.any():
        return None
    trials, right = trials[enough, None], right[enough, None]
    # 1 - C(trials - right, k) / C(trials, k), as a product, which does not overflow.
    steps = np.arange(k)
    values = 1 - np.prod(np.maximum(trials - right - steps, 0) / (trials - steps), axis=1)

    def figure(kept: Mask) -> float:
        return float(values[kept].mean())

    # The error of a mean near 0 or 1 is known from the few items on the other side of it alone (simulated).
    is_above = values > values.mean()
    few = min(is_above.sum(), (~is_above).sum())
    return jackknife_interval(figure, item[first][enough], is_above, freedom=few, of=OF)
