"""Composition: whether it matters which arguments a prompt shows, beyond how many of each side.

Owns the comparison of prompts of one issue, template and case that show equally many arguments, drawn at random: how
much of the variance of their stances goes with the arguments drawn, against what chance gives, by a seeded permutation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .answers import AnswerReading, AnswerRows
from .openness import CASES, CONFIGS, Shares

# The cases that draw some of the arguments of a side. One-sided cases always show all of theirs.
DRAWN_CASES = ("balanced", "clear-pro", "clear-con")
PERMUTATIONS = 999

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Composition:
    """How much of a model's variance of stance in a case goes with the arguments drawn.

    `draws` are the prompts compared, of `issues` issues where draws differ. `explained` is the share of the variance
    within issue and template that a linear model with the presence of each argument explains, `by_chance` the share
    that it would explain if the arguments did not matter, `excess` the difference. All three and `p` are None where
    nothing varies: all arguments are always shown, or all stances are the same.
    """

    case: str
    draws: int
    issues: int
    explained: float | None
    by_chance: float | None
    p: float | None

    @property
    def excess(self) -> float | None:
        return None if self.explained is None or self.by_chance is None else self.explained - self.by_chance


@dataclass(frozen=True)
class _Draws:
    """The draws of one issue. `basis`: orthonormal columns that span the presence of the arguments, within strata;
    `values`: the draws' pro shares minus the mean of their stratum. The rows of stratum n are
    `starts[n]:starts[n + 1]`."""

    basis: Shares
    values: Shares
    starts: NDArray[np.int64]

    def explained(self) -> float:
        return float(((self.basis.T @ self.values) ** 2).sum())

    def expected(self) -> float:
        """Returns the mean of `explained` over all permutations within strata, exactly: a stratum of n draws with the
        sum of squares S adds S / (n - 1) times the trace of its part of the projection."""
        strata = [slice(*ends) for ends in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)]
        parts = [
            float((self.values[rows] ** 2).sum() * (self.basis[rows] ** 2).sum()) / (rows.stop - rows.start - 1)
            for rows in strata
        ]
        return float(sum(parts))

    def permuted(self, rng: np.random.Generator, number: int) -> Shares:
        """Returns `explained` after each of `number` permutations of the values within strata."""
        drawn = np.zeros((number, len(self.values)))
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            values = self.values[start:stop]
            # Most strata have one stance, where there is nothing to permute.
            if np.abs(values).max() > _ROUNDING:
                drawn[:, start:stop] = rng.permuted(np.broadcast_to(values, (number, stop - start)), axis=1)
        found: Shares = ((drawn @ self.basis) ** 2).sum(axis=1)
        return found


def composition(
    answers: AnswerRows, reading: AnswerReading = "recorded", seed: int = 0, permutations: int = PERMUTATIONS
) -> tuple[Composition, ...]:
    """Returns the effect of the arguments drawn in each case that draws. An answer of Other counts as no pro answer.

    The null hypothesis is that a draw's stances do not depend on its arguments: within issue, template, case and number
    of arguments, draws are then exchangeable. Answers to the same list in the same trial (both wrappings of a draw) are
    one draw. p is (1 + permutations that explain at least as much) / (1 + permutations).
    """
    return tuple(_of_case(answers, case, reading, seed, permutations) for case in DRAWN_CASES)


def _of_case(answers: AnswerRows, case: str, reading: AnswerReading, seed: int, permutations: int) -> Composition:
    rng = np.random.default_rng(seed)
    draws = issues = 0
    varied: list[_Draws] = []
    for presence, values, stratum in _drawn(answers, case, reading):
        found = _compared(presence, values, stratum)
        if found is None:
            continue
        draws, issues = draws + len(found.values), issues + 1
        if np.abs(found.values).max() > _ROUNDING:
            varied.append(found)
    total = sum(float((each.values**2).sum()) for each in varied)
    if not total:
        return Composition(case, draws, issues, None, None, None)
    observed = sum(each.explained() for each in varied)
    again = np.zeros(permutations)
    for each in varied:
        again += each.permuted(rng, permutations)
    as_much = int((again >= observed - _ROUNDING * total).sum())
    expected = float(sum(each.expected() for each in varied))
    return Composition(case, draws, issues, observed / total, expected / total, (1 + as_much) / (1 + permutations))


def _drawn(
    answers: AnswerRows, case: str, reading: AnswerReading
) -> Iterator[tuple[Shares, Shares, NDArray[np.int64]]]:
    """Yields for each issue the presence of arguments (draw, argument), the pro shares and the strata of its draws."""
    starts, members = answers.lists.starts, answers.lists.members
    rows = np.flatnonzero(answers.case == CASES.index(case))
    rows = rows[starts[answers.shown[rows] + 1] > starts[answers.shown[rows]]]
    columns = (answers.issue[rows], answers.template[rows], answers.trial[rows], answers.shown[rows])
    # One number for each row: a search for equal rows of several columns is many times slower.
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    _, at_first, unit = np.unique(np.ravel_multi_index(columns, sizes), return_index=True, return_inverse=True)
    units = np.stack(columns, axis=1)[at_first]
    pro = np.bincount(unit, weights=answers.stances[reading][rows] == 0, minlength=len(units))
    shares = pro / np.maximum(np.bincount(unit, minlength=len(units)), 1)
    first = np.full(len(units), len(CONFIGS))
    np.minimum.at(first, unit, answers.config[rows])
    # In the grid's order, and arguments by name: the seeded permutation must not depend on the order of the records.
    order = np.lexsort((first, units[:, 2], units[:, 1], units[:, 0]))
    units, shares = units[order], shares[order]
    by_name = sorted(range(len(answers.lists.arguments)), key=answers.lists.arguments.__getitem__)
    named = np.argsort(np.array(by_name, dtype=np.int64))[members]
    for issue in np.unique(units[:, 0]):
        own = units[:, 0] == issue
        lists = [named[starts[at] : starts[at + 1]] for at in units[own, 3]]
        names = np.unique(np.concatenate(lists))
        presence = np.zeros((len(lists), len(names)))
        for row, shown in zip(presence, lists, strict=True):
            row[np.searchsorted(names, shown)] = 1
        yield presence, shares[own], units[own, 1] * (len(names) + 1) + presence.sum(axis=1).astype(np.int64)


def _compared(presence: Shares, values: Shares, stratum: NDArray[np.int64]) -> _Draws | None:
    """Returns the draws that can be compared: those of strata with two or more; None if all show the same arguments."""
    _, of_row, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    order = np.argsort(of_row, kind="stable")
    order = order[sizes[of_row[order]] > 1]
    sizes = sizes[sizes > 1]
    if not len(sizes):
        return None
    starts = np.concatenate(([0], np.cumsum(sizes)))
    x, y = presence[order], values[order]
    x = x - np.repeat(np.add.reduceat(x, starts[:-1]) / sizes[:, None], sizes, axis=0)
    y = y - np.repeat(np.add.reduceat(y, starts[:-1]) / sizes, sizes)
    left, singular, _ = np.linalg.svd(x, full_matrices=False)
    basis = left[:, singular > 1e-8]
    return _Draws(basis, y, starts) if basis.shape[1] else None
