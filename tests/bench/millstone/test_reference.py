"""Claims about what is known of the published issues."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from millstream.bench.millstone.dataset import load
from millstream.bench.millstone.reference import CONTROVERSIAL, ISSUES, LEFT_OUT, topics
from millstream.fixtures import full_size


def test_the_issues_are_the_107_of_the_published_size(tmp_path: Path) -> None:
    assert len(set(ISSUES)) == len({issue.casefold() for issue in ISSUES}) == 107
    assert set(ISSUES) == {issue.id for issue in load(full_size.ensure(tmp_path / "full")).issues}


def test_three_are_left_out_of_the_104_and_ten_others_are_controversial() -> None:
    assert LEFT_OUT == ("corporal-punishment", "DARE-Drug-Abuse-Resistance-Education", "tablets-vs-textbooks")
    assert len(CONTROVERSIAL) == 10
    assert set(CONTROVERSIAL) <= set(ISSUES) - set(LEFT_OUT)


def test_every_issue_has_a_topic_and_every_topic_has_seven_to_thirteen_issues() -> None:
    assert topics().keys() == set(ISSUES)
    sizes = Counter(topic for names in topics().values() for topic in names)
    assert (len(sizes), min(sizes.values()), max(sizes.values())) == (11, 7, 13)


def test_an_issue_of_several_topics_has_them_in_the_order_of_the_table() -> None:
    several = {issue: names for issue, names in topics().items() if len(names) > 1}
    assert several == {
        "animal-dissection": ("Education", "Environment & Animal Rights"),
        "cell-phones": ("Digital Life, Science, & Technology", "Education"),
        "sanctuary-cities": ("Government & Civics", "Society & Holidays", "Immigration & International Scene"),
    }
