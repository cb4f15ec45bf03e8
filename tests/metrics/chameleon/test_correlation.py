"""Claims about Pearson's r and its p-value, held against published tables, closed forms and full enumeration."""

from __future__ import annotations

from itertools import permutations
from math import atan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.metrics.chameleon.correlation import p_of, pearson

# Two-sided critical values of Student's t as statistical tables print them: degrees of freedom, then at 0.05 and 0.01.
T_TABLE = [
    (1, 12.706, 63.657),
    (2, 4.303, 9.925),
    (5, 2.571, 4.032),
    (10, 2.228, 3.169),
    (30, 2.042, 2.750),
    (60, 2.000, 2.660),
    (120, 1.980, 2.617),
    (100_000, 1.960, 2.576),
]
# Critical values of r at 0.05, two-sided, as printed: number of pairs, r.
R_TABLE = [(3, 0.997), (4, 0.950), (5, 0.878), (10, 0.632), (12, 0.576), (22, 0.423), (32, 0.349), (102, 0.195)]


def r_of(t: float, df: int) -> float:
    return t / sqrt(df + t * t)


@pytest.mark.parametrize(("df", "at_5", "at_1"), T_TABLE)
def test_p_is_that_of_printed_t_tables(df: int, at_5: float, at_1: float) -> None:
    assert p_of(r_of(at_5, df), df + 2) == pytest.approx(0.05, rel=2e-3)
    assert p_of(r_of(at_1, df), df + 2) == pytest.approx(0.01, rel=2e-3)


@pytest.mark.parametrize(("n", "r"), R_TABLE)
def test_p_is_that_of_printed_tables_of_r(n: int, r: float) -> None:
    assert p_of(r, n) == pytest.approx(0.05, rel=2e-2)


@given(st.floats(-0.999999, 0.999999))
def test_p_is_its_closed_form_with_one_two_and_four_degrees_of_freedom(r: float) -> None:
    t = abs(r) / sqrt(1 - r * r)
    assert p_of(r, 3) == pytest.approx(1 - 2 * atan(t) / pi, abs=1e-9)
    # Density of r is uniform with two degrees of freedom, and parabolic with four.
    assert p_of(r, 4) == pytest.approx(1 - abs(r), abs=1e-12)
    assert p_of(r, 6) == pytest.approx(1 - abs(r) * (3 - r * r) / 2, abs=1e-12)


def test_p_is_near_that_of_every_permutation() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=8), rng.normal(size=8)
    y += 0.8 * x
    found = pearson(x, y)
    dx, dy = x - x.mean(), y - y.mean()
    every = np.abs(np.array(list(permutations(dy))) @ dx)
    exact = float((every >= abs(dx @ dy) - 1e-12).mean())
    assert found.p == pytest.approx(exact, abs=0.02)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=3, max_size=20))
def test_r_is_numpys(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    if x.std() < 1e-6 or y.std() < 1e-6:
        return
    assert pearson(x, y).r == pytest.approx(float(np.corrcoef(x, y)[0, 1]), abs=1e-9)


def test_a_column_that_does_not_vary_has_no_correlation() -> None:
    x = np.array([0.1, 0.2, 0.3])
    assert pearson(x, np.full(3, 0.67)).r is None
    assert pearson(x[:1], x[:1]).r is None


def test_values_that_are_not_there_enter_with_neither_side() -> None:
    x, y = np.array([1.0, 2.0, np.nan, 3.0]), np.array([2.0, 4.0, 9.0, 6.0])
    found = pearson(x, y)
    assert found.n == 3
    assert [found.r, found.p] == pytest.approx([1, 0], abs=1e-7)
    assert pearson(x[:2], y[:2]).p is None


def test_p_stays_a_number_for_very_many_conversations() -> None:
    assert p_of(0.627, 10_620) == 0.0 or 0 < (p_of(0.627, 10_620) or 0) < 1e-300
    assert p_of(0.001, 10_620) == pytest.approx(0.918, abs=1e-3)
