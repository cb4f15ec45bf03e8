"""Claims about the interval of a model's OM: seeded, narrower with more data, and honest about what is independent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tallies import add_answer

from millstream.metrics.answers import Tally
from millstream.metrics.bootstrap import Interval, Resampling, intervals, mean_openness
from millstream.metrics.counts import ModelCounts, counts_of, counts_of_rows, rows_of_csv
from millstream.metrics.millstone import CASES, mean_over_issues, openness

PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"


@pytest.fixture(scope="module")
def published() -> ModelCounts:
    return counts_of_rows(rows_of_csv(PUBLISHED.read_text()))[0]


def simulated(issues: int, trials: int, seed: int = 5, wrappings: int = 1) -> ModelCounts:
    """A model whose chance of pro differs by issue and case; the wrappings of one trial all answer alike."""
    issue_source = np.random.default_rng(seed)
    chances = issue_source.random((issues, len(CASES)))
    answers = np.random.default_rng(seed + 1)
    tally = Tally()
    for issue in range(issues):
        for at, case in enumerate(CASES):
            for template in (1, 2, 3):
                for trial in range(trials):
                    stance = "pro" if answers.random() < chances[issue, at] else "con"
                    for _ in range(wrappings):
                        add_answer(tally, "x/a", None, f"issue-{issue}", case, stance, template, trial)
    return counts_of(tally.models()[0])


def om_interval(counts: ModelCounts, rng: np.random.Generator, resampling: Resampling | None = None) -> Interval:
    return intervals(counts, {"om": mean_openness("om")}, rng, resampling)["om"]


def interval(counts: ModelCounts, seed: int = 1, replicates: int = 2_000) -> tuple[float, float]:
    found = om_interval(counts, np.random.default_rng(seed), Resampling(replicates=replicates))
    assert found is not None
    return found


def point(counts: ModelCounts) -> float:
    scores = openness(counts.pooled)
    return float(mean_over_issues(scores.om, scores.is_scored))


def width(counts: ModelCounts) -> float:
    low, high = interval(counts)
    return high - low


def pooled_only(counts: ModelCounts) -> ModelCounts:
    return replace(counts, units=None)


def test_it_covers_the_score_it_belongs_to(published: ModelCounts) -> None:
    for counts in (published, simulated(40, 15), pooled_only(simulated(40, 15))):
        low, high = interval(counts)
        assert low < point(counts) < high


def test_it_holds_a_score_that_resampling_alone_leaves() -> None:
    # Two answers a case: drawn again they flip far oftener than they did, and every replicate lies above the score.
    cells = np.array([[[2, 0, 0]] + [[1, 1, 0]] * 5] * 30)
    few = ModelCounts("m", tuple(f"i{at}" for at in range(30)), cells)
    for replicates in (20, 2_000):
        low, high = interval(few, replicates=replicates)
        assert low <= point(few) <= high


def test_the_same_seed_gives_the_same_interval_and_another_seed_nearly_the_same(published: ModelCounts) -> None:
    for counts in (published, simulated(20, 15)):
        assert interval(counts, seed=3) == interval(counts, seed=3)
        assert interval(counts, seed=3) != interval(counts, seed=4)
        assert interval(counts, seed=3) == pytest.approx(interval(counts, seed=4), abs=0.1 * width(counts))


def test_it_shrinks_with_more_trials() -> None:
    # One issue leaves no variation between issues, so that all of the width comes from the trials.
    few, many = simulated(1, 10), simulated(1, 1_000)
    assert width(many) < width(few) / 4
    assert width(pooled_only(many)) < width(pooled_only(few)) / 4


def test_it_shrinks_with_more_issues() -> None:
    assert width(simulated(160, 10)) < width(simulated(10, 10)) / 2


def test_answers_that_share_a_draw_are_not_taken_for_independent_ones() -> None:
    once, four_times = simulated(1, 200), simulated(1, 200, wrappings=4)
    assert point(once) == pytest.approx(point(four_times))
    assert width(four_times) == pytest.approx(width(once), rel=0.15)
    # By single answers the same data would look like four times as much: half the width.
    assert width(pooled_only(four_times)) < 0.75 * width(once)


def test_by_trial_and_by_answer_agree_where_every_trial_has_one_answer() -> None:
    counts = simulated(1, 300)
    assert width(counts) == pytest.approx(width(pooled_only(counts)), rel=0.15)


def test_a_model_that_never_varies_has_an_interval_of_no_width() -> None:
    cells = np.array([[[6, 0, 0]] + [[0, 6, 0]] * 5] * 4)
    assert interval(ModelCounts("m", ("a", "b", "c", "d"), cells)) == (0, 0)


def test_trials_that_only_another_model_has_change_nothing() -> None:
    tally = Tally()
    for model, trials in (("x/few", 3), ("x/many", 30)):
        for issue in ("a", "b", "c"):
            for at, case in enumerate(CASES):
                for trial in range(trials):
                    add_answer(tally, model, None, issue, case, "pro" if (trial + at) % 3 else "con", 1, trial)
    few = counts_of(tally.models()[0])
    assert few.units is not None
    assert few.units.shape[2] == 3
    more = np.concatenate([few.units, np.zeros_like(few.units)], axis=2)
    assert interval(few) == interval(replace(few, units=more))


def test_a_single_trial_is_resampled_by_answer() -> None:
    once = simulated(10, 1)
    assert interval(once) == interval(pooled_only(once))


def test_the_batch_bounds_memory_and_not_the_number_of_replicates(published: ModelCounts) -> None:
    odd = om_interval(published, np.random.default_rng(1), Resampling(replicates=1_001, batch=70))
    assert odd == pytest.approx(interval(published), abs=0.5)


def test_there_is_no_interval_where_nothing_is_scored() -> None:
    no_baseline = np.array([[[0, 0, 0]] + [[3, 3, 0]] * 5])
    for cells, issues in ((no_baseline, ("a",)), (np.zeros_like(no_baseline), ("a",)), (no_baseline[:0], ())):
        assert om_interval(ModelCounts("m", issues, cells), np.random.default_rng(1)) is None


def test_issues_without_baseline_do_not_disturb_the_interval_of_the_others() -> None:
    scored = np.array([[[4, 2, 0]] + [[1, 5, 0]] * 5] * 3)
    gap = scored.copy()
    gap[0, 0] = 0
    low, high = interval(ModelCounts("m", ("a", "b", "c"), gap))
    assert 0 <= low < high <= 100


@pytest.mark.parametrize("bad", [{"replicates": 0}, {"batch": 0}, {"level": 1.0}, {"level": 0.0}])
def test_a_resampling_that_cannot_be_done_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        Resampling(**bad)  # type: ignore[arg-type]
