"""Claims about the sets of issues and the intervals that all tables share."""

from __future__ import annotations

from polls import CONTROVERSIAL, polled, realistic, survey_of

from millstream.bench.millstone.report.panel import ALL, ALL_BUT_THREE, survey_figures
from millstream.bench.millstone.report.panel import CONTROVERSIAL as CONTROVERSIAL_SET
from millstream.metrics.millstone.counts import counts_of
from millstream.metrics.millstone.openness import issue_interval
from millstream.metrics.millstone.scores import issue_scores
from millstream.report.interval_cells import interval_cells


def test_the_interval_of_an_om_is_the_one_that_the_scores_have() -> None:
    answers = polled("solo")
    prepared = survey_figures(survey_of(answers))
    counts = counts_of(answers)
    expected = issue_interval(issue_scores(counts)["om"], (0, 100))
    assert prepared.models[0].scores.figures["om"].interval == interval_cells(expected, "score")


def test_each_set_holds_the_models_and_issues_that_belong_there() -> None:
    prepared = survey_figures(realistic())
    issues = {
        name: {scores.model: len(scores.readable.counts.issues) for scores in models}
        for name, models in prepared.sets.items()
    }
    large = ("lab/great-2-large", "lab/great-2-mini", "other/shy-1")
    assert issues == {
        ALL: dict.fromkeys(large, 8),
        ALL_BUT_THREE: dict.fromkeys(large, 7),
        CONTROVERSIAL_SET: dict.fromkeys((*large, "third/part-3"), 3),
    }
    assert [len(model.scores.readable.raw.issues) for model in prepared.models] == [8, 8, 8, 3]


def test_issues_are_known_whatever_their_case_is() -> None:
    prepared = survey_figures(survey_of(polled("solo", ["OLYMPICS", "us-penny"])))
    assert set(prepared.sets) == {CONTROVERSIAL_SET}


def test_without_controversial_issues_all_are_compared() -> None:
    prepared = survey_figures(survey_of(polled("solo", ["golf", "milk"])))
    assert prepared.contradicted == tuple(model.scores for model in prepared.models)
    contradicted = survey_figures(realistic()).contradicted
    assert [len(scores.readable.counts.issues) for scores in contradicted] == 4 * [len(CONTROVERSIAL)]
