"""Claims about the intervals of a model's figures: over issues by Student's t."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tallies import add_answer

from millstream.metrics.millstone.answers import AnswerTally
from millstream.metrics.millstone.counts import ModelCounts, counts_of, counts_of_rows, rows_of_csv
from millstream.metrics.millstone.openness import CASES, issue_interval
from millstream.metrics.millstone.scores import issue_scores
from millstream.metrics.statistics.intervals import Interval, interval

PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"


@pytest.fixture(scope="module")
def published() -> ModelCounts:
    return counts_of_rows(rows_of_csv(PUBLISHED.read_text()))[0]


def simulated(issues: int, trials: int, seed: int = 5) -> ModelCounts:
    """A model whose chance of pro differs by issue and case."""
    issue_source = np.random.default_rng(seed)
    chances = issue_source.random((issues, len(CASES)))
    answers = np.random.default_rng(seed + 1)
    tally = AnswerTally()
    for issue in range(issues):
        for at, case in enumerate(CASES):
            for template in (1, 2, 3):
                for trial in range(trials):
                    stance = "pro" if answers.random() < chances[issue, at] else "con"
                    add_answer(tally, "x/a", None, f"issue-{issue}", case, stance, template, trial)
    return counts_of(tally.models()[0])


def om_interval(counts: ModelCounts) -> Interval:
    found = issue_interval(issue_scores(counts)["om"], (0, 100))
    assert found is not None
    return found


def test_over_issues_it_is_students_t_over_the_scores_of_the_issues(published: ModelCounts) -> None:
    for counts in (published, simulated(40, 3)):
        found = om_interval(counts)
        alone = interval(issue_scores(counts)["om"], within=(0, 100), of="issues")
        assert found == alone
        assert found.low is not None and found.high is not None and found.low < found.mean < found.high
    assert om_interval(published).note == "approximate: fewer than 30 issues (10)"


def test_issues_without_a_score_are_no_clusters() -> None:
    counts = simulated(12, 3)
    gap = counts.pooled.copy()
    gap[:3, 0] = 0
    assert om_interval(replace(counts, pooled=gap)).note == "no interval: fewer than 10 issues (9)"
    scored = np.arange(12) != 5
    assert om_interval(replace(counts, scored=scored)).clusters == 11


ALIKE = np.array([[[60, 0, 0]] + [[0, 60, 0]] * 5] * 12)
NAMES = tuple(f"i{at}" for at in range(12))


@pytest.mark.parametrize(
    ("counts", "note"),
    [
        (simulated(3, 15), "no interval: fewer than 10 issues (3)"),
        (ModelCounts("m", NAMES, ALIKE), "no interval: all 12 issues have the same figure"),
    ],
)
def test_where_no_interval_is_honest_the_reason_is_told(counts: ModelCounts, note: str) -> None:
    found = om_interval(counts)
    assert (found.low, found.high, found.note, found.of) == (None, None, note, "issues")
    assert found.mean == pytest.approx(float(issue_scores(counts)["om"].mean()))


def test_there_is_no_interval_where_nothing_is_scored() -> None:
    no_baseline = np.array([[[0, 0, 0]] + [[3, 3, 0]] * 5])
    for cells, issues in ((no_baseline, ("a",)), (np.zeros_like(no_baseline), ("a",)), (no_baseline[:0], ())):
        assert issue_interval(issue_scores(ModelCounts("m", issues, cells))["om"], (0, 100)) is None
