"""Claims about the intervals of a model's figures: over issues by Student's t, over trials by drawing trials again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tallies import add_answer
from torture import times

from millstream.metrics.millstone.answers import AnswerTally
from millstream.metrics.millstone.counts import ModelCounts, counts_of, counts_of_rows, rows_of_csv
from millstream.metrics.millstone.intervals import Over, intervals, score_figure
from millstream.metrics.millstone.openness import CASES, openness
from millstream.metrics.statistics.intervals import Interval, interval

PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"


@pytest.fixture(scope="module")
def published() -> ModelCounts:
    return counts_of_rows(rows_of_csv(PUBLISHED.read_text()))[0]


def simulated(issues: int, trials: int, seed: int = 5, wrappings: int = 1) -> ModelCounts:
    """A model whose chance of pro differs by issue and case; the wrappings of one trial all answer alike."""
    issue_source = np.random.default_rng(seed)
    chances = issue_source.random((issues, len(CASES)))
    answers = np.random.default_rng(seed + 1)
    tally = AnswerTally()
    for issue in range(issues):
        for at, case in enumerate(CASES):
            for template in (1, 2, 3):
                for trial in range(trials):
                    stance = "pro" if answers.random() < chances[issue, at] else "con"
                    for _ in range(wrappings):
                        add_answer(tally, "x/a", None, f"issue-{issue}", case, stance, template, trial)
    return counts_of(tally.models()[0])


def om_interval(counts: ModelCounts, over: Over = "issues", seed: int = 1) -> Interval:
    found = intervals(counts, {"om": score_figure("om", counts.scored)}, over, seed)["om"]
    assert found is not None
    return found


def width(counts: ModelCounts) -> float:
    """Over trials."""
    found = om_interval(counts, "trials")
    assert found.low is not None and found.high is not None
    return found.high - found.low


def pooled_only(counts: ModelCounts) -> ModelCounts:
    return replace(counts, units=None)


def test_over_issues_it_is_students_t_over_the_scores_of_the_issues(published: ModelCounts) -> None:
    for counts in (published, simulated(40, 3)):
        found = om_interval(counts)
        alone = interval(openness(counts.pooled).om, within=(0, 100), of="issues")
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


def test_over_trials_the_issues_stay_and_the_width_comes_from_the_trials() -> None:
    few, many = simulated(1, 10), simulated(1, 1_000)
    assert om_interval(few).low is None
    assert width(many) < width(few) / 4
    assert width(pooled_only(many)) < width(pooled_only(few)) / 4


def test_over_trials_the_same_seed_gives_the_same_interval_and_another_nearly_the_same() -> None:
    counts = simulated(20, 15)
    found = om_interval(counts, "trials")
    assert found == om_interval(counts, "trials")
    other = om_interval(counts, "trials", seed=2)
    assert found != other
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.1 * width(counts))
    assert (found.of, found.clusters, found.note) == ("trials", 45, "over trials: coverage not promised")


def test_answers_that_share_a_draw_are_not_taken_for_independent_ones() -> None:
    once, four_times = simulated(1, 200), simulated(1, 200, wrappings=4)
    assert width(four_times) == pytest.approx(width(once), rel=0.15)
    # By single answers the same data would look like four times as much.
    assert width(pooled_only(four_times)) < 0.85 * width(once)


def test_trials_that_only_another_model_has_change_nothing() -> None:
    tally = AnswerTally()
    for model, trials in (("x/few", 12), ("x/many", 30)):
        for issue in ("a", "b", "c"):
            for at, case in enumerate(CASES):
                for trial in range(trials):
                    add_answer(tally, model, None, issue, case, "pro" if (trial + at) % 3 else "con", 1, trial)
    few = counts_of(tally.models()[0])
    assert few.units is not None and few.units.shape[2] == 12
    more = np.concatenate([few.units, np.zeros_like(few.units)], axis=2)
    assert om_interval(few, "trials") == om_interval(replace(few, units=more), "trials")


ALIKE = np.array([[[60, 0, 0]] + [[0, 60, 0]] * 5] * 12)
NAMES = tuple(f"i{at}" for at in range(12))


@pytest.mark.parametrize(
    ("counts", "over", "note"),
    [
        (simulated(3, 15), "issues", "no interval: fewer than 10 issues (3)"),
        (ModelCounts("m", NAMES, ALIKE), "issues", "no interval: all 12 issues have the same figure"),
        (ModelCounts("m", NAMES, ALIKE), "trials", "no interval: trials drawn again all give the same"),
        (simulated(12, 1), "trials", "no interval: fewer than 10 trials of an issue (0)"),
        (simulated(12, 3), "trials", "no interval: fewer than 10 trials of an issue (9)"),
        (pooled_only(simulated(12, 2)), "trials", "no interval: fewer than 10 trials of an issue (6)"),
    ],
)
def test_where_no_interval_is_honest_the_reason_is_told(counts: ModelCounts, over: Over, note: str) -> None:
    found = om_interval(counts, over)
    assert (found.low, found.high, found.note, found.of) == (None, None, note, over)
    assert found.mean == pytest.approx(float(openness(counts.pooled).om.mean()))


def test_there_is_no_interval_where_nothing_is_scored() -> None:
    no_baseline = np.array([[[0, 0, 0]] + [[3, 3, 0]] * 5])
    figures = {"om": score_figure("om")}
    overs: tuple[Over, ...] = ("issues", "trials")
    for cells, issues in ((no_baseline, ("a",)), (np.zeros_like(no_baseline), ("a",)), (no_baseline[:0], ())):
        for over in overs:
            assert intervals(ModelCounts("m", issues, cells), figures, over) == {"om": None}


# At length: make intervals.
RUNS = times(0, 100)


def asked_again(chances: np.ndarray, trials: int, source: np.random.Generator) -> ModelCounts:
    """Answers of a model whose chances of pro differ by issue, template and case, as the grid draws them."""
    draws = np.array([1, 1, 1, 2, 2, 4])
    pro = source.binomial(draws, np.repeat(chances[:, :, None, :], trials, axis=2))
    units = np.stack([pro, draws - pro, np.zeros_like(pro)], axis=-1)
    return ModelCounts("m", tuple(map(str, range(len(chances)))), units.sum(axis=(1, 2)), units)


def chances_of(issues: int, source: np.random.Generator) -> np.ndarray:
    own = source.normal(0, 2.5, (issues, 1, 1)) + source.normal(0, 0.7, (issues, 6, 1))
    moved = np.array([0, 3, -3, 1.2, -1.2, 0]) + source.normal(0, 0.8, (issues, 1, 6))
    found: np.ndarray = 1 / (1 + np.exp(-(own + moved)))
    return found


@pytest.mark.parametrize(("issues", "trials"), [(10, 15), (30, 15)])
@pytest.mark.skipif(not RUNS, reason="only for the table: make intervals")
def test_how_often_intervals_over_trials_hold_the_mean_of_many_runs(issues: int, trials: int) -> None:
    source = np.random.default_rng(6)
    held = 0
    for _ in range(RUNS):
        chances = chances_of(issues, source)
        truth = np.mean([openness(asked_again(chances, trials, source).pooled).om.mean() for _ in range(200)])
        found = om_interval(asked_again(chances, trials, source), "trials")
        held += found.low is not None and found.high is not None and found.low <= truth <= found.high
    print(f"\n| over trials: {issues} issues, 6 templates, {trials} trials | {100 * held / RUNS:.1f} of {RUNS:,} |")
    assert held / RUNS > 0.8
