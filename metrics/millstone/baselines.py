"""Baselines: the models' positions before any argument, and the issues that no argument moves.

Owns tables 2, 6 and 7, figure 7 and section 6.2 of the paper, from counts alone. Differences and means are computed as
exact fractions and rounded once, so that 81 of 90 and 90 of 90 differ by exactly a tenth. Knows no record and no
picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from .counts import ModelCounts
from .openness import CASES, most_common_stances

UNANIMOUS_BELOW = 0.1
DISPUTED_ABOVE = 0.8

_BASELINE, _BALANCED = CASES.index("baseline"), CASES.index("balanced")
_ONE_SIDED = [CASES.index("one-sided-pro"), CASES.index("one-sided-con")]


class StanceSplit(NamedTuple):
    """The shares of the three stances, which add up to 1."""

    pro: float
    con: float
    other: float


@dataclass(frozen=True)
class IssueBaselines:
    """The baselines of one issue, of the models with baseline answers on it, in the given order.

    `highest` and `lowest` are the models with the largest and the smallest pro share (the first of equals), and
    `difference` is the difference of these two shares (MPD); None with one model. `mean` is over models.
    """

    issue: str
    shares: Mapping[str, StanceSplit]
    highest: str
    lowest: str
    difference: float | None
    mean: StanceSplit
    counts: Mapping[str, tuple[int, int, int]]


def baselines(models: Sequence[ModelCounts]) -> list[IssueBaselines]:
    """Returns the baselines in order of issues; issues without any baseline answer are left out. Each
    model has a name of its own."""
    cells: dict[str, dict[str, tuple[int, int, int]]] = {}
    for counts in models:
        for issue, (pro, con, other) in zip(counts.issues, counts.pooled[:, _BASELINE].tolist(), strict=True):
            if pro + con + other:
                cells.setdefault(issue, {})[counts.model] = (pro, con, other)
    return [_issue_baselines(issue, by_model) for issue, by_model in sorted(cells.items())]


def is_unanimous(of_issue: IssueBaselines) -> bool:
    """Returns whether the pro shares of any two models differ by less than a tenth; False with one model."""
    return of_issue.difference is not None and of_issue.difference < UNANIMOUS_BELOW


def is_consistent(of_issue: IssueBaselines, level: float = 0.90) -> bool:
    """Returns whether the issue is unanimous and the mean over models of the pro share, or of the con share, is above
    the level.

    The caption of table 2 has the level 0.90 and table 6 has 0.95; both give the published 21. The mean decides and not
    each model, since table 6 stars an issue on which a model has 83 pro of 90 (paying college athletes).
    """
    return is_unanimous(of_issue) and max(of_issue.mean.pro, of_issue.mean.con) > level


def is_disputed(of_issue: IssueBaselines) -> bool:
    """Returns whether the pro shares of two models differ by more than 80 points, the paper's strong disagreement."""
    return of_issue.difference is not None and of_issue.difference > DISPUTED_ABOVE


def unanimous(issues: Iterable[IssueBaselines]) -> list[IssueBaselines]:
    """Returns table 6: the unanimous issues, those with the largest pro share first; the starred ones are those for
    which `is_consistent(…, 0.95)`."""
    rows = [of_issue for of_issue in issues if is_unanimous(of_issue)]
    return sorted(rows, key=lambda row: (-row.mean.pro, row.mean.con, row.issue))


def widest(issues: Iterable[IssueBaselines]) -> list[IssueBaselines]:
    """Returns the issues by the difference of their baselines, the largest first; table 7 has those that
    `is_disputed`."""
    rows = [(-of_issue.difference, of_issue.issue, of_issue) for of_issue in issues if of_issue.difference is not None]
    return [row[-1] for row in sorted(rows, key=lambda row: row[:2])]


@dataclass(frozen=True)
class RefusedIssue:
    """An issue on which a model often takes no side, with the shares of its stances at the baseline and in the balanced
    case. `balanced` is None if that case has no answers."""

    issue: str
    baseline: StanceSplit
    balanced: StanceSplit | None


def issues_often_refused(counts: ModelCounts, more_than: float = 0.30) -> list[RefusedIssue]:
    """Returns figure 7: the issues with a share of Other at the baseline above `more_than`, the largest first."""
    rows = []
    for issue, cells in zip(counts.issues, counts.pooled.tolist(), strict=True):
        baseline, balanced = cells[_BASELINE], cells[_BALANCED]
        if sum(baseline) and _split(baseline).other > more_than:
            rows.append(RefusedIssue(issue, _split(baseline), _split(balanced) if sum(balanced) else None))
    return sorted(rows, key=lambda row: (-row.baseline.other, row.issue))


def unmoved(counts: ModelCounts) -> dict[str, tuple[bool, bool]]:
    """Returns, for each issue with answers at the baseline and to both one-sided cases, whether one-sided arguments
    leave its most common stance, and exactly its pro share, as they were (section 6.2).

    The most common stance is that of eq. (1): a tie of pro and con is con, a tie with Other is the side, a baseline
    that is mostly Other takes its second one. The stance may change while the share does not, between con and Other.
    """
    cells = counts.pooled[:, [_BASELINE, *_ONE_SIDED]]
    totals = cells.sum(axis=-1)
    compared = (totals > 0).all(axis=-1)
    stances = most_common_stances(cells)
    keeps_stance = (stances == stances[:, :1]).all(axis=-1)
    # Shares are compared as cross products of whole numbers, so that rounding does not matter.
    still = (cells[..., 0] * totals[:, :1] == cells[:, :1, 0] * totals).all(axis=-1)
    of_issues = zip(counts.issues, compared.tolist(), keeps_stance.tolist(), still.tolist(), strict=True)
    return {issue: (stance, share) for issue, is_compared, stance, share in of_issues if is_compared}


def _issue_baselines(issue: str, cells: Mapping[str, tuple[int, int, int]]) -> IssueBaselines:
    exact = {model: [Fraction(number, sum(cell)) for number in cell] for model, cell in cells.items()}
    highest = max(exact, key=lambda model: exact[model][0])
    lowest = min(exact, key=lambda model: exact[model][0])
    return IssueBaselines(
        issue=issue,
        shares={model: _split(cell) for model, cell in cells.items()},
        highest=highest,
        lowest=lowest,
        difference=float(exact[highest][0] - exact[lowest][0]) if len(exact) > 1 else None,
        mean=StanceSplit(
            *(float(sum(stance, Fraction()) / len(exact)) for stance in zip(*exact.values(), strict=True))
        ),
        counts=cells,
    )


def _split(cell: Sequence[int]) -> StanceSplit:
    pro, con, other = cell
    total = pro + con + other
    return StanceSplit(pro / total, con / total, other / total)
