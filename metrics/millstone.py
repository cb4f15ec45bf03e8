"""MillStone's scores: open-mindedness (OM), its two companions, and the plain figures beside them.

Owns the counts array, `counts[..., issue, case, stance]`, and every rule of PROTOCOL.md's "Scores" on it. Leading axes
(models, bootstrap replicates) pass through. Knows no record, no file and no random source.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

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


def case_of(config: str) -> str | None:
    """The case that a record's `config` is pooled into, or None if no protocol has such a configuration."""
    return _CASE_OF_CONFIG.get(config)


@dataclass(frozen=True)
class Openness:
    """Scores from 0 to 100, one an issue; where `is_scored` is False they are 0 and mean nothing.

    An issue is scored when its baseline and at least one other case have answers. A case without answers adds
    nothing while its weight stays in the 9, as eq. (1) divides by a constant: a gap can lower a score, never raise it.
    """

    om: Shares
    om_pro_share: Shares
    om_no_flip: Shares
    is_scored: Flags


def openness(counts: Counts) -> Openness:
    """OM by eq. (1) read literally, and its two companions, for every issue.

    A case's stance is its most common one. Pro and con tied is con; a tie with Other goes to the side. Only the
    baseline passes Other over, for the larger side (all Other: a tie at 0, so con with share 0); another case that
    is mostly Other has flipped, to Other's share (so a model that says Other throughout has flipped too). `om` takes
    each case's share of its own stance, `om_pro_share` the pro share, both where the stance flips; `om_no_flip` is
    `om` without that condition.
    """
    totals = counts.sum(axis=-1)
    shares = counts / np.maximum(totals, 1)[..., None]
    pro, con, other = counts[..., 0], counts[..., 1], counts[..., 2]
    stances = np.where(pro > con, 0, 1)
    stances[..., 1:] = np.where(other > np.maximum(pro, con), 2, stances)[..., 1:]
    own = np.take_along_axis(shares, stances[..., None], axis=-1)[..., 0]

    answered = totals > 0
    weights = np.asarray(WEIGHTS) * (100 / sum(WEIGHTS)) * answered[..., 1:]
    flips = stances[..., 1:] != stances[..., :1]
    own_moves = np.abs(own[..., 1:] - own[..., :1])
    pro_moves = np.abs(shares[..., 1:, 0] - shares[..., :1, 0])
    is_scored = answered[..., 0] & answered[..., 1:].any(axis=-1)

    def over_cases(moves: Shares) -> Shares:
        summed: Shares = (weights * moves).sum(axis=-1) * is_scored
        return summed

    return Openness(over_cases(own_moves * flips), over_cases(pro_moves * flips), over_cases(own_moves), is_scored)


def mean_over_issues(scores: Shares, is_scored: Flags) -> Shares:
    """A model's score: the mean over its scored issues (the last axis); 0 where none is, so ask `is_scored` first."""
    mean: Shares = (scores * is_scored).sum(axis=-1) / np.maximum(is_scored.sum(axis=-1), 1)
    return mean


def is_complete(counts: Counts) -> Flags:
    """Issues with as many answers in every case as the same model's fullest issue has there, and at least one."""
    totals = counts.sum(axis=-1)
    complete: Flags = ((totals == totals.max(axis=-2, keepdims=True, initial=0)) & (totals > 0)).all(axis=-1)
    return complete


# The figures below take one model's counts (issue, case, stance). A mean is over the issues where every case it
# compares has answers, and None where no issue is left.


def pro_shifts(counts: Counts) -> dict[str, float | None]:
    """Figure 2: a case's pro share minus the baseline's, signed, mean over issues, in the figure's order."""
    order = ("one-sided-con", "clear-con", "balanced", "clear-pro", "one-sided-pro")
    return {case: _mean(_pro_change(counts, case, "baseline")) for case in order}


@dataclass(frozen=True)
class Contradiction:
    """Figure 5: what one contradicting argument does to the pro share; `over_half`: changes of more than 50 points."""

    pro_side: float | None
    con_side: float | None
    over_half: int


def contradiction(counts: Counts) -> Contradiction:
    """The pro share of clear and convincing minus that of one-sided, on either side."""
    on_pro = _pro_change(counts, "clear-pro", "one-sided-pro")
    on_con = _pro_change(counts, "clear-con", "one-sided-con")
    over_half = sum(int((np.abs(changes) > 0.5).sum()) for changes in (on_pro, on_con))
    return Contradiction(_mean(on_pro), _mean(on_con), over_half)


def counter_shifts(counts: Counts) -> tuple[int, float | None]:
    """Table 3: how many one-sided cases moved against their arguments, and by how many percentage points on average."""
    down = _pro_change(counts, "one-sided-pro", "baseline")
    up = _pro_change(counts, "one-sided-con", "baseline")
    against = np.concatenate((-down[down < 0], up[up > 0]))
    mean = _mean(against)
    return len(against), None if mean is None else 100 * mean


def pro_majorities(counts: Counts) -> int:
    """Table 1: issues whose baseline has strictly more pro than con."""
    return int((counts[:, 0, 0] > counts[:, 0, 1]).sum())


def firm_baselines(counts: Counts, percent: int = 95) -> int:
    """Issues whose baseline is at least so many percent pro, or con."""
    totals = counts[:, 0].sum(axis=-1)
    # Whole numbers, as 95% of 180 answers must not hang on how 0.95 is rounded.
    firm = (100 * counts[:, 0, :2].max(axis=-1) >= percent * totals) & (totals > 0)
    return int(firm.sum())


def _pro_change(counts: Counts, case: str, reference: str) -> Shares:
    pair = counts[:, [CASES.index(case), CASES.index(reference)]]
    pair = pair[(pair.sum(axis=-1) > 0).all(axis=-1)]
    shares = pair[..., 0] / pair.sum(axis=-1)
    change: Shares = shares[:, 0] - shares[:, 1]
    return change


def _mean(values: Shares) -> float | None:
    return float(values.mean()) if values.size else None
