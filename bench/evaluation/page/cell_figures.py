"""The figures of cells from those of their lines: each line has the number of its cell, of `size` cells in all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from string import ascii_lowercase, digits
from typing import Any

import numpy as np
from numpy.typing import NDArray


def means(cells: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Returns the mean of each cell's values; NaN without one."""
    there = ~np.isnan(values)
    totals = np.bincount(cells[there], values[there], size)
    with np.errstate(invalid="ignore"):
        return totals / np.bincount(cells[there], minlength=size)


def sums(cells: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Returns the sum of each cell's values; NaN without one."""
    return means(cells, values, size) * np.bincount(cells[~np.isnan(values)], minlength=size)


def commonest(
    cells: NDArray[np.int64], labels: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the label that most answers of each cell have, and how many have it; -1 and 0 without an answer."""
    label, agree = np.full(size, -1), np.zeros(size, np.int64)
    if len(cells):
        width = int(labels.max()) + 1
        pairs, counts = np.unique(cells * width + labels, return_counts=True)
        # The last that is written wins; of equal counts, the first label.
        order = np.lexsort((-pairs, counts))
        label[pairs[order] // width] = pairs[order] % width
        agree[pairs[order] // width] = counts[order]
    return label, agree


def paths(
    cells: NDArray[np.int64], labels: NDArray[np.int64], numbers: NDArray[np.int64], size: int
) -> tuple[list[int], list[str]]:
    """Returns the labels that lines have, and of each cell those of its lines in the order of their numbers, each as a
    sign: its place among the labels, `a` for the eleventh. Lines with label 0 have none; with more labels than signs
    there are no paths."""
    there = np.flatnonzero(labels)
    used, places = np.unique(labels[there], return_inverse=True)
    signs = digits + ascii_lowercase
    if len(used) > len(signs):
        return [], []
    order = np.lexsort((numbers[there], cells[there]))
    whole = "".join(signs[place] for place in places[order].tolist())
    ends = np.bincount(cells[there], minlength=size).cumsum().tolist()
    return used.tolist(), [whole[begin:end] for begin, end in pairwise((0, *ends))]


def differs(
    cells: NDArray[np.int64], score: NDArray[np.float64], labels: NDArray[np.int64], size: int
) -> NDArray[np.bool_]:
    """Returns whether the answers of each cell differ: in their scores, or in their labels where none has a score."""
    value = np.where(np.isnan(score), -1, np.unique(score, return_inverse=True)[1])
    has_score = np.bincount(cells[~np.isnan(score)], minlength=size) > 0
    _, agree = commonest(cells, np.where(has_score[cells], value + 1, labels), size)
    has_others: NDArray[np.bool_] = agree < np.bincount(cells, minlength=size)
    return has_others


def listed(values: NDArray[Any], kept: Sequence[int] | None = None, digits: int = 0) -> list[NDArray[Any]]:
    """Returns the rows of a table of numbers, rounded, those at the places `kept` alone; of a row of equal numbers the
    first."""
    rows = []
    for whole in values:
        row = whole if kept is None else whole[kept]
        row = row.round(digits) if row.dtype == np.float64 else row
        is_constant = len(row) and (np.isnan(row).all() if row[0] != row[0] else (row == row[0]).all())
        rows.append(row[:1] if is_constant else row)
    return rows
