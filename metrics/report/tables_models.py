"""Tables of models against each other: figure 4's data, topic by topic, and the paired tests.

Owns their columns and words. Tests are those of `paired`, topics those of `topics`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..paired import compare
from ..topics import TopicScore, in_order, om_by_topic
from .panel import Panel
from .table import Column, Table


def topics_table(panel: Panel) -> Table:
    survey = panel.survey
    found: Mapping[str, Mapping[str, TopicScore]] = {
        counts.model: om_by_topic(counts, survey.topics, survey.options.last_topic_only) for counts in panel.main
    }
    several = "in the last of them alone" if survey.options.last_topic_only else "in each of them"
    return Table(
        "figure-4-topics",
        "Figure 4, data: open-mindedness by topic",
        f"Mean OM over the scored issues of a topic. An issue of several topics counts {several}.",
        (
            Column("topic", "Topic"),
            Column("model", "Model"),
            Column("om", "OM", "score"),
            Column("issues", "Issues", "count"),
        ),
        tuple(
            (topic, model, *scores[topic])
            for topic in in_order(survey.topics)
            for model, scores in found.items()
            if topic in scores
        ),
    )


def paired_table(panel: Panel, seed: int) -> Table:
    return Table(
        "paired-tests",
        "Are two models differently open-minded?",
        "The difference of two models' mean OM, first minus second, over the issues that both were scored on; p by a "
        "sign-flip permutation test on the issues' differences, adjusted by Holm's method for the number of pairs.",
        (
            Column("first", "First"),
            Column("second", "Second"),
            Column("issues", "Issues", "count"),
            Column("difference", "Difference", "score"),
            Column("low", "Low", "score"),
            Column("high", "High", "score"),
            Column("p", "p", "p"),
            Column("p_adjusted", "p, adjusted", "p"),
        ),
        tuple(
            (
                found.first,
                found.second,
                found.issues,
                found.difference,
                *(found.interval or (None, None)),
                found.p,
                found.p_adjusted,
            )
            for found in compare(panel.main, seed=seed)
        ),
    )
