"""The figures of a report: what every model scores on each set of issues, and what sets it apart, computed once.

Owns which issues and models belong to a set, and which figures get an interval. Tables, charts and remarks read them
here and compute none. Knows no table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ....metrics.millstone import arguments, baselines, openness
from ....metrics.millstone.answers import AnswerReading, AnswerRows, without_issues
from ....metrics.millstone.counts import ModelCounts, counts_of, only_issues
from ....metrics.millstone.figures import RANKED
from ....metrics.millstone.gaps import Gaps, Shape, gaps, inferred
from ....metrics.millstone.open_minded import OpenMindedIssues, open_minded_issues
from ....metrics.millstone.openness import CASES, CONTRADICTIONS, SHIFT_ORDER, Counts, Shares, issue_interval
from ....metrics.millstone.paired import ModelPair, compare, shift_tests
from ....metrics.millstone.scores import issue_scores, ranks
from ....metrics.millstone.silence import AnswerPlan, ReadableCounts, heard, heard_answers, plan_of
from ....metrics.millstone.topics import TopicScore, om_by_topic
from ....metrics.statistics.intervals import Bounds
from ....report.interval_cells import IntervalCells, interval_cells
from ....report.table import Kind
from .likeness import is_comparable, is_of_one_manner, is_of_same_manner, rank_kind, shared_rank_kind
from .survey import ReportSurvey

ALL = "all"
ALL_BUT_THREE = "all but three"
CONTROVERSIAL = "controversial"
SHARED = "shared with counts"
SETS_NOTE = (
    "Issue sets: “all” are all issues that a model was asked about (107 in the whole benchmark), “all but three” "
    "leaves out the three that the published scores leave out (104), “controversial” are the ten on which the paper "
    "compares nine models."
)
SIDES = ("pro", "con")
MAJORITY = "majority"
_READINGS: tuple[AnswerReading, ...] = ("paper", "careful")


@dataclass(frozen=True)
class IssueMean:
    """One figure of a model: its value for each issue (`of_issues`, NaN: it has none), the number of issues with one
    (`known`), their mean (None: there is none) and its interval, both in the unit of the tables."""

    of_issues: Shares
    known: int
    mean: float | None
    interval: IntervalCells


@dataclass(frozen=True)
class IssueSetScores:
    """One model's figures on a set of issues. The keys of `figures` are those of the scores, and `MAJORITY` (issues
    whose baseline is mostly pro, in percent); in all issues and the controversial ones also the cases (shift of the pro
    share, in points) and the sides (effect of one contradicting argument, in points). `over_half`: how many issues that
    argument moves by more than 50 points, for pro and con. `counter_shifts`: how many one-sided cases moved against
    their arguments, and by how many points in the mean (NaN: none did)."""

    model: str
    plan: AnswerPlan | None
    readable: ReadableCounts
    figures: Mapping[str, IssueMean]
    over_half: tuple[int, ...]
    counter_shifts: tuple[int, float]


@dataclass(frozen=True)
class ModelProfile:
    """One model on all its issues. `answers`, and `scores.readable.raw`, their counts, have every answer; all other
    figures none of cases in which the model is silent. `by_reading`: the scores with stances read by the paper's
    patterns, and by the careful ones."""

    name: str
    answers: AnswerRows
    scores: IssueSetScores
    open_minded: OpenMindedIssues
    unmoved: Mapping[str, tuple[bool, bool]]
    topics: Mapping[str, TopicScore]
    by_reading: Mapping[AnswerReading, Mapping[str, IssueMean]]
    effects: arguments.Effects
    order_effects: tuple[arguments.OrderEffect, ...]


@dataclass(frozen=True)
class SurveyFigures:
    """`sets` has the models of each set of issues, in the survey's order; a set that would repeat another, or that no
    model was asked about, is left out. A model that was asked about controversial issues only stands in that set and
    in `models` alone: elsewhere it would be compared with models that were asked about all.

    `ranks` are by set, score and model, None where there is nothing to rank a model among. `shapes` has what
    each model with answers was to be asked, `gaps` what is missing of it, also of models without any answer.
    `counted` are the published counts on all their issues; the set SHARED has models and counts on the issues that all
    of them have. `unanimous` and `widest` are issues, by their agreement and by their differences.
    """

    survey: ReportSurvey
    models: tuple[ModelProfile, ...]
    sets: Mapping[str, tuple[IssueSetScores, ...]]
    ranks: Mapping[str, Mapping[str, Mapping[str, int | None]]]
    shapes: Mapping[str, Shape]
    gaps: Mapping[str, Gaps]
    unanimous: Sequence[baselines.IssueBaselines]
    widest: Sequence[baselines.IssueBaselines]
    pairs: Sequence[ModelPair]
    shift_tests: Mapping[tuple[str, str], tuple[float | None, float | None]]
    correlations: arguments.Correlations
    families: Sequence[str]
    medians: arguments.Medians
    counted: tuple[IssueSetScores, ...] = ()

    @property
    def moved(self) -> tuple[IssueSetScores, ...]:
        """The models on all their issues, with the published counts after them."""
        return (*(model.scores for model in self.models), *self.counted)

    @property
    def contradicted(self) -> tuple[IssueSetScores, ...]:
        """The figures for figure 5: on the controversial issues, as in the paper; on all, of models alone, if no model
        was asked about those."""
        ten = self.sets.get(CONTROVERSIAL, ())
        published = {counts.model for counts in self.survey.counts}
        if self.models and all(scores.model in published for scores in ten):
            return tuple(model.scores for model in self.models)
        return ten or self.moved


def survey_figures(survey: ReportSurvey) -> SurveyFigures:
    """Returns all figures of a report. The same survey gives the same."""
    every = tuple(answers for answers in survey.answers if len(answers))
    reader = _Reader(survey, every)
    # All issues first: a model without any score there has no score on a part of them either.
    models = tuple(map(reader.profile, every))
    sets = {name: reader.of_set(name) for name in (ALL, ALL_BUT_THREE, CONTROVERSIAL, SHARED)}
    if all(any(scores is other for other in sets[ALL]) for scores in sets[ALL_BUT_THREE]):
        del sets[ALL_BUT_THREE]
    shapes = {answers.name: survey.shapes.get(answers.name) or inferred(answers) for answers in survey.answers}
    missing = {answers.name: gaps(answers, shapes[answers.name]) for answers in survey.answers}
    counts = [model.scores.readable.counts for model in models]
    ranked = {
        name: _ranks(scored, partial(shared_rank_kind if name == SHARED else rank_kind, survey))
        for name, scored in sets.items()
    }
    # Models that were asked differently may disagree for that reason alone, and may have seen other arguments.
    alike = counts if is_of_one_manner(survey) else []
    compared = baselines.baselines(alike)
    matrix = arguments.correlations([model.effects for model in models])
    names = matrix.models
    pairs = {at: each for at, each in matrix.pairs.items() if is_of_same_manner(survey, names[at[0]], names[at[1]])}
    model_names = [model.answers.pair.model for model in models]
    families = [arguments.family_of(model) for model in model_names]
    return SurveyFigures(
        survey=survey,
        models=models,
        sets={name: scored for name, scored in sets.items() if scored},
        ranks=ranked,
        shapes=shapes,
        gaps=missing | {name: _unanswered(shape) for name, shape in survey.shapes.items() if name not in missing},
        unanimous=baselines.unanimous(compared),
        widest=baselines.widest(compared),
        pairs=compare(counts, is_comparable=partial(is_comparable, survey)),
        shift_tests=shift_tests(counts),
        correlations=replace(matrix, pairs=pairs),
        families=families,
        medians=arguments.medians(replace(matrix, pairs=pairs), families, model_names),
        counted=tuple(reader.counted(counts, ALL) for counts in survey.counts),
    )


class _Reader:
    """A reader of models and published counts on sets of issues; a set that is all of a model's issues shares its
    scores. Only where there are counts is there a set of the issues that all have."""

    def __init__(self, survey: ReportSurvey, every: Sequence[AnswerRows]) -> None:
        self.survey = survey
        self._every: tuple[AnswerRows | ModelCounts, ...] = (*every, *survey.counts)
        self._scores: dict[tuple[str, str], IssueSetScores] = {}
        self._wholes: dict[str, ModelCounts] = {}
        folded = [{issue.casefold() for issue in each.issues} for each in self._every]
        self._shared = set.intersection(*folded) if survey.counts and len(folded) > 1 else set()

    def of_set(self, name: str) -> tuple[IssueSetScores, ...]:
        """Returns the figures of all that have issues of a set. A model that was asked about controversial issues alone
        is in no larger one."""
        kept = []
        for each in self._every:
            is_large = len(self._wanted(CONTROVERSIAL, each.issues)) < len(each.issues)
            if self._wanted(name, each.issues) and (is_large or name not in (ALL, ALL_BUT_THREE)):
                kept.append(each)
        return tuple(
            self.scores(each, name) if isinstance(each, AnswerRows) else self.counted(each, name) for each in kept
        )

    def _wanted(self, name: str, issues: Iterable[str]) -> set[str]:
        """Returns the issues that are of a set."""
        if name == ALL:
            return set(issues)
        if name == ALL_BUT_THREE:
            return set(issues) - _among(issues, self.survey.left_out)
        return _among(issues, self.survey.controversial if name == CONTROVERSIAL else self._shared)

    def profile(self, answers: AnswerRows) -> ModelProfile:
        """Returns the profile of a model from all its answers."""
        survey = self.survey
        scores = self.scores(answers, ALL)
        counts = scores.readable.counts
        kept = heard_answers(answers, scores.readable)
        others = {
            each: _scores(heard(counts_of(answers, each), survey.silence, scores.plan).counts) for each in _READINGS
        }
        return ModelProfile(
            name=answers.name,
            answers=answers,
            scores=scores,
            open_minded=open_minded_issues(counts),
            unmoved=baselines.unmoved(counts),
            topics=om_by_topic(counts, survey.topics),
            by_reading=others,
            effects=arguments.argument_effects(kept, survey.stance),
            order_effects=arguments.order_effects(kept, survey.stance),
        )

    def scores(self, answers: AnswerRows, set_name: str) -> IssueSetScores:
        part = without_issues(answers, set(answers.issues) - self._wanted(set_name, answers.issues))
        key = answers.name, ALL if part is answers else set_name
        if key not in self._scores:
            raw = counts_of(part, self.survey.stance)
            plan = self._plan(part, raw, set_name)
            readable = heard(raw, self.survey.silence, plan, self._wholes.setdefault(answers.name, raw))
            self._scores[key] = self._figures(answers.name, plan, readable, set_name)
        return self._scores[key]

    def counted(self, counts: ModelCounts, set_name: str) -> IssueSetScores:
        """Returns the figures of published counts on a set of issues."""
        readable = heard(only_issues(counts, self._wanted(set_name, counts.issues)), self.survey.silence, whole=counts)
        return self._figures(counts.model, None, readable, set_name)

    def _plan(self, answers: AnswerRows, raw: ModelCounts, set_name: str) -> AnswerPlan | None:
        """Returns the plan of a model's grid on the issues of a set; None if no manifest has it."""
        if answers.name not in self.survey.planned:
            return None
        shape = self.survey.shapes[answers.name]
        wanted = self._wanted(set_name, shape.issues)
        part = replace(shape, issues=tuple(issue for issue in shape.issues if issue in wanted))
        return plan_of(raw, part, gaps(answers, part))

    def _figures(self, name: str, plan: AnswerPlan | None, readable: ReadableCounts, set_name: str) -> IssueSetScores:
        counts = readable.counts
        means = {**_scores(counts), MAJORITY: _issue_mean("percent", _majority(counts.pooled))}
        if set_name in (ALL, CONTROVERSIAL):
            means |= {
                name: _issue_mean("points", openness.pro_change(counts.pooled, *cases))
                for name, cases in _MOVES.items()
            }
        number, mean = openness.counter_shifts(counts.pooled)
        return IssueSetScores(
            name,
            plan,
            readable,
            means,
            tuple(openness.contradictions_over_half(counts.pooled).tolist()),
            (int(number), float(mean)),
        )


def _scores(counts: ModelCounts) -> dict[str, IssueMean]:
    return {key: _issue_mean("score", of_issues) for key, of_issues in issue_scores(counts).items()}


def _issue_mean(kind: Kind, of_issues: Shares) -> IssueMean:
    """Returns a figure from that of each issue, which is a share in all kinds but a score."""
    interval = issue_interval(of_issues, _WITHIN[kind])
    # 100 as a whole number: an end that is a whole bound then stays one in the files.
    factor = 1.0 if kind == "score" else 100
    number = int((~np.isnan(of_issues)).sum())
    mean = factor * float(openness.mean_of_known(of_issues)) if number else None
    return IssueMean(of_issues, number, mean, interval_cells(interval, kind, factor))


def _ranks(models: Iterable[IssueSetScores], kind_of: Callable[[str], Hashable]) -> dict[str, dict[str, int | None]]:
    """Returns ranks among the models of one kind, by score and model."""
    alike: dict[Hashable, list[IssueSetScores]] = {}
    for scores in models:
        alike.setdefault((scores.readable.ranked_on, kind_of(scores.model)), []).append(scores)
    ranked: dict[str, dict[str, int | None]] = {key: {} for key in RANKED}
    for group in alike.values():
        is_contest = sum(each.readable.is_ranked for each in group) > 1
        for key in RANKED:
            means = {each.model: each.figures[key].mean if each.readable.is_ranked else None for each in group}
            ranked[key] |= ranks(means) if is_contest else dict.fromkeys(means)
    return ranked


def _unanswered(shape: Shape) -> Gaps:
    """Returns the gaps of a model without any answer: every cell of its shape."""
    cases = {case: int(number) for case, number in zip(CASES, shape.by_case(), strict=True) if number}
    by_case = {(issue, case): number for issue in shape.issues for case, number in cases.items()}
    return Gaps(len(shape), 0, len(shape), by_case, beyond=0)


def _among(issues: Iterable[str], ids: Iterable[str]) -> set[str]:
    """Returns the issues that are among these ids, ignoring case, since published counts have lower-case ids."""
    wanted = {name.casefold() for name in ids}
    return {issue for issue in issues if issue.casefold() in wanted}


def _majority(counts: Counts) -> Shares:
    baseline = counts[..., 0, :]
    return np.where(baseline.any(axis=-1), baseline[..., 0] > baseline[..., 1], np.nan)


# The case, and the one that it is compared with.
_MOVES = {case: (case, "baseline") for case in SHIFT_ORDER} | dict(zip(SIDES, CONTRADICTIONS, strict=True))
# The least and the largest figure of an issue.
_WITHIN: Mapping[Kind, Bounds] = {"score": (0, 100), "percent": (0, 1), "points": (-1, 1)}
