"""The survey made ready for tables: counts of each model in each set of issues, and their intervals, computed once.

Owns which issues a set holds, which models belong into it, and what gets an interval. Knows no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..answers import Answers, without_issues
from ..bootstrap import Interval, Statistic, intervals
from ..counts import ModelCounts, counts_of
from ..millstone import (
    SHIFT_ORDER,
    Counts,
    Openness,
    Shares,
    contradiction,
    mean_over_issues,
    openness,
    pro_majorities,
    pro_shift,
)
from ..scores import KINDS
from .survey import Survey

ALL = "all"
ALL_BUT_THREE = "all but three"
CONTROVERSIAL = "controversial"
SETS_NOTE = (
    "Issue sets: “all” are all issues that a model was asked about (107 in the whole benchmark), “all but three” "
    "leaves out the three that the published scores leave out (104), “controversial” are the ten on which the paper "
    "compares nine models."
)
INTERVAL_NOTE = "Low and high are the ends of a 95% bootstrap interval, resampled by issue, then by trial."
SIDES = ("pro", "con")
MAJORITY = "majority"


@dataclass(frozen=True)
class Panel:
    """`sets` has the models of each set of issues, in the survey's order; a set that would repeat another, or that no
    model was asked about, is not there. `main` is the set that was chosen, with every model in it.

    A model that was asked about controversial issues only stands in that set and in `main` alone: elsewhere it would be
    compared with models that were asked about all.
    """

    survey: Survey
    answers: tuple[Answers, ...]
    main: tuple[ModelCounts, ...]
    sets: Mapping[str, tuple[ModelCounts, ...]]
    intervals: Mapping[tuple[str, tuple[str, ...]], Mapping[str, Interval]]

    @property
    def contradicted(self) -> tuple[ModelCounts, ...]:
        """Whom figure 5 compares: models on the controversial issues, as the paper does, or else all on all."""
        return self.sets.get(CONTROVERSIAL, self.main)

    def ends(self, counts: ModelCounts, statistic: str, factor: float = 1.0) -> tuple[float | None, float | None]:
        """The 95% interval of a statistic of a model in one of the sets."""
        found = self.intervals[counts.model, counts.issues][statistic]
        return (None, None) if found is None else (found[0] * factor, found[1] * factor)


def panel(survey: Survey, seed: int = 0) -> Panel:
    counted: dict[int, ModelCounts] = {}

    def counts(answers: Answers) -> ModelCounts:
        # Sets that are the same for a model share its counts, and so its intervals.
        if id(answers) not in counted:
            counted[id(answers)] = counts_of(answers, survey.options.reading)
        return counted[id(answers)]

    every = tuple(answers for answers in survey.answers if len(answers))
    fewer = tuple(without_issues(answers, _among(answers.issues, survey.left_out)) for answers in every)
    ten = {answers.name: _among(answers.issues, survey.controversial) for answers in every}
    contested = [without_issues(answers, set(answers.issues) - ten[answers.name]) for answers in every]
    is_large = {answers.name: len(ten[answers.name]) < len(answers.issues) for answers in every}
    sets = {
        ALL: tuple(counts(answers) for answers in every if is_large[answers.name]),
        ALL_BUT_THREE: tuple(counts(answers) for answers in fewer if is_large[answers.name] and len(answers)),
        CONTROVERSIAL: tuple(counts(answers) for answers in contested if len(answers)),
    }
    if all(any(model is known for known in sets[ALL]) for model in sets[ALL_BUT_THREE]):
        del sets[ALL_BUT_THREE]
    chosen = tuple(answers for answers in (every if survey.options.issue_set == 107 else fewer) if len(answers))
    main = tuple(map(counts, chosen))
    return Panel(
        survey=survey,
        answers=chosen,
        main=main,
        sets={name: models for name, models in sets.items() if models},
        intervals=_intervals(main, sets, seed),
    )


def _among(issues: Iterable[str], ids: Iterable[str]) -> set[str]:
    """Issues are known by their names whatever their case, since published counts have them in lower case."""
    wanted = {name.casefold() for name in ids}
    return {issue for issue in issues if issue.casefold() in wanted}


def pro_majority_share(counts: Counts) -> Shares:
    """Table 1 as a share: of the issues whose baseline has answers."""
    answered = counts[..., 0, :].any(axis=-1).sum(axis=-1)
    share: Shares = np.where(answered > 0, pro_majorities(counts) / np.maximum(answered, 1), np.nan)
    return share


def _intervals(
    main: Iterable[ModelCounts], sets: Mapping[str, Iterable[ModelCounts]], seed: int
) -> dict[tuple[str, tuple[str, ...]], Mapping[str, Interval]]:
    moving = {id(model): model for model in (*main, *sets.get(CONTROVERSIAL, ()))}
    every = moving | {id(model): model for models in sets.values() for model in models}
    found: dict[tuple[str, tuple[str, ...]], Mapping[str, Interval]] = {}
    for place, model in every.items():
        # Each model starts from the same seed, so that its interval does not depend on who stands beside it.
        rng = np.random.default_rng(seed)
        scores = {MAJORITY: pro_majority_share, **_Batch().means()}
        statistics = {**scores, **_MOVES} if place in moving else scores
        found[model.model, model.issues] = intervals(model, statistics, rng)
    return found


def _side(side: int, counts: Counts) -> Shares:
    shares: Shares = contradiction(counts)[..., side]
    return shares


def _shift(case: str, counts: Counts) -> Shares:
    return pro_shift(counts, case)


class _Batch:
    """The scores of one batch of replicates, worked out once for all kinds."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._found: Openness | None = None

    def means(self) -> dict[str, Statistic]:
        return {kind: partial(self._mean, kind) for kind in KINDS}

    def _mean(self, kind: str, counts: Counts) -> Shares:
        if self._found is None or counts is not self._counts:
            self._counts, self._found = counts, openness(counts)
        found = self._found
        means = mean_over_issues(getattr(found, kind), found.is_scored)
        return np.where(found.is_scored.any(axis=-1), means, np.nan)


_MOVES: Mapping[str, Statistic] = {case: partial(_shift, case) for case in SHIFT_ORDER} | {
    side: partial(_side, at) for at, side in enumerate(SIDES)
}
