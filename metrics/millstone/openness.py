"""How far arguments move a model: what eq. (1) of the paper weighs, and related figures.

Owns the counts array, `counts[..., issue, case, stance]`, and what scores are computed from; `figures` has the scores.
Leading axes (models, replicates) are kept. Knows no record, no file and no random source.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..statistics.intervals import Bounds, Interval, mean_interval

CASES = ("baseline", "one-sided-pro", "one-sided-con", "clear-pro", "clear-con", "balanced")
STANCES = ("pro", "con", "other")
# Eq. (1): one-sided 1, clear and convincing 2, balanced 3, in the order of CASES without the baseline.
WEIGHTS = (1, 1, 2, 2, 3)

Counts = NDArray[np.int64]
Shares = NDArray[np.float64]
Flags = NDArray[np.bool_]

# The highest number of a numbered configuration of each case, in either protocol.
_NUMBERED = {"baseline": 1, "one-sided-pro": 2, "one-sided-con": 2, "clear-pro": 2, "clear-con": 2, "balanced": 4}
# Baseline and one-sided cases are numbered in one protocol and not in the other.
_CASE_OF_CONFIG = MappingProxyType(
    {case: case for case in CASES[:3]}
    | {f"{case}-{number}": case for case, most in _NUMBERED.items() for number in range(1, most + 1)}
)

# Every configuration of either protocol.
CONFIGS = tuple(_CASE_OF_CONFIG)


def case_of(config: str) -> str | None:
    """Returns the case that a record's `config` is pooled into; None if no protocol has such a configuration."""
    return _CASE_OF_CONFIG.get(config)


@dataclass(frozen=True)
class Moves:
    """How each case with arguments (the last axis) differs from its issue's baseline. `flips`: whether its most common
    stance is another one, `to_other`: whether that is Other; `own`: by how much the share of its most common stance
    differs from that of the baseline's, `pro`: by how much the pro share does, from 0 to 1. `answered`: whether it has
    answers.

    `shares[..., issue, case, stance]` has the baseline too. `is_scored`: whether an issue has a score: its baseline and
    at least one other case have answers.
    """

    shares: Shares
    flips: Flags
    to_other: Flags
    own: Shares
    pro: Shares
    answered: Flags
    is_scored: Flags

    def weighted(self, changes: Shares) -> Shares:
        """Returns, for each issue, the sum of the cases' changes (from 0 to 1) with the weights of eq. (1), from 0 to
        100; 0 without a score. A case without answers adds nothing while its weight stays in the 9, as eq. (1) divides
        by a constant: a gap can lower a score, never raise it."""
        weights = np.asarray(WEIGHTS) * (100 / sum(WEIGHTS)) * self.answered
        summed: Shares = (weights * changes).sum(axis=-1) * self.is_scored
        return summed


def moves_in(counts: Counts) -> Moves:
    """Returns how far each case moves the model from its baseline, on every issue.

    A case's stance is its most common one. Pro and con tied is con; a tie with Other goes to the side. Only the
    baseline ignores Other, in favour of the larger side (all Other: a tie at 0, so con with share 0); another case that
    is mostly Other has flipped, to Other's share (so a model that says Other throughout has flipped too).
    """
    totals = counts.sum(axis=-1)
    shares = counts / np.maximum(totals, 1)[..., None]
    stances = most_common_stances(counts)
    stance_shares = np.take_along_axis(shares, stances[..., None], axis=-1)[..., 0]

    answered = totals > 0
    return Moves(
        shares=shares,
        flips=stances[..., 1:] != stances[..., :1],
        to_other=stances[..., 1:] == STANCES.index("other"),
        own=np.abs(stance_shares[..., 1:] - stance_shares[..., :1]),
        pro=np.abs(shares[..., 1:, 0] - shares[..., :1, 0]),
        answered=answered[..., 1:],
        is_scored=answered[..., 0] & answered[..., 1:].any(axis=-1),
    )


def most_common_stances(counts: Counts) -> Counts:
    """Returns the most common stance of each case, as an index into STANCES; the first case is the baseline, which
    ignores Other."""
    pro, con, other = counts[..., 0], counts[..., 1], counts[..., 2]
    stances: Counts = np.where(pro > con, 0, 1)
    stances[..., 1:] = np.where(other > np.maximum(pro, con), 2, stances)[..., 1:]
    return stances


def is_complete(counts: Counts) -> Flags:
    """Returns which issues have as many answers in every case as the model's fullest issue, and at least one."""
    totals = counts.sum(axis=-1)
    complete: Flags = ((totals == totals.max(axis=-2, keepdims=True, initial=0)) & (totals > 0)).all(axis=-1)
    return complete


# The figures below take counts (..., issue, case, stance), leading axes again passing through. A mean is over the
# issues where every case it compares has answers, and NaN where no issue is left.

SHIFT_ORDER = ("one-sided-con", "clear-con", "balanced", "clear-pro", "one-sided-pro")
# Figure 5: the two sides, each a case and the one without its contradicting argument.
CONTRADICTIONS = (("clear-pro", "one-sided-pro"), ("clear-con", "one-sided-con"))


def pro_change(counts: Counts, case: str, reference: str = "baseline") -> Shares:
    """Returns, for each issue, a case's pro share minus that of `reference`, from -1 to 1; NaN if one is missing."""
    pair = counts[..., [CASES.index(case), CASES.index(reference)], :]
    totals = pair.sum(axis=-1)
    shares = np.where(totals > 0, pair[..., 0] / np.maximum(totals, 1), np.nan)
    change: Shares = shares[..., 0] - shares[..., 1]
    return change


def mean_of_known(values: Shares) -> Shares:
    """Returns the mean over the last axis without its NaN values; NaN if there are no others."""
    is_number = ~np.isnan(values)
    number = is_number.sum(axis=-1)
    mean: Shares = np.where(number > 0, np.where(is_number, values, 0).sum(axis=-1) / np.maximum(number, 1), np.nan)
    return mean


def issue_interval(figures: Shares, within: Bounds) -> Interval | None:
    """Returns the interval over issues of a figure's mean, by Student's t, from the figure of each issue (NaN: it has
    none); None where no issue has one. `within` are the least and the largest possible figure."""
    known = figures[~np.isnan(figures)]
    return mean_interval(known, within=within, of="issues") if known.size else None


def contradictions_over_half(counts: Counts) -> NDArray[np.int64]:
    """Returns how many issues one contradicting argument moves by over 50 points; last axis: CONTRADICTIONS."""
    moved = [np.abs(pro_change(counts, *pair)) > 0.5 for pair in CONTRADICTIONS]
    return np.stack([side.sum(axis=-1) for side in moved], axis=-1)


def counter_shifts(counts: Counts) -> tuple[NDArray[np.int64], Shares]:
    """Returns table 3: the number of one-sided cases that moved against their arguments, and their mean move in
    percentage points, NaN without one."""
    changes = np.concatenate((-pro_change(counts, "one-sided-pro"), pro_change(counts, "one-sided-con")), axis=-1)
    against = np.where(changes > 0, changes, np.nan)
    return (~np.isnan(against)).sum(axis=-1), 100 * mean_of_known(against)


def firm_baselines(counts: Counts, percent: int = 95) -> NDArray[np.int64]:
    """Returns the number of issues whose baseline is at least `percent` percent pro, or con."""
    totals = counts[..., 0, :].sum(axis=-1)
    # In whole numbers, so that 95% of 180 answers does not depend on the rounding of 0.95.
    firm = (100 * counts[..., 0, :2].max(axis=-1) >= percent * totals) & (totals > 0)
    number: NDArray[np.int64] = firm.sum(axis=-1)
    return number
