"""Tables that compare models: figure 4's data, topic by topic, and the paired tests.

Owns their columns and words. `paired` computes the tests, `topics` the scores by topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ....metrics.millstone.paired import compare
from ....metrics.millstone.topics import TopicScore, in_order, om_by_topic
from ....report.interval_cells import interval_cells, interval_columns
from ....report.table import Column, Table
from .likeness import is_comparable
from .panel import SurveyScores


def topics_table(panel: SurveyScores) -> Table:
    survey = panel.survey
    found: Mapping[str, Mapping[str, TopicScore]] = {
        counts.model: om_by_topic(counts, survey.topics, survey.readings.topics == "last") for counts in panel.main
    }
    several = "in the last of them alone" if survey.readings.topics == "last" else "in each of them"
    return Table(
        "figure-4-topics",
        "Figure 4, data: open-mindedness by topic",
        f"Mean OM over the scored issues of a topic. An issue of several topics counts {several}.",
        (
            Column("topic", "Topic"),
            Column("model", "Model"),
            Column("om", "OM", "score"),
            Column("om_by_silence", "By silence", "score"),
            Column("issues", "Issues", "count"),
        ),
        tuple(
            (topic, model, *scores[topic])
            for topic in in_order(survey.topics)
            for model, scores in found.items()
            if topic in scores
        ),
    )


def paired_table(panel: SurveyScores) -> Table:
    return Table(
        "paired-tests",
        "Are two models differently open-minded?",
        "The difference of two models' mean OM, first minus second, over the issues that both were scored on: of "
        "models that were asked alike at one temperature, and of one model at two. Interval and p are of one method, "
        "the paired t test over issues; without an interval p is the exact sign-flip test's. The adjusted p is Holm's, "
        "for the number of pairs. Low and high are always over issues.",
        (
            Column("first", "First"),
            Column("second", "Second"),
            Column("issues", "Issues", "count"),
            Column("difference", "Difference", "score"),
            *interval_columns("score"),
            Column("p", "p", "p"),
            Column("p_adjusted", "p, adjusted", "p"),
        ),
        tuple(
            (
                pair.first,
                pair.second,
                0 if pair.found is None else pair.found.clusters,
                None if pair.found is None else pair.found.difference,
                *interval_cells(pair.found, "score"),
                None if pair.found is None else pair.found.p,
                pair.p_adjusted,
            )
            for pair in compare(panel.main, is_comparable=partial(is_comparable, panel.survey))
        ),
    )
