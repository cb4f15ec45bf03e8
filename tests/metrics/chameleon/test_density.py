"""Claims about the density of figure 3."""

from __future__ import annotations

from math import exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.metrics.statistics.density import GRID, density


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12).filter(lambda values: max(values) - min(values) > 0.01))
def test_it_is_the_sum_of_its_kernels(values: list[float]) -> None:
    found = density(np.array(values))
    n, mean = len(values), sum(values) / len(values)
    width = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)) * n**-0.2
    assert found.bandwidth == pytest.approx(width)
    assert found.heights is not None
    for at in (0, 50, 137, 200):
        kernels = (exp(-(((GRID[at] - value) / width) ** 2) / 2) / (width * sqrt(2 * pi)) for value in values)
        assert found.heights[at] == pytest.approx(sum(kernels) / n, abs=1e-9)


def test_its_area_is_one() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.05, 1_000)
    found = density(values)
    assert found.heights is not None
    assert float(np.trapezoid(found.heights, GRID)) == pytest.approx(1, abs=1e-6)
    assert found.heights.max() == pytest.approx(1 / (0.05 * sqrt(2 * pi)), rel=0.1)


def test_values_that_are_all_the_same_have_no_width_to_draw() -> None:
    found = density(np.full(9, 0.67))
    assert (found.n, found.bandwidth, found.heights) == (9, None, None)
    assert density(np.array([0.5])).heights is None


def test_what_is_no_value_is_passed_over() -> None:
    with_gaps = density(np.array([0.2, np.nan, 0.8]))
    assert with_gaps.n == 2
    assert with_gaps.bandwidth == density(np.array([0.2, 0.8])).bandwidth
