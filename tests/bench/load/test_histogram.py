"""Percentiles and their intervals, against numpy's and against how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from scipy import stats  # type: ignore[import-untyped]

from millstream.bench.load.histogram import Histogram, interval_ranks
from millstream.metrics.statistics.shares import share_interval


def filled(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(float(value))
    return histogram


@pytest.mark.parametrize("percent", [50.0, 90.0, 99.0, 99.9])
def test_percentiles_are_those_of_the_values_to_a_thousandth(percent: float) -> None:
    values = np.random.default_rng(1).lognormal(-2, 1.5, 20_001)
    found = filled(values).percentile(percent)
    assert found is not None
    assert found.value_s == pytest.approx(np.quantile(values, percent / 100, method="inverted_cdf"), rel=0.0012)


@pytest.mark.parametrize(("count", "share"), [(50, 0.5), (400, 0.99), (5_000, 0.99), (100_000, 0.999)])
def test_interval_ranks_are_those_of_the_binomial_law(count: int, share: float) -> None:
    low, high = interval_ranks(count, share)
    law = stats.binom(count, share)
    assert law.cdf(low - 1) <= 0.025 < law.cdf(low)
    assert law.cdf(high - 1) >= 0.975 > law.cdf(high - 2)


def test_an_interval_holds_the_true_percentile_in_95_of_100_samples() -> None:
    random = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        found = filled(random.exponential(0.1, 500)).percentile(90)
        assert found is not None and found.low_s is not None and found.high_s is not None
        held += found.low_s <= 0.1 * math.log(10) * 1.001 and found.high_s >= 0.1 * math.log(10)
    assert 270 <= held < 300


def test_too_few_calls_leave_an_interval_without_its_end() -> None:
    found = filled(np.linspace(0.1, 1, 100)).percentile(99)
    assert found is not None and found.high_s is None and found.low_s is not None
    assert Histogram().percentile(99) is None


def test_ten_million_calls_have_an_interval_at_once() -> None:
    low, high = interval_ranks(10_000_000, 0.5)
    assert (5_000_000 - low, high - 5_000_000) == pytest.approx((3_099, 3_100), abs=2)


def test_merged_histograms_are_one_of_all_values() -> None:
    values = np.random.default_rng(3).exponential(0.2, 4_000)
    whole, first, second = filled(values), filled(values[:1_500]), filled(values[1_500:])
    first.merge(second)
    assert first.percentile(99) == whole.percentile(99)
    assert (first.count, first.longest_s) == (whole.count, whole.longest_s)
    assert first.mean_s == pytest.approx(values.mean())


def test_what_takes_longer_than_an_hour_is_counted_as_an_hour() -> None:
    histogram = Histogram()
    histogram.record(7_200.0)
    assert (histogram.count, histogram.longest_s) == (1, 3_600.0)


@pytest.mark.parametrize("hits", [0, 1, 7, 3_000])
def test_a_shares_interval_holds_what_was_seen_and_tells_of_none_by_the_exact_law(hits: int) -> None:
    low, high = share_interval(hits, 3_000)
    assert low <= hits / 3_000 <= high
    if hits == 0:
        assert high == pytest.approx(1 - 0.025 ** (1 / 3_000))
    assert share_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("digits", [2, 3])
def test_every_time_falls_into_the_librarys_own_bucket(digits: int) -> None:
    random = np.random.default_rng(4)
    values = [0, 1, 2, 127, 128, 255, 256, 1_023, 1_024, 2_047, 2_048, 2_049, 3_600_000_000]
    values += [int(each) for each in np.exp(random.uniform(0, math.log(3.6e9), 5_000))]
    ours, theirs = Histogram(digits), HdrHistogram(1, 3_600_000_000, digits)
    for value in values:
        ours.record(value / 1e6)
        theirs.record_value(value)
    read = HdrHistogram.decode(ours.encoded())
    assert [item.count_at_value_iterated_to for item in read.get_all_values_iterator()] == [
        item.count_at_value_iterated_to for item in theirs.get_all_values_iterator()
    ]
    assert ours.encoded() == theirs.encode().decode()
    assert (read.get_total_count(), read.get_max_value()) == (len(values), theirs.get_max_value())
