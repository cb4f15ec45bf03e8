"""Claims about intervals of means and correlations: Student's t over clusters, or none and the reason."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.metrics.statistics.intervals import correlation, mean_interval, ratio_figures

NAN = float("nan")
numbers = st.lists(st.integers(-1_000, 1_000).map(lambda number: number / 8), min_size=10, max_size=40)


def by_hand(figures: list[float], t: float) -> tuple[float, float]:
    mean = sum(figures) / len(figures)
    deviation = math.sqrt(sum((figure - mean) ** 2 for figure in figures) / (len(figures) - 1))
    half = t * deviation / math.sqrt(len(figures))
    return mean - half, mean + half


def test_an_interval_is_students_t_over_the_values() -> None:
    figures = [float(number) for number in range(1, 31)]
    found = ms.interval(figures)
    assert (found.mean, found.clusters, found.level, found.note, found.figures) == (15.5, 30, 0.95, None, ())
    assert (found.low, found.high) == pytest.approx(by_hand(figures, 2.04523), abs=1e-4)
    wide = ms.interval(figures, level=0.99)
    assert (wide.low, wide.high) == pytest.approx(by_hand(figures, 2.75639), abs=1e-4)


@settings(deadline=None)  # the first example imports scipy
@given(numbers)
def test_an_interval_is_scipys(values: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = ms.interval(values)
    if found.low is None:
        assert len(set(values)) == 1
        return
    if set(values) <= {0, 1}:
        exact = stats.binomtest(int(sum(values)), len(values)).proportion_ci(0.95, method="exact")
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
        return
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


def test_the_figure_of_a_cluster_is_the_mean_of_its_values_and_counts_once() -> None:
    values = [0, 1, 1, 1, *range(2, 11)]
    names = ["a", "a", "a", "a", *"bcdefghij"]
    found = ms.interval(values, names, of="items")
    alone = ms.interval([0.75, *range(2, 11)])
    assert (found.mean, found.low, found.high, found.clusters) == (alone.mean, alone.low, alone.high, 10)
    assert found.note == "approximate: fewer than 30 items (10)"
    mixed = ms.interval(values, [1, 1, 1, 1, None, ("x", 2), *"cdefghi"])
    assert mixed.low == found.low


@pytest.mark.parametrize(
    ("values", "note", "figures"),
    [
        ([4], "no interval: fewer than 10 clusters (1)", (4,)),
        ([0, 1] * 2, "no interval: fewer than 5 clusters (4)", (0, 1) * 2),
        ([0, 2] * 4, "no interval: fewer than 10 clusters (8)", (0, 2) * 4),
        ([0.1 + 0.2, 0.3] * 5, "no interval: all 10 clusters have the same figure", ()),
        ([2] * 1_200, "no interval: all 1,200 clusters have the same figure", ()),
    ],
)
def test_where_no_interval_is_honest_there_is_none_and_the_reason(
    values: list[float], note: str, figures: tuple[float, ...]
) -> None:
    found = ms.interval(values)
    assert (found.low, found.high, found.note, found.figures) == (None, None, note, figures)
    assert found.mean == pytest.approx(np.mean(values))


@pytest.mark.parametrize(("number", "is_marked"), [(10, True), (29, True), (30, False), (107, False)])
def test_few_clusters_mark_an_interval_as_approximate(number: int, is_marked: bool) -> None:
    found = ms.interval(range(number))
    assert found.low is not None and (found.note is not None) == is_marked


def test_an_interval_is_clipped_to_what_is_possible_and_to_nothing_else() -> None:
    values = [0.0] * 28 + [0.9, 0.9]
    free, clipped = ms.interval(values), ms.interval(values, within=(0, 1))
    assert free.low is not None and free.low < 0
    assert (clipped.low, clipped.high) == (0, free.high)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([], {}, "values must hold at least one number, got none"),
        ([1, NAN], {}, "values must be finite numbers, got nan at place 1: leave out what has no value"),
        ([1, None], {}, "values must be"),
        ([math.inf], {}, "values must be finite numbers, got inf at place 0"),
        (["a"], {}, "values must be numbers"),
        ([10**400], {}, "values must be numbers"),
        ([1e308, -1e308], {}, r"values must lie within 1e\+150 of 0, got 1e\+308"),
        ([[1, 2], [3, 4]], {}, "values must have one dimension, got 2"),
        ([1, 2], {"clusters": ["a"]}, r"clusters \(1\) must be as many as values \(2\)"),
        ([0.5, 1.2], {"within": (0, 1)}, r"values must lie within \(0, 1\), got 1.2"),
        ([0.5], {"within": (1, 0)}, r"within \(1, 0\) must be a smaller and a larger number"),
        (list(range(40)), {"level": 95}, r"level \(95\) must lie between 0 and 1, as in 0.95"),
        ([1], {"level": 0}, r"level \(0\) must lie between 0 and 1, as in 0.95"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused(values: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ms.interval(values, **options)


def test_a_contribution_to_a_ratio_is_what_its_amount_exceeds_the_ratio_by_over_the_mean_size() -> None:
    # 11 of 4 is 2.75; a mean size of 2: 2.75 + (2 - 2.75 * 1) / 2, and 2.75 + (9 - 2.75 * 3) / 2.
    assert ratio_figures(np.array([2.0, 9.0]), np.array([1.0, 3.0])).tolist() == [2.375, 3.125]


def test_the_largest_number_that_is_taken_is_taken() -> None:
    assert ms.interval([1e150, 0.0]).mean == 5e149
    with pytest.raises(ValueError, match="must lie within 1e\\+150 of 0"):
        ms.interval([np.nextafter(1e150, 2e150), 0.0])


def test_contributions_to_a_ratio_have_the_ratio_as_their_mean() -> None:
    sizes = np.array([1.0, 2, 3, 4, 5] * 3)
    amounts = sizes * np.arange(15.0)
    found = mean_interval(ratio_figures(amounts, sizes))
    assert found.mean == pytest.approx(amounts.sum() / sizes.sum())
    equal = np.full(15, 4.0)
    assert ratio_figures(amounts, equal) == pytest.approx(amounts / equal)


def related(number: int, rows: int = 1, seed: int = 1) -> tuple[np.ndarray, np.ndarray, list[int]]:
    source = np.random.default_rng(seed)
    x = source.normal(size=(number, 1)) + 0.5 * source.normal(size=(number, rows))
    y = 0.6 * x + source.normal(size=(number, 1)) + 0.5 * source.normal(size=(number, rows))
    return x.ravel(), y.ravel(), [at for at in range(number) for _ in range(rows)]


@given(st.integers(0, 400), st.sampled_from([1, 3]), st.sampled_from([10, 14, 40]))
def test_p_and_interval_of_a_correlation_never_contradict_each_other(seed: int, rows: int, number: int) -> None:
    source = np.random.default_rng(seed)
    x, y, names = related(number, rows, seed)
    found = correlation(x, y + source.uniform(0, 3) * source.normal(size=len(y)), names, of="conversations")
    assert found.r is not None and found.low is not None and found.high is not None and found.p is not None
    assert found.low <= found.r <= found.high
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_r_is_numpys_and_rows_without_a_value_enter_with_neither_side() -> None:
    x, y, names = related(20, 3)
    whole = correlation(x, y, names)
    assert whole.r == pytest.approx(float(np.corrcoef(x, y)[0, 1]), abs=1e-12)
    with_gaps = correlation(np.append(x, [NAN, 5.0]), np.append(y, [3.0, NAN]), [*names, 98, 99])
    assert with_gaps.r == pytest.approx(whole.r)
    assert (with_gaps.rows, with_gaps.clusters) == (60, 20)


def test_an_interval_of_a_correlation_is_fishers_with_the_larger_of_two_errors() -> None:
    stats = pytest.importorskip("scipy.stats")
    jackknifes_larger = set[bool]()
    for seed in range(20):
        x, y, names = related(14, 1, seed)
        # Each fit again without one row, by numpy.
        left = [np.arctanh(np.corrcoef(np.delete(x, at), np.delete(y, at))[0, 1]) for at in range(14)]
        jackknife, least = 13 * np.std(left, ddof=1) / math.sqrt(14), 1 / math.sqrt(14 - 3)
        jackknifes_larger.add(bool(jackknife > least))
        z, half = np.arctanh(np.corrcoef(x, y)[0, 1]), stats.t.ppf(0.975, 12) * max(jackknife, least)
        found = correlation(x, y, names)
        assert (found.low, found.high) == pytest.approx((np.tanh(z - half), np.tanh(z + half)), rel=1e-9)
    assert jackknifes_larger == {True, False}


def test_within_groups_it_is_the_correlation_of_what_deviates_from_each_groups_mean() -> None:
    stats = pytest.importorskip("scipy.stats")
    x, y, names = related(14, 2, seed=3)
    groups, shift = ["a", "b"] * 14, np.array([0.0, 50.0] * 14)
    whole, within = (correlation(x + shift, y - shift, names, groups=each) for each in (None, groups))

    def r_of(kept: np.ndarray[Any, Any]) -> float:
        sides = [[side[kept & at] - side[kept & at].mean() for at in (shift == 0, shift > 0)] for side in (x, y)]
        return float(np.corrcoef(np.concatenate(sides[0]), np.concatenate(sides[1]))[0, 1])

    r = r_of(np.ones(28, dtype=bool))
    assert whole.r is not None and whole.r < -0.99 and within.r == pytest.approx(r, rel=1e-9)
    left = [np.arctanh(r_of(np.array(names) != name)) for name in range(14)]
    error = max(13 * np.std(left, ddof=1) / math.sqrt(14), 1 / math.sqrt(28 - 2 - 2))
    # 14 conversations, less one and one for each of two groups.
    half = stats.t.ppf(0.975, 11) * error
    assert (within.low, within.high) == pytest.approx((np.tanh(np.arctanh(r) - half), np.tanh(np.arctanh(r) + half)))
    assert within.p == pytest.approx(2 * stats.t.sf(abs(np.arctanh(r)) / error, 11))


def test_within_groups_that_do_not_vary_or_are_too_many_there_is_no_interval() -> None:
    x, y, names = related(12, 2)
    flat = correlation(np.array([0.1, 0.7] * 12), y, names, groups=["a", "b"] * 12, of="conversations")
    assert (flat.r, flat.note) == (None, "no interval: one side does not vary")
    many = correlation(x, y, names, groups=[f"m{at % 11}" for at in range(24)], of="conversations")
    assert many.r is not None and (many.low, many.p) == (None, None)
    assert many.note == "no interval: 11 groups leave 12 conversations no degree of freedom"
    assert correlation(x, y, names, groups=["m"] * 24) == correlation(x, y, names)


def test_rows_of_one_cluster_do_not_count_as_independent() -> None:
    x, y, _ = related(12)
    once = correlation(x, y)
    again = correlation(np.tile(x, 3), np.tile(y, 3), [*range(12)] * 3)
    assert again.r == pytest.approx(once.r)
    assert (again.clusters, again.rows) == (12, 36)
    apart = correlation(np.tile(x, 3), np.tile(y, 3))
    assert apart.low is not None and again.low is not None
    assert again.low < apart.low


@pytest.mark.parametrize(
    ("x", "y", "r", "note"),
    [
        ([1, 2, 3], [1, 2, 4], 0.98, "no interval: fewer than 10 clusters (3)"),
        ([1] * 12, [*range(12)], None, "no interval: one side does not vary"),
        ([1], [2], None, "no interval: one side does not vary"),
        ([*range(12)], [*range(12)], 1, "no interval: all clusters, or all but one, lie on one line"),
        ([0] * 11 + [1], [*range(12)], 0.48, "no interval: all clusters, or all but one, lie on one line"),
    ],
)
def test_a_correlation_of_few_or_of_one_line_has_no_interval_and_no_p(
    x: list[float], y: list[float], r: float | None, note: str
) -> None:
    found = correlation(np.array(x, dtype=float), np.array(y, dtype=float))
    assert found.r == (None if r is None else pytest.approx(r, abs=0.01))
    assert (found.low, found.high, found.p, found.note) == (None, None, None, note)
