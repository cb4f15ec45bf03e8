"""Remarks: the sentences that a reader must know before reading a number.

Owns when each remark applies and its words. Knows the tables by their names and computes nothing that is not in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ....format import percent_text
from ....metrics.millstone.coverage import SILENCE_NOTES, unmeasured
from ....metrics.millstone.coverage import remarks as of_coverage
from ....metrics.millstone.figures import RANKED
from ....metrics.millstone.gaps import Gaps
from ....metrics.millstone.openness import CASES
from ....metrics.millstone.silence import ReadableCounts
from ....report.labels import named_list, one_line
from ....report.published import NO_TARGET
from ....report.table import Cell, Table
from .likeness import treatments, unlike
from .panel import SurveyFigures
from .survey import ReportSurvey
from .tables_openness import FLIP_WARNING, READINGS, counts_sentences, main_rows

_COUNTED = 6
_SENTENCE = 1_000


def remarks(panel: SurveyFigures, tables: Mapping[str, Table]) -> tuple[str, ...]:
    survey = panel.survey
    if not survey.answers and not survey.counts:
        return ("There are no answers: nothing is scored.", *_incomplete(panel.gaps))
    scored = main_rows(tables["om-readings"])
    return (
        *sentences_of(panel, unmeasured),
        *_incomplete(panel.gaps),
        *(
            one_line(text, _SENTENCE)
            for model in panel.models
            for text in of_coverage(_name(model.name), model.scores.readable)
        ),
        *survey.label_remarks,
        *_lacking_cases(tables["om-by-issue"]),
        *filter(None, [of_samples(survey)]),
        *filter(None, [counts_sentences(panel)]),
        *_asked_differently(panel),
        *_options(survey),
        f"{FLIP_WARNING} The other scores and the ranks by each are in “{READINGS}”.",
        *_ranks(scored),
        *_readings(scored, panel),
    )


def sentences_of(panel: SurveyFigures, of: Callable[[str, ReadableCounts], str | None]) -> tuple[str, ...]:
    """Returns the sentence that `of` has on each model, if it has one."""
    every = (of(_name(model.name), model.scores.readable) for model in panel.models)
    return tuple(one_line(text, _SENTENCE) for text in every if text)


def _incomplete(missing: Mapping[str, Gaps]) -> Iterator[str]:
    for model, gaps in missing.items():
        if gaps.missing:
            cases = len(gaps.by_case)
            share = gaps.missing / gaps.expected
            yield (
                f"{_name(model)} is incomplete: {gaps.missing:,} of {gaps.expected:,} answers "
                f"({percent_text(share)}) are missing, in {cases:,} {'case' if cases == 1 else 'cases'} of its "
                "issues. Its figures are computed from the answers there are, so they can change."
                if gaps.answered
                else f"{_name(model)} has no answers: all {gaps.expected:,} are missing."
            )
        if gaps.beyond:
            yield f"{_name(model)} has {gaps.beyond:,} answers that its run was not to ask for; all are counted."


def _lacking_cases(issues: Table) -> Iterator[str]:
    """Yields a remark for each model with scored issues that have no answer at all in some case."""
    lacking: dict[str, list[str]] = {}
    for row in issues.records():
        if row["om"] is not None and any(row[f"pro_{case.replace('-', '_')}"] is None for case in CASES):
            lacking.setdefault(str(row["model"]), []).append(str(row["issue"]))
    for model, names in lacking.items():
        one = len(names) == 1
        yield (
            f"{_name(model)} has no answer at all in some case of {len(names):,} {'issue' if one else 'issues'} "
            f"({named_list(names)}): such a case adds nothing to a score while its weight stays in it, so "
            f"{'this score is' if one else 'these scores are'} too low, and so is the model's OM."
        )


def of_samples(survey: ReportSurvey) -> str:
    """Returns the sentence that issues are samples of the package; empty if no run used them."""
    every = [answers.name for answers in survey.answers]
    samples = [name for name in every if name in survey.samples]
    whose = "This report's issues" if len(samples) == len(every) else f"The issues of {named_list(samples)}"
    return f"{whose} are samples that come with millstream, not the paper’s. {NO_TARGET}" if samples else ""


def _asked_differently(panel: SurveyFigures) -> Iterator[str]:
    survey = panel.survey
    issues = {answers.name: frozenset(answers.issues) for answers in survey.answers}
    if len(set(issues.values())) > 1:
        numbers = ", ".join(f"{_name(name)} {len(ids)}" for name, ids in list(issues.items())[:_COUNTED])
        more = "" if len(issues) <= _COUNTED else f" and {len(issues) - _COUNTED} more"
        yield (
            f"The models were asked about different issues ({numbers}{more}): means over them are no comparison. "
            "Ranks are among models that were asked exactly the same issues, and the paired tests compare two "
            "models on the issues of both."
        )
    yield from filter(None, (unlike(survey), treatments(survey)))
    if len({(shape.templates, shape.configs, shape.trials) for shape in panel.shapes.values()}) > 1:
        yield (
            "The models were asked with different templates, configurations or numbers of trials: their shares rest on "
            "different prompts."
        )


def _options(survey: ReportSurvey) -> Iterator[str]:
    if survey.silence == "literal":
        yield SILENCE_NOTES["literal"]
    if survey.stance != "recorded":
        yield f"Stances are by the {survey.stance} reading of the answers' texts, whatever was recorded."


def _ranks(rows: Mapping[str, Mapping[str, Cell]]) -> Iterator[str]:
    """Yields a remark if some model's rank depends on the reading of eq. (1)."""
    models = [model for model, row in rows.items() if len({row[f"{key}_rank"] for key in RANKED}) > 1]
    if models:
        yield (
            f"The order of the models depends on how eq. (1) is read: {named_list(models)} "
            f"{'has' if len(models) == 1 else 'have'} another rank under another reading."
        )


def _readings(scored: Mapping[str, Mapping[str, Cell]], panel: SurveyFigures) -> Iterator[str]:
    rows = [row for row in scored.values() if row["differ"]]
    if rows:
        worst = max(rows, key=lambda row: float(row["differ_percent"] or 0))
        number = sum(int(row["differ"] or 0) for row in rows)
        answers = sum(len(model.answers) for model in panel.models)
        yield (
            f"The paper's reading of an answer and the careful one differ on {number:,} of {answers:,} answers, most "
            f"often for {_name(str(worst['model']))} ({percent_text(float(worst['differ_percent'] or 0) / 100)})."
        )


def _name(model: str) -> str:
    return named_list([model])
