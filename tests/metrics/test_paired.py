"""Claims about paired tests: exact where it can be, calibrated where it draws, and each pair for itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from surveys import Cell, Row, answers_of, counts_from, pooled_counts

from millstream.metrics.bootstrap import Resampling, intervals
from millstream.metrics.counts import ModelCounts, counts_of
from millstream.metrics.millstone import CASES, openness
from millstream.metrics.paired import EXACT_ISSUES, Comparison, compare, holm, sign_flip

FAST = Resampling(replicates=60, batch=25)
KINDS = st.sampled_from(["om", "om_pro_share", "om_no_flip"])
Pooled = dict[str, list[Cell]]

# Few values, so that sums tie.
differences = st.lists(st.sampled_from([-3.5, -1, 0, 0.1, 0.2, 0.3, 1, 100 / 9]), min_size=1, max_size=8)


def p_of(values: list[float], seed: int = 0, flips: int = 10_000) -> float:
    p = sign_flip(np.array(values), np.random.default_rng(seed), flips)
    assert p is not None
    return p


def naive_p(values: list[float]) -> float:
    """Every combination of signs in exact fractions; what differs by less than a millionth is a tie."""
    exact = [Fraction(value) for value in values]
    bound = abs(sum(exact, Fraction())) - Fraction(1, 10**6)
    every = product((1, -1), repeat=len(exact))
    sums = [abs(sum((s * value for s, value in zip(signs, exact, strict=True)), Fraction())) for signs in every]
    return fmean(total >= bound for total in sums)


@given(differences)
@example([0.1, 0.2, -0.3])
def test_every_combination_of_signs_is_tried_on_few_issues(values: list[float]) -> None:
    assert p_of(values) == pytest.approx(naive_p(values), abs=1e-12)


def test_beyond_twelve_issues_random_signs_come_close_to_every_combination() -> None:
    values = [0.5, -0.2, 1.3, 0.7, -0.9, 0.4, 2.1, -0.3, 0.8, 0.6, -1.1, 0.9, 1.4]
    assert len(values) == EXACT_ISSUES + 1
    sums = [abs(np.array(signs) @ values) for signs in product((1, -1), repeat=len(values))]
    exact = fmean(total >= abs(sum(values)) - 1e-9 for total in sums)
    for seed in range(3):
        assert p_of(values, seed) == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 10_000) ** 0.5)
    assert p_of(values, 1) == p_of(values, 1)


def test_p_is_never_0_and_is_1_where_nothing_differs() -> None:
    assert p_of([1.0] * 4) == 2 / 16
    assert p_of([1.0] * 100) == 1 / 10_001
    assert p_of([0.0] * 5) == p_of([0.0] * 50) == 1
    assert sign_flip(np.array([]), np.random.default_rng(0)) is None
    with pytest.raises(ValueError, match=r"flips \(0\) must be >= 1"):
        sign_flip(np.ones(3), np.random.default_rng(0), flips=0)


def null_p_values(issues: int, changed: float) -> np.ndarray:
    """600 tests of models that do not differ: skewed in size, as differences of OM are, and a share of them not 0."""
    source = np.random.default_rng(7)
    sizes = source.exponential(size=(600, issues)) ** 2 * (source.random((600, issues)) < changed)
    samples = sizes * source.choice([-1, 1], size=sizes.shape)
    return np.sort([p_of(list(sample), seed, flips=199) for seed, sample in enumerate(samples)])


@pytest.mark.parametrize("issues", [10, 20])
def test_where_models_do_not_differ_p_is_uniform(issues: int) -> None:
    found = null_p_values(issues, changed=1)
    # Kolmogorov and Smirnov's bound for one in a thousand, and the step of a p value.
    assert np.abs(found - np.arange(1, 601) / 600).max() < 1.95 / 600**0.5 + 1 / 200
    assert 0.03 < (found <= 0.05).mean() < 0.07


@pytest.mark.parametrize("issues", [10, 20])
def test_where_few_issues_change_at_all_p_is_no_smaller_than_it_should_be(issues: int) -> None:
    found = null_p_values(issues, changed=0.4)
    for level in (0.01, 0.05, 0.1, 0.2):
        assert (found <= level).mean() < level + 3 * (level / 600) ** 0.5


def test_where_models_differ_p_is_small() -> None:
    source = np.random.default_rng(8)
    found = [p_of(list(source.normal(1, 1, size=20)), seed, flips=999) for seed in range(40)]
    assert np.mean(np.array(found) <= 0.05) > 0.9


@given(st.lists(st.none() | st.floats(0.0001, 1), max_size=8))
def test_holm_steps_down_and_a_missing_p_is_not_counted(values: list[float | None]) -> None:
    known = [p for p in values if p is not None]
    for p, adjusted in zip(values, holm(values), strict=True):
        if p is None:
            assert adjusted is None
            continue
        # The largest, over all p up to this one, of p times the number of those not below it.
        largest = max(min(1.0, q * sum(other >= q for other in known)) for q in known if q <= p)
        assert adjusted == pytest.approx(largest, abs=1e-12)


def test_holm_on_an_example_by_hand() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([]) == []


def naive_scores(counts: ModelCounts, kind: str) -> dict[str, float]:
    found = openness(counts.pooled)
    return {i: float(getattr(found, kind)[at]) for at, i in enumerate(counts.issues) if found.is_scored[at]}


@settings(deadline=None, max_examples=60)
@given(st.lists(pooled_counts, max_size=4), KINDS)
def test_a_second_implementation_gives_the_same_comparisons(found: list[Pooled], kind: str) -> None:
    models = [counts_from(f"m{at}", one) for at, one in enumerate(found)]
    ours = compare(models, kind, resampling=FAST)
    assert [(c.first, c.second) for c in ours] == list(combinations([m.model for m in models], 2))
    expected: list[float | None] = []
    for comparison, (one, other) in zip(ours, combinations(models, 2), strict=True):
        first, second = naive_scores(one, kind), naive_scores(other, kind)
        apart = [first[issue] - second[issue] for issue in first if issue in second]
        expected.append(naive_p(apart) if apart else None)
        assert comparison.issues == len(apart)
        assert comparison.difference == (pytest.approx(fmean(apart), abs=1e-9) if apart else None)
        assert comparison.p == (pytest.approx(expected[-1], abs=1e-9) if apart else None)
        assert (comparison.interval is None) == (not apart)
    for comparison, adjusted in zip(ours, holm(expected), strict=True):
        assert comparison.p_adjusted == (None if adjusted is None else pytest.approx(adjusted, abs=1e-9))


def survey(
    seed: int, issues: range = range(8), trials: int = 6, lean: float = 0.0, baselines: range = range(99)
) -> ModelCounts:
    """A model by its trials, whose chance of pro differs by issue and case; only `baselines` are trials with one."""
    source = np.random.default_rng(seed)
    configs = [case + "-1" * case.startswith(("clear", "balanced")) for case in CASES]
    rows = []
    for issue in issues:
        chances = np.clip(source.random(len(CASES)) + lean * np.array([0, 1, -1, 1, -1, 0]), 0, 1)
        for (at, config), template, trial in product(enumerate(configs), (1, 2), range(trials)):
            side = "pro" if source.random() < chances[at] else "con"
            if at or trial in baselines:
                rows.append(Row(f"issue-{issue:02}", template, config, trial, (side,) * 3))
    return counts_of(answers_of(rows, f"m{seed}"))


def test_a_pair_does_not_depend_on_who_else_is_compared() -> None:
    one, other = survey(1), survey(2)
    [alone] = compare([one, other], resampling=FAST)
    for third in (survey(3), survey(3, trials=9), survey(3, range(4, 12)), counts_from("m3", {})):
        beside = compare([third, one, other], resampling=FAST)[2]
        assert (beside.first, beside.second) == ("m1", "m2")
        assert (beside.difference, beside.interval, beside.p) == (alone.difference, alone.interval, alone.p)


@pytest.mark.parametrize("kind", ["om", "om_no_flip"])
def test_the_interval_is_that_of_the_mean_difference_over_issues_scored_in_both(kind: str) -> None:
    # Few baseline answers, in other trials of each, so that in some replicates an issue is scored of one model only.
    one, other = survey(1, range(5), trials=4, baselines=range(2)), survey(2, range(5), trials=4, baselines=range(3, 4))
    assert one.units is not None and other.units is not None
    both = ModelCounts(
        "both",
        one.issues,
        np.concatenate([one.pooled, other.pooled], axis=1),
        np.concatenate([one.units, other.units], axis=3),
    )

    def mean_difference(replicates: np.ndarray) -> np.ndarray:
        means = []
        for counts in replicates:
            found = [openness(counts[:, :6]), openness(counts[:, 6:])]
            rows = zip(*(zip(getattr(own, kind), own.is_scored, strict=True) for own in found), strict=True)
            apart = [float(a - b) for (a, a_scored), (b, b_scored) in rows if a_scored and b_scored]
            means.append(fmean(apart) if apart else float("nan"))
        return np.array(means)

    expected = intervals(both, {"difference": mean_difference}, np.random.default_rng(5), FAST)["difference"]
    [found] = compare([one, other], kind, seed=5, resampling=FAST)
    assert expected is not None
    assert found.interval == pytest.approx(expected, abs=1e-9)


def test_turning_a_pair_round_turns_the_difference_round() -> None:
    [ahead], [back] = (
        compare(pair, "om_no_flip", resampling=FAST) for pair in ([survey(1), survey(2)], [survey(2), survey(1)])
    )
    assert ahead.interval is not None and ahead.difference is not None and back.interval is not None
    assert back.difference == pytest.approx(-ahead.difference)
    assert back.interval == pytest.approx((-ahead.interval[1], -ahead.interval[0]))
    assert back.p == ahead.p


def test_a_model_does_not_differ_from_itself_in_any_replicate() -> None:
    # Both answer the same prompts, so both are resampled alike: by issue, and by trial.
    one = survey(1)
    [found] = compare([one, one], resampling=FAST)
    assert found == Comparison("m1", "m1", 8, 0, (0, 0), 1, 1)


def test_the_interval_holds_the_difference_and_shrinks_with_more_issues() -> None:
    widths = []
    for number in (6, 40):
        [found] = compare([survey(1, range(number)), survey(2, range(number))], "om_no_flip")
        assert found.interval is not None and found.difference is not None
        low, high = found.interval
        assert low < found.difference < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 1.7


def test_the_interval_and_the_test_are_seeded() -> None:
    pair = [survey(1, range(20)), survey(2, range(20))]
    assert compare(pair, resampling=FAST) == compare(pair, resampling=FAST)
    assert compare(pair, seed=1, resampling=FAST)[0].interval != compare(pair, resampling=FAST)[0].interval


def test_trials_widen_an_interval_that_issues_alone_would_leave_without_width() -> None:
    [found] = compare([survey(1, range(1)), survey(2, range(1))], "om_no_flip", resampling=FAST)
    assert found.interval is not None
    assert found.interval[1] - found.interval[0] > 1


def test_a_model_known_by_totals_alone_is_compared_by_answer() -> None:
    one, other = survey(1), survey(2)
    totals = ModelCounts(other.model, other.issues, other.pooled)
    [by_answer], [by_trial] = (compare([one, model], "om_no_flip") for model in (totals, other))
    assert (by_answer.difference, by_answer.p) == (by_trial.difference, by_trial.p)
    assert by_answer.interval is not None and by_trial.interval is not None
    assert by_answer.interval == pytest.approx(by_trial.interval, abs=3)


def test_models_are_compared_on_the_issues_that_both_are_scored_on() -> None:
    [found] = compare([survey(1, range(8)), survey(2, range(5, 20))], resampling=FAST)
    assert found.issues == 3
    [apart] = compare([survey(1, range(3)), survey(2, range(3, 6))])
    assert apart == Comparison("m1", "m2", 0, None, None, None, None)


def test_only_pairs_that_could_be_compared_count_in_the_adjustment() -> None:
    swayed, stubborn = survey(1, range(12), lean=1), survey(2, range(12))
    found = compare([swayed, stubborn, survey(3, range(20, 30))], "om_pro_share", resampling=FAST)
    assert [comparison.issues for comparison in found] == [12, 0, 0]
    assert found[0].p_adjusted == found[0].p != 1
