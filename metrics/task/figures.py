"""Figures over all answers of a model: F1, area under the ROC curve, calibration error, pass@k.

Owns the formulas and which answers count. All are pure functions of columns with a row for each answer: `item` is the
place of its item, from 0. None: the figure is not defined for these answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..statistics.intervals import Interval, Values, are_binary, mean_interval, why_none
from ..statistics.jackknife import jackknife_interval

Places = NDArray[np.int64]
OF = "items"
# Simulated (docs/intervals.md): with 30 items, or where nearly all items pass for certain, too many intervals miss.
_LEAST_FOR_PASS, _LEAST_AWAY = 50, 15
NO_LABEL = -1
"""The predicted label of an answer that gives none."""


def f1(predicted: Places, truth: Places, item: Places, labels: int, positive: int | None = None) -> Interval | None:
    """Returns the mean F1 over the labels that are the truth of an item (macro), or that of the label `positive`.

    predicted, truth: labels as numbers from 0 to below `labels`; an answer may predict NO_LABEL, or a label that is
    nobody's truth, which counts against the true label alone.
    """
    place, number = _numbered(item)
    is_label, is_right = predicted != NO_LABEL, predicted == truth
    # Each item with each label that it has, true or predicted: most items have few of many labels.
    cells = np.concatenate([place * labels + truth, (place * labels + predicted)[is_label]])
    keys, cell = np.unique(cells, return_inverse=True)
    owner, label = keys // labels, keys % labels
    true, read = (np.bincount(part, minlength=len(keys)) for part in (cell[: len(truth)], cell[len(truth) :]))
    right = np.bincount(cell[: len(truth)][is_right], minlength=len(keys))
    of_kind = np.bincount(label, true > 0, minlength=labels)  # items whose truth it is
    kept = of_kind > 0 if positive is None else np.arange(labels) == positive
    if not number or not of_kind[kept].all():
        return None
    total_right = np.bincount(label, right, minlength=labels).astype(np.float64)
    total = np.bincount(label, true + read, minlength=labels).astype(np.float64)
    of_label = _f1_of(total_right, total)
    change = np.where(kept[label], _f1_of(total_right[label] - right, total[label] - true - read) - of_label[label], 0)
    figure = float(of_label[kept].mean())
    without = figure + np.bincount(owner, change, minlength=number) / kept.sum()
    # For one label alone the items of all others are the other kind.
    rarest = of_kind[kept].min() if positive is None else min(of_kind[positive], number - of_kind[positive])
    return jackknife_interval(figure, without, rarest=int(rarest), of=OF)


def auroc(score: Values, is_right: NDArray[np.bool_], item: Places) -> Interval | None:
    """Returns how often a right answer has a higher score than a wrong one, a tie counting as half: the area under the
    receiver operating characteristic. None without a right answer or without a wrong one."""
    place, number = _numbered(item)
    right, wrong = (np.bincount(place, kind, minlength=number) for kind in (is_right, ~is_right))
    if not right.any() or not wrong.any():
        return None
    # Wins of right over wrong answers: all, those that an item takes part in, those within one item.
    of_right, of_wrong = _wins(score, is_right), _wins(-score, ~is_right)
    within = np.bincount(place, _wins(score, is_right, place), minlength=number)
    of_item = np.bincount(place, of_right + of_wrong, minlength=number) - within
    pairs = right.sum() * wrong.sum()
    left = pairs - right * wrong.sum() - wrong * right.sum() + right * wrong
    with np.errstate(invalid="ignore"):
        without = (of_right.sum() - of_item) / np.where(left > 0, left, np.nan)
    rarest = int(min((right > 0).sum(), (wrong > 0).sum()))
    return jackknife_interval(float(of_right.sum() / pairs), without, rarest=rarest, of=OF)


def calibration_error(confidence: Values, is_right: NDArray[np.bool_], item: Places, bins: int) -> Interval | None:
    """Returns the expected calibration error: over bins of equal width, the mean distance between the answers' mean
    confidence and their share of right ones, weighted by the number of answers. It has no interval: it is too large by
    chance alone, so that intervals of well-calibrated answers never hold the truth."""
    if not len(confidence):
        return None
    at = np.searchsorted(np.arange(1, bins) / bins, confidence)  # a confidence on an edge is in the lower bin
    away = np.bincount(at, confidence, minlength=bins) - np.bincount(at, is_right, minlength=bins)
    note = "no interval: chance alone makes the figure larger than 0, so intervals would miss the truth"
    return Interval(float(np.abs(away).sum() / len(at)), None, None, _numbered(item)[1], note=note, of=OF)


def pass_at(k: int, is_right: NDArray[np.bool_], item: Places) -> Interval | None:
    """Returns the mean over items of the probability that one of k trials is right, estimated without bias from all
    trials of the item (Chen et al., 2021). Items with fewer than k trials are left out."""
    place, number = _numbered(item)
    trials, right = np.bincount(place, minlength=number), np.bincount(place, is_right, minlength=number)
    trials, right = trials[trials >= k], right[trials >= k]
    if not len(trials):
        return None
    # 1 - C(trials - right, k) / C(trials, k), as a product, which does not overflow.
    steps = np.arange(k)
    none_right = np.prod(np.maximum(trials[:, None] - right[:, None] - steps, 0) / (trials[:, None] - steps), axis=1)
    figures: Values = 1.0 - none_right
    number = len(figures)
    if k > 1 and not are_binary(figures):
        mean, away = float(figures.mean()), int(min((figures < 1).sum(), (figures > 0).sum()))
        if number < _LEAST_FOR_PASS:
            return Interval(mean, None, None, number, note=why_none(number, OF, _LEAST_FOR_PASS), of=OF)
        if away < _LEAST_AWAY:
            edge = 1 if mean > 1 / 2 else 0
            why = f"no interval: fewer than {_LEAST_AWAY} {OF} have another figure than {edge} ({away})"
            return Interval(mean, None, None, number, note=why, of=OF)
    return mean_interval(figures, within=(0.0, 1.0), of=OF, shares=figures)


def _numbered(item: Places) -> tuple[Places, int]:
    """Returns the items as numbers without gaps, and how many there are."""
    names, place = np.unique(item, return_inverse=True)
    return place.astype(np.int64), len(names)


def _f1_of(right: Values, labelled: Values) -> Values:
    """Returns the F1 of labels: `right` answers of `labelled`, those of which it is the truth and those that give it
    together; NaN where there are none."""
    with np.errstate(invalid="ignore"):
        of_label: Values = 2 * right / np.where(labelled > 0, labelled, np.nan)
    return of_label


def _wins(score: Values, is_one: NDArray[np.bool_], group: Places | None = None) -> Values:
    """Returns for each answer of one kind how many of the other kind have a lower score, ties as a half; in its own
    group alone if there are groups. 0 for the other kind."""
    group = np.zeros(len(score), dtype=np.int64) if group is None else group
    keys, at = np.unique(np.stack([group, score]), axis=1, return_inverse=True)
    others = np.bincount(at.ravel(), ~is_one, minlength=keys.shape[1])
    before = np.cumsum(others) - others
    first = np.searchsorted(keys[0], keys[0])  # of the group: its answers alone are counted
    below = before - before[first] + others / 2
    wins: Values = np.where(is_one, below[at.ravel()], 0.0)
    return wins
