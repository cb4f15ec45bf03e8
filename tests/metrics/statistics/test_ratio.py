"""Claims about totals to come: exact where nothing is unsure, seeded, and wide enough for skewed answers."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.metrics.statistics.ratio import Estimate, Floats, RatioSample, Totals, totals


def table(*columns: list[float]) -> Floats:
    return np.array(columns, dtype=np.float64).T


def totals_of(amounts: list[float], left: int, sizes: list[float] | None = None, left_size: float = 0.0) -> Totals:
    """The total of one amount; without sizes, every unit is of size 1."""
    every = table([1.0] * len(amounts) if sizes is None else sizes)
    sample = RatioSample(
        table(amounts), every, left, np.array([left if sizes is None else left_size], dtype=np.float64)
    )
    return totals(sample, np.random.default_rng(1))


def total_of(amounts: list[float], left: int, sizes: list[float] | None = None, left_size: float = 0.0) -> Estimate:
    return totals_of(amounts, left, sizes, left_size).of([1])


def interval(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None
    return estimate.interval


def test_a_total_is_the_ratio_of_what_was_seen_times_the_size_of_what_was_not() -> None:
    assert total_of([10, 20], 4, sizes=[40, 80], left_size=1_000).value == pytest.approx(250)
    assert total_of([3, 5, 7], 10).value == pytest.approx(50)


def test_amounts_in_proportion_to_their_sizes_leave_nothing_unsure() -> None:
    ends = interval(total_of([10, 20, 30], 5, sizes=[40, 80, 120], left_size=1_000))
    assert [round(end, 6) for end in ends] == [250, 250]


def test_where_nothing_is_left_the_total_is_certainly_zero() -> None:
    total = total_of([3, 90, 5], 0)
    assert (total.value, interval(total)) == (0, (0, 0))


def test_one_unit_alone_gives_a_value_and_no_interval() -> None:
    total = total_of([7], 10)
    assert (total.value, total.interval) == (70, None)
    both = (totals_of([7], 10) + totals_of([1, 2, 3], 5)).of([1])
    assert both.value == pytest.approx(80) and both.interval is None


def test_no_unit_says_nothing_about_what_is_left() -> None:
    with pytest.raises(ValueError, match="no unit says nothing about the 10"):
        RatioSample(np.empty((0, 1)), np.empty((0, 1)), 10, np.array([10.0]))


def test_the_same_source_gives_the_same_interval() -> None:
    amounts = [1.0, 4, 9, 16, 200]
    assert interval(total_of(amounts, 50)) == interval(total_of(amounts, 50))


def test_a_larger_sample_narrows_the_interval_and_few_units_left_widen_it() -> None:
    amounts = list(np.random.default_rng(3).lognormal(3, 1, 400))

    def width(seen: int, left: int) -> float:
        total = total_of(amounts[:seen], left)
        low, high = interval(total)
        return (high - low) / total.value

    assert width(400, 10_000) < 0.6 * width(100, 10_000)
    assert width(100, 5) > 3 * width(100, 10_000)


def test_an_interval_is_never_below_zero() -> None:
    low, high = interval(total_of([0, 0, 0, 0, 50], 10))
    assert 0 <= low < high


def test_an_outlier_seen_once_widens_the_interval_without_end_to_it() -> None:
    total = total_of([10.0] * 9 + [1_000.0], 100)
    low, high = interval(total)
    assert low < total.value / 10 and 2 * total.value < high < 10 * total.value


def test_totals_of_one_sample_are_weighed_as_they_came_together() -> None:
    # Where one is large the other is small: together they are always 10.
    amounts = table([1, 9, 4, 6, 2, 8], [9, 1, 6, 4, 8, 2])
    both = totals(RatioSample(amounts, np.ones_like(amounts), 100, np.array([100.0, 100.0])), np.random.default_rng(1))
    low, high = interval(both.of([1, 0]))
    assert high - low > 100
    assert [round(end, 6) for end in interval(both.of([1, 1]))] == [1_000, 1_000]


def test_totals_of_two_samples_are_unsure_together_less_than_one_by_one() -> None:
    rng = np.random.default_rng(2)
    sizes, left = np.ones((60, 1)), np.array([500.0])
    one, two = (totals(RatioSample(rng.exponential(9, (60, 1)), sizes, 500, left), rng) for _ in range(2))
    widths = [high - low for low, high in (interval(each.of([1])) for each in (one, two))]
    low, high = interval((one + two).of([1]))
    assert (one + two).of([1]).value == pytest.approx(one.of([1]).value + two.of([1]).value)
    assert max(widths) < high - low < 0.8 * sum(widths)


def test_a_price_scales_value_and_interval() -> None:
    found = totals_of([1, 2, 3, 4], 20)
    whole, half = found.of([1]), found.of([0.5])
    assert half.value == whole.value / 2
    assert [2 * end for end in interval(half)] == [pytest.approx(end) for end in interval(whole)]


def test_a_sample_too_large_to_be_drawn_at_once_is_drawn_in_parts() -> None:
    amounts = np.random.default_rng(4).exponential(10, 3_000)
    low, high = interval(total_of(list(amounts), 3_000))
    error = amounts.std() / np.sqrt(3_000) * np.sqrt(2)
    assert (high - low) / 3_000 == pytest.approx(2 * 1.96 * error, rel=0.1)


@pytest.mark.parametrize(
    ("amounts", "sizes", "left_sizes"),
    [((2, 1), (3, 1), 1), ((2, 1), (2, 1), 2), ((2,), (2,), 1)],
    ids=["other units", "other columns", "no table"],
)
def test_tables_that_do_not_fit_are_refused(amounts: tuple[int, ...], sizes: tuple[int, ...], left_sizes: int) -> None:
    with pytest.raises(ValueError, match=r"must"):
        RatioSample(np.ones(amounts), np.ones(sizes), 5, np.ones(left_sizes))


def test_a_unit_without_size_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        RatioSample(np.ones((2, 1)), np.array([[1.0], [0.0]]), 5, np.ones(1))


@pytest.mark.long
@pytest.mark.parametrize(("seen", "left"), [(40, 2_000), (100, 150), (200, 5_000)])
def test_a_95_percent_interval_of_skewed_answers_covers_what_comes(seen: int, left: int) -> None:
    rng = np.random.default_rng(seen)
    covered = 0
    pilots = 300
    for _ in range(pilots):
        # Prompts of very different length, and answers of which some are ten times as long as most.
        chars = rng.lognormal(7, 0.6, seen + left)
        tokens = np.stack([8 + chars / 4 * rng.normal(1, 0.05, seen + left), rng.lognormal(3, 0.9, seen + left)], 1)
        sizes = np.stack([chars, np.ones(seen + left)], 1)
        sample = RatioSample(tokens[:seen], sizes[:seen], left, sizes[seen:].sum(axis=0))
        low, high = interval(totals(sample, rng, replicates=400).of([0.15, 4]))
        covered += low <= (tokens[seen:] @ [0.15, 4]).sum() <= high
    # Above 99% it would be so wide that it says little.
    assert 0.90 <= covered / pilots <= 0.99
