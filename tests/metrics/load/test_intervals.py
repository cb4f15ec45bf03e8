"""Ratios of measured times, with intervals that hold what they promise."""

from __future__ import annotations

from random import Random

import pytest

from millstream.bench.load.histogram import Histogram
from millstream.metrics.load.knee import ratio
from millstream.metrics.load.load_json import Percentile


def measured(random: Random, mean_s: float, calls: int = 1_000) -> Percentile:
    histogram = Histogram()
    for _ in range(calls):
        histogram.record(random.expovariate(1 / mean_s))
    found = histogram.percentile(90)
    assert found is not None
    return found


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95% of 300: fewer than 273 or all of them would come once in a thousand times."""
    random = Random(7)
    held = 0
    for _ in range(300):
        times = ratio(measured(random, 0.3, 400), measured(random, 0.2, 400))
        assert None not in (times.low, times.high)
        held += (times.low or 0) <= 1.5 <= (times.high or 0)
    assert 273 <= held < 300


def test_an_end_that_is_not_known_leaves_the_other_one() -> None:
    whole, cut = Percentile(99.0, 2.0, 1.5, 3.0), Percentile(99.0, 1.0, 0.8, None)
    times = ratio(whole, cut)
    assert times.value == pytest.approx(2.0) and times.low is None and times.high is not None


def test_a_thing_beside_itself_differs_by_nothing() -> None:
    same = Percentile(99.0, 2.0, 1.5, 3.0)
    assert ratio(same, same).value == 1.0


def test_times_of_nothing_are_compared_all_the_same() -> None:
    none = Percentile(50.0, 0.0, 0.0, 0.0)
    assert ratio(none, none).value == 1.0
    assert ratio(Percentile(50.0, 1.0, 1.0, 1.0), none).value == pytest.approx(1e6)
