"""Topics: a model's open-mindedness by what its issues are about (figure 4).

Owns the mean over a topic's issues. Which issue has which topics is passed in; knows no data set and no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .counts import ModelCounts
from .millstone import openness


class TopicScore(NamedTuple):
    """The mean score over so many issues."""

    om: float
    issues: int


def om_by_topic(
    counts: ModelCounts, topics: Mapping[str, tuple[str, ...]], last_only: bool = False, kind: str = "om"
) -> dict[str, TopicScore]:
    """The mean score of each topic's scored issues. `topics` gives each issue's topics.

    An issue of several topics counts in each of them, with `last_only` in its last one alone, as the authors count.
    Issues are known by their names whatever their case, since published counts have them in lower case. A topic none of
    whose issues is scored is left out, and so is an issue without a topic.
    """
    found = openness(counts.pooled)
    own = {issue.casefold(): names for issue, names in topics.items()}
    scores: dict[str, list[float]] = {topic: [] for topic in in_order(topics)}
    for issue, score, is_scored in zip(counts.issues, getattr(found, kind), found.is_scored, strict=True):
        names = dict.fromkeys(own.get(issue.casefold(), ()))
        for topic in list(names)[-1:] if last_only else names:
            if is_scored:
                scores[topic].append(float(score))
    return {topic: TopicScore(sum(some) / len(some), len(some)) for topic, some in scores.items() if some}


def in_order(topics: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Every topic once, in the order of the table that the issues' topics came from."""
    # Issue by issue, a second topic would come before the topics whose own issues stand above it in the table.
    firsts = [names[0] for names in topics.values() if names]
    return tuple(dict.fromkeys([*firsts, *(name for names in topics.values() for name in names)]))
