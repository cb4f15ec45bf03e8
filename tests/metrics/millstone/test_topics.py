"""Claims about open-mindedness by topic."""

from __future__ import annotations

from math import isnan
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from surveys import Cell, counts_from, pooled_counts

from millstream.metrics.millstone.scores import issue_scores
from millstream.metrics.millstone.topics import in_order, om_by_topic

MOVED: list[Cell] = [(10, 0, 0)] + [(4, 6, 0)] * 5

topic_tables = st.dictionaries(
    st.sampled_from(["A", "b", "c", "x"]), st.lists(st.sampled_from("TUV"), unique=True, max_size=3).map(tuple)
)


@given(pooled_counts, topic_tables)
def test_a_second_implementation_gives_the_same_means(
    cells: dict[str, list[Cell]], topics: dict[str, tuple[str, ...]]
) -> None:
    counts = counts_from("m", cells)
    om = issue_scores(counts)["om"].tolist()
    expected: dict[str, list[float]] = {}
    for at, issue in enumerate(counts.issues):
        # Issues here are in lower case.
        names = topics.get(issue.upper(), topics.get(issue, ()))
        for topic in () if isnan(om[at]) else names:
            expected.setdefault(topic, []).append(om[at])
    ours = om_by_topic(counts, topics)
    assert {topic: score.issues for topic, score in ours.items()} == {t: len(some) for t, some in expected.items()}
    for topic, score in ours.items():
        assert score.om == pytest.approx(fmean(expected[topic]), abs=1e-9)


def test_issues_are_known_in_lower_case_as_published_counts_have_them() -> None:
    assert om_by_topic(counts_from("m", {"us-penny": MOVED}), {"US-penny": ("Money",)})["Money"].issues == 1


def test_topics_stand_in_the_order_of_their_table() -> None:
    # As in a table of School: a, b; Money: c, b; Law: b, d.
    topics = {"a": ("School",), "b": ("School", "Money", "Law"), "c": ("Money",), "d": ("Law",)}
    assert in_order(topics) == ("School", "Money", "Law")
    assert in_order({"x": (), "cell-phones": ("Digital", "School"), "c": ("Money",)}) == ("Digital", "Money", "School")
    counts = counts_from("m", dict.fromkeys("dcba", MOVED))
    assert list(om_by_topic(counts, topics)) == ["School", "Money", "Law"]


def test_a_topic_without_a_scored_issue_is_left_out() -> None:
    no_baseline: list[Cell] = [(0, 0, 0), *MOVED[1:]]
    counts = counts_from("m", {"a": no_baseline, "b": MOVED, "c": MOVED})
    assert list(om_by_topic(counts, {"a": ("School",), "b": ("Money",)})) == ["Money"]
