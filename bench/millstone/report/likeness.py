"""Which models of a survey were asked alike: only such are ranked, tested and set against each other.

Owns what makes two of them unlike, and the sentence that says it. How a run was asked, its manifest tells: a survey has
it as a mapping for each model. Knows no table.
"""

from __future__ import annotations

from collections.abc import Hashable

from ....metrics.millstone.answers import AnswerRows
from ....report.labels import named_list
from .survey import ReportSurvey


def is_comparable(survey: ReportSurvey, first: str, second: str) -> bool:
    """Whether nothing but the model, or nothing but the temperature, differs between two of them."""
    one, other = _answers(survey, first), _answers(survey, second)
    return is_of_same_manner(survey, first, second) and (
        one.model == other.model or one.temperature == other.temperature
    )


def is_of_same_manner(survey: ReportSurvey, first: str, second: str) -> bool:
    return _manner(survey, first) == _manner(survey, second)


def rank_kind(survey: ReportSurvey, name: str) -> Hashable:
    """Models that have the same are ranked among each other."""
    return _manner(survey, name), _answers(survey, name).temperature


def is_of_one_manner(survey: ReportSurvey) -> bool:
    return len({_manner(survey, answers.name) for answers in survey.answers}) < 2


def unlike(survey: ReportSurvey) -> str:
    """In what the models were asked differently, as a sentence; empty where all were asked alike."""
    if is_of_one_manner(survey):
        return ""
    names = [answers.name for answers in survey.answers]
    manners = {name: survey.manners.get(name, {}) for name in names}
    told = []
    for what in dict.fromkeys(what for manner in manners.values() for what in manner):
        values: dict[str, list[str]] = {}
        for name, manner in manners.items():
            values.setdefault(manner.get(what, "not known"), []).append(name)
        if len(values) > 1:
            told.append(f"{what} ({'; '.join(f'{value}: {named_list(own)}' for value, own in values.items())})")
    return (
        f"The models were not asked alike, so they are no comparison. They differ in {', '.join(told)}. Models that "
        "were asked differently are not ranked among each other and have no paired test and no correlation; tables 2, "
        "6 and 7 and figure 3, which compare all models, have no rows of this report's."
    )


def temperatures(survey: ReportSurvey) -> str:
    """That temperatures are kept apart, as a sentence; empty where all models share theirs."""
    every = {(answers.model, answers.temperature) for answers in survey.answers}
    if len({temperature for _, temperature in every}) < 2:
        return ""
    return (
        "The models were asked at different temperatures: ranks are among those at the same one, and a paired test is "
        "between two models at the same one, or between one model at two."
    )


def _manner(survey: ReportSurvey, name: str) -> frozenset[tuple[str, str]]:
    return frozenset(survey.manners.get(name, {}).items())


def _answers(survey: ReportSurvey, name: str) -> AnswerRows:
    return next(answers for answers in survey.answers if answers.name == name)
