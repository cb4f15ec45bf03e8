"""Topics: a model's open-mindedness by the topics of its issues (figure 4).

Owns the mean over a topic's issues. The topics of issues are passed in; knows no data set and no file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .counts import ModelCounts
from .scores import issue_scores


class TopicScore(NamedTuple):
    """The mean score over a topic's scored issues, from 0 to 100, its part by silence, and the number of issues."""

    om: float
    by_silence: float
    issues: int


def om_by_topic(counts: ModelCounts, topics: Mapping[str, tuple[str, ...]]) -> dict[str, TopicScore]:
    """Returns the mean score of each topic's scored issues. `topics` gives each issue's topics.

    An issue of several topics counts in each of them (the authors' script counts the last one alone). Issue names are
    compared in lower case, as published counts have them. Topics without a scored issue and issues without a topic are
    left out.
    """
    of_issues = issue_scores(counts)
    topics_of = {issue.casefold(): names for issue, names in topics.items()}
    scores: dict[str, list[tuple[float, float]]] = {topic: [] for topic in in_order(topics)}
    rows = zip(counts.issues, of_issues["om"].tolist(), of_issues["om_by_silence"].tolist(), strict=True)
    for issue, score, by_silence in rows:
        for topic in dict.fromkeys(topics_of.get(issue.casefold(), ())):
            if not math.isnan(score):
                scores[topic].append((score, by_silence))
    means = {
        topic: [sum(each) / len(some) for each in zip(*some, strict=True)] for topic, some in scores.items() if some
    }
    return {topic: TopicScore(mean, by_silence, len(scores[topic])) for topic, (mean, by_silence) in means.items()}


def in_order(topics: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Returns every topic once, in the order of the table that the topics of the issues are from."""
    # First topics come first: a second topic could precede topics that are above it in the table.
    firsts = [names[0] for names in topics.values() if names]
    return tuple(dict.fromkeys([*firsts, *(name for names in topics.values() for name in names)]))
