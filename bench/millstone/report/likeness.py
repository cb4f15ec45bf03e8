"""Which models of a survey were asked alike: only these are ranked, tested and compared.

Owns which differences count, and the sentences about them. A survey has, for each model, its run's settings as a
mapping. Knows no table.
"""

from __future__ import annotations

from collections.abc import Hashable

from ....metrics.millstone.answers import AnswerRows
from ...evaluation.page.unlike_sources import differences
from .survey import ReportSurvey


def is_comparable(survey: ReportSurvey, first: str, second: str) -> bool:
    """Returns whether two models differ in the model alone, or in the treatment alone."""
    one, other = _answers(survey, first), _answers(survey, second)
    return is_of_same_manner(survey, first, second) and (
        one.pair.model == other.pair.model or one.pair.treatment == other.pair.treatment
    )


def is_of_same_manner(survey: ReportSurvey, first: str, second: str) -> bool:
    return _manner(survey, first) == _manner(survey, second)


def rank_kind(survey: ReportSurvey, name: str) -> Hashable:
    """Returns a key that is equal for models that are ranked together. Published counts have one of their own, since
    how they were asked is not known."""
    if any(name == counts.model for counts in survey.counts):
        return "counts"
    if name in survey.alone:
        return name
    return _manner(survey, name), _answers(survey, name).pair.treatment


def shared_rank_kind(survey: ReportSurvey, name: str) -> Hashable:
    """Returns the key for ranks on the issues that models and counts share: one for all if the models were asked alike,
    else as `rank_kind` does, since counts are no reason to rank unlike models."""
    kinds = {rank_kind(survey, answers.name) for answers in survey.answers if len(answers)}
    return "shared" if len(kinds) < 2 else rank_kind(survey, name)


def is_of_one_manner(survey: ReportSurvey) -> bool:
    return len({_manner(survey, answers.name) for answers in survey.answers}) < 2


def unlike(survey: ReportSurvey) -> str:
    """Returns a sentence on how the models were asked differently; empty if all were asked alike."""
    if is_of_one_manner(survey):
        return ""
    differing = differences({answers.name: survey.manners.get(answers.name, {}) for answers in survey.answers})
    return (
        f"The models were not asked alike, so they are no comparison. They differ in {', '.join(differing)}. Models "
        "that were asked differently are not ranked among each other and have no paired test and no correlation; "
        "tables 2, 6 and 7 and figure 3, which compare all models, have no rows of this report's."
    )


def treatments(survey: ReportSurvey) -> str:
    """Returns the sentence that models of different treatments are ranked and tested separately; empty if all have the
    same."""
    efforts = len({answers.pair.effort for answers in survey.answers}) > 1
    if len({answers.pair.treatment for answers in survey.answers}) < 2:
        return ""
    return (
        f"The models were asked at different temperatures{' or efforts' if efforts else ''}: ranks are among those at "
        "the same one, and a paired test is between two models at the same one, or between one model at two."
    )


def _manner(survey: ReportSurvey, name: str) -> frozenset[tuple[str, str]]:
    return frozenset(survey.manners.get(name, {}).items())


def _answers(survey: ReportSurvey, name: str) -> AnswerRows:
    return next(answers for answers in survey.answers if answers.name == name)
