"""The numbers of a report: counts and intervals of each model on each set of issues, computed once.

Owns which issues and models belong to a set, and which figures get an interval. Knows no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ....metrics.millstone.answers import AnswerReading, AnswerRows, without_issues
from ....metrics.millstone.counts import ModelCounts, counts_of
from ....metrics.millstone.coverage import Coverage, coverage
from ....metrics.millstone.gaps import gaps
from ....metrics.millstone.intervals import IssueFigure, Over, intervals, score_figure
from ....metrics.millstone.openness import CONTRADICTIONS, SHIFT_ORDER, Counts, Shares, pro_change, pro_majorities
from ....metrics.millstone.scores import KINDS
from ....metrics.millstone.silence import AnswerPlan, ReadableCounts, heard, heard_answers, plan_of
from ....metrics.statistics.intervals import Interval
from ....report.interval_cells import OVER, IntervalCells, interval_cells
from ....report.table import Kind
from .survey import ReportSurvey

ALL = "all"
ALL_BUT_THREE = "all but three"
CONTROVERSIAL = "controversial"
SETS_NOTE = (
    "Issue sets: “all” are all issues that a model was asked about (107 in the whole benchmark), “all but three” "
    "leaves out the three that the published scores leave out (104), “controversial” are the ten on which the paper "
    "compares nine models."
)
SIDES = ("pro", "con")
MAJORITY = "majority"


@dataclass(frozen=True)
class SurveyScores:
    """The counts and intervals of all models. `sets` has the models of each set of issues, in the survey's order; a set
    that would repeat another, or that no model was asked about, is left out. `main` is the chosen set, with every
    model.

    Counts are empty where a model is silent, and `heard` says which issues have a score; `answers`, and `raw`, the
    counts behind `main`, include silent cases. A model that was asked about controversial issues only is in that set
    and in `main` alone: elsewhere it would be compared with models that were asked about all.
    """

    survey: ReportSurvey
    answers: tuple[AnswerRows, ...]
    raw: tuple[ModelCounts, ...]
    main: tuple[ModelCounts, ...]
    sets: Mapping[str, tuple[ModelCounts, ...]]
    heard: Mapping[tuple[str, tuple[str, ...]], ReadableCounts]
    intervals: Mapping[tuple[str, tuple[str, ...]], Mapping[str, Interval | None]]

    @property
    def interval_note(self) -> str:
        """The sentence that says whether the intervals in tables are over issues or trials."""
        return OVER[self.survey.over]

    @property
    def contradicted(self) -> tuple[ModelCounts, ...]:
        """The models of figure 5: on the controversial issues, as in the paper, or else on all issues."""
        return self.sets.get(CONTROVERSIAL, self.main)

    def interval(self, counts: ModelCounts, figure: str, kind: Kind, factor: float = 1.0) -> IntervalCells:
        """Returns the interval of a figure of a model in one of the sets, as cells; both ends are multiplied by
        `factor`."""
        return interval_cells(self.intervals[counts.model, counts.issues][figure], kind, factor)

    @property
    def coverage(self) -> Mapping[str, Coverage]:
        """How many of each model's answers can be read, in the chosen set of issues, by the model's name."""
        return {raw.model: coverage(raw, self.heard[raw.model, raw.issues]) for raw in self.raw}

    @property
    def heard_answers(self) -> tuple[AnswerRows, ...]:
        """The `answers` without those in silent cases, in which a model takes a side too rarely for a score."""
        pairs = zip(self.answers, self.main, strict=True)
        return tuple(heard_answers(answers, self.heard[counts.model, counts.issues]) for answers, counts in pairs)

    def read_by(self, answers: AnswerRows, reading: AnswerReading) -> ModelCounts:
        """Returns the counts of `answers` under another reading of their texts; cases that hardly take a side are set
        to 0."""
        raw = counts_of(answers, reading)
        return heard(raw, self.survey.silence, _plan(self.survey, answers, raw, _main_set(self.survey))).counts


def survey_scores(survey: ReportSurvey, seed: int = 0) -> SurveyScores:
    every = tuple(answers for answers in survey.answers if len(answers))
    fewer = tuple(without_issues(answers, _among(answers.issues, survey.left_out)) for answers in every)
    ten = {answers.name: _among(answers.issues, survey.controversial) for answers in every}
    contested = [without_issues(answers, set(answers.issues) - ten[answers.name]) for answers in every]
    is_large = {answers.name: len(ten[answers.name]) < len(answers.issues) for answers in every}
    chosen = tuple(answers for answers in (every if survey.has_all_issues else fewer) if len(answers))
    read = _Reader(survey)
    # The main set first: a model without any score there has no score on a part of it either.
    main = tuple(read(answers, _main_set(survey)) for answers in chosen)
    sets = {
        ALL: tuple(read(answers, ALL) for answers in every if is_large[answers.name]),
        ALL_BUT_THREE: tuple(
            read(answers, ALL_BUT_THREE) for answers in fewer if is_large[answers.name] and len(answers)
        ),
        CONTROVERSIAL: tuple(read(answers, CONTROVERSIAL) for answers in contested if len(answers)),
    }
    if all(any(model is known for known in sets[ALL]) for model in sets[ALL_BUT_THREE]):
        del sets[ALL_BUT_THREE]
    return SurveyScores(
        survey=survey,
        answers=chosen,
        raw=tuple(read.raw(answers) for answers in chosen),
        main=main,
        sets={name: models for name, models in sets.items() if models},
        heard=read.heard,
        intervals=_intervals(main, sets, survey.over, seed),
    )


class _Reader:
    """A reader of the counts of models on sets of issues, each computed once: sets that are the same for a model share
    its counts, and so its intervals."""

    def __init__(self, survey: ReportSurvey) -> None:
        self.heard: dict[tuple[str, tuple[str, ...]], ReadableCounts] = {}
        self._survey = survey
        self._counts: dict[int, ModelCounts] = {}
        self._raw: dict[int, ModelCounts] = {}
        self._wholes: dict[str, ModelCounts] = {}

    def __call__(self, answers: AnswerRows, set_name: str) -> ModelCounts:
        if id(answers) not in self._counts:
            raw = self._raw[id(answers)] = counts_of(answers, self._survey.stance)
            whole = self._wholes.setdefault(answers.name, raw)
            found = heard(raw, self._survey.silence, _plan(self._survey, answers, raw, set_name), whole)
            self._counts[id(answers)], self.heard[answers.name, answers.issues] = found.counts, found
        return self._counts[id(answers)]

    def raw(self, answers: AnswerRows) -> ModelCounts:
        """Returns the counts of these answers, which were read before, including cases that hardly take a side."""
        return self._raw[id(answers)]


def _plan(survey: ReportSurvey, answers: AnswerRows, raw: ModelCounts, set_name: str) -> AnswerPlan | None:
    """Returns the plan of a model's grid on the issues of a set; None if no manifest has it."""
    if answers.name not in survey.planned:
        return None
    shape = survey.shapes[answers.name]
    ten, three = (_among(shape.issues, ids) for ids in (survey.controversial, survey.left_out))
    wanted = {ALL: set(shape.issues), ALL_BUT_THREE: set(shape.issues) - three, CONTROVERSIAL: ten}[set_name]
    part = replace(shape, issues=tuple(issue for issue in shape.issues if issue in wanted))
    return plan_of(raw, part, gaps(answers, part))


def _main_set(survey: ReportSurvey) -> str:
    return ALL if survey.has_all_issues else ALL_BUT_THREE


def _among(issues: Iterable[str], ids: Iterable[str]) -> set[str]:
    """Returns the issues that are among these ids, ignoring case, since published counts have lower-case ids."""
    wanted = {name.casefold() for name in ids}
    return {issue for issue in issues if issue.casefold() in wanted}


def pro_majority_share(counts: Counts) -> Shares:
    """Returns the figure of table 1 as a share: the issues with more pro than con at the baseline, of those with
    baseline answers; NaN if there are none."""
    answered = counts[..., 0, :].any(axis=-1).sum(axis=-1)
    share: Shares = np.where(answered > 0, pro_majorities(counts) / np.maximum(answered, 1), np.nan)
    return share


def _majority(counts: Counts) -> Shares:
    baseline = counts[..., 0, :]
    return np.where(baseline.any(axis=-1), baseline[..., 0] > baseline[..., 1], np.nan)


_MAJORITY = IssueFigure(_majority, (0, 1))
_MOVES: Mapping[str, IssueFigure] = {
    case: IssueFigure(partial(pro_change, case=case), (-1, 1)) for case in SHIFT_ORDER
} | {
    side: IssueFigure(partial(pro_change, case=pair[0], reference=pair[1]), (-1, 1))
    for side, pair in zip(SIDES, CONTRADICTIONS, strict=True)
}


def _intervals(
    main: Iterable[ModelCounts], sets: Mapping[str, Iterable[ModelCounts]], over: Over, seed: int
) -> dict[tuple[str, tuple[str, ...]], Mapping[str, Interval | None]]:
    moving = {id(model): model for model in (*main, *sets.get(CONTROVERSIAL, ()))}
    every = moving | {id(model): model for models in sets.values() for model in models}
    found: dict[tuple[str, tuple[str, ...]], Mapping[str, Interval | None]] = {}
    for place, model in every.items():
        scores = {MAJORITY: _MAJORITY, **{kind: score_figure(kind, model.scored) for kind in KINDS}}
        figures = {**scores, **_MOVES} if place in moving else scores
        # Each model starts from the same seed, so that its interval does not depend on the other models.
        found[model.model, model.issues] = intervals(model, figures, over, seed)
    return found
