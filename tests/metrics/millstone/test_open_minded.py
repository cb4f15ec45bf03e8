"""Claims about definition 1: two cases whose stances differ, by the most common stance, by side, and by single
answers."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from surveys import Cell, Row, answers_of, counts_from, surveys

from millstream.metrics.millstone.counts import counts_of
from millstream.metrics.millstone.open_minded import OpenMindedIssues, open_minded_issues

NONE: Cell = (0, 0, 0)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        # Baseline pro, one-sided con mostly con: two stances, two sides.
        ([(3, 1, 0), NONE, (1, 3, 0), NONE, NONE, NONE], (1, 1, 1)),
        # The same stance in both cases, however far the share moves.
        ([(9, 1, 0), NONE, (6, 4, 0), NONE, NONE, NONE], (1, 0, 0)),
        # A baseline that is mostly Other differs from a pro case in stance, and in no side.
        ([(1, 0, 3), (4, 0, 0), NONE, NONE, NONE, NONE], (1, 1, 0)),
        # A tie is con, as it is in the scores.
        ([(2, 2, 0), NONE, (0, 4, 0), NONE, NONE, NONE], (1, 0, 0)),
        # One case alone can't differ from another, and no case has nothing to compare.
        ([(2, 3, 0), NONE, NONE, NONE, NONE, NONE], (0, 0, 0)),
        ([NONE] * 6, (0, 0, 0)),
        # The baseline need not be one of the two.
        ([(4, 0, 0), (4, 0, 0), NONE, (0, 4, 0), NONE, NONE], (1, 1, 1)),
    ],
)
def test_an_issue_counts_where_two_cases_differ(cells: list[Cell], expected: tuple[int, int, int]) -> None:
    assert open_minded_issues(counts_from("m", {"a": cells})) == OpenMindedIssues(*expected, None)


@given(surveys())
def test_by_single_answers_any_two_that_differ_between_cases_of_a_template_count(rows: list[Row]) -> None:
    issues = {
        one.issue
        for one, other in combinations(rows, 2)
        if (one.issue, one.template) == (other.issue, other.template)
        and one.case != other.case
        and one.stances[0] != other.stances[0]
    }
    found = open_minded_issues(counts_of(answers_of(rows)))
    assert found.by_answer == len(issues)
    assert found.by_side <= found.by_stance <= found.compared
