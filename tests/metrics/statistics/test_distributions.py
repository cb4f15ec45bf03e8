"""Claims about Student's t: held against printed tables, closed forms, integration, and scipy if it is here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.metrics.statistics.distributions import incomplete_beta, t_p_value, t_quantile

# Two-sided critical values as statistical tables print them: degrees of freedom, then at 0.05 and 0.01.
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
FREEDOMS = (1, 2, 3, 9, 29, 106, 2_000, 10**6)


@pytest.mark.parametrize(("freedom", "at_5", "at_1"), T_TABLE)
def test_quantiles_and_p_values_are_those_of_printed_tables(freedom: int, at_5: float, at_1: float) -> None:
    assert [t_quantile(0.95, freedom), t_quantile(0.99, freedom)] == pytest.approx([at_5, at_1], abs=6e-4)
    assert [t_p_value(at_5, freedom), t_p_value(-at_1, freedom)] == pytest.approx([0.05, 0.01], rel=2e-3)


def test_both_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in FREEDOMS:
        for level in (0.5, 0.9, 0.95, 0.99, 0.9999):
            assert t_quantile(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-8)
        for t in (0.0, 0.1, 1.0, 5.0, 40.0):
            assert t_p_value(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-7)


@given(st.floats(0.001, 0.999), st.floats(1, 1e5))
def test_the_quantile_is_the_inverse_of_the_p_value(level: float, freedom: float) -> None:
    assert t_p_value(t_quantile(level, freedom), freedom) == pytest.approx(1 - level, rel=1e-9)


def test_the_p_value_stays_a_number_far_out() -> None:
    assert 0 <= t_p_value(1e200, 3) < 1e-300 and t_p_value(float("inf"), 3) == 0
    assert 0 < t_p_value(30, 10_000) < 1e-100 and t_p_value(0, 5) == 1


@pytest.mark.parametrize("level", [0, 1, 95, float("nan")])
def test_a_level_that_is_no_share_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"level .* must lie between 0 and 1, as in 0.95"):
        t_quantile(level, 9)
    with pytest.raises(ValueError, match=r"freedom \(0\) must be above 0"):
        t_p_value(1, 0)


@given(st.floats(0, 1), st.floats(0.5, 5_000), st.floats(0.5, 50))
def test_the_incomplete_beta_lies_between_0_and_1_and_mirrors_itself(x: float, a: float, b: float) -> None:
    found = incomplete_beta(x, a, b)
    assert 0 <= found <= 1
    assert found == pytest.approx(1 - incomplete_beta(1 - x, b, a), abs=1e-9) or x < 1e-12
