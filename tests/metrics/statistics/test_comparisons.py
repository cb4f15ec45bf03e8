"""Claims about paired comparisons: interval and p by one method, exact where there are few, clear where refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.metrics.statistics.comparisons import holm, sign_flip

# Few values, so that sums tie.
differences = st.lists(st.sampled_from([-3.5, -1, 0, 0.1, 0.2, 0.3, 1, 100 / 9]), min_size=1, max_size=8)
columns = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=10, max_size=40)


@settings(deadline=None)  # the first example imports scipy
@given(columns)
def test_with_an_interval_the_test_is_students_and_agrees_with_it(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = zip(*pairs, strict=True)
    found = ms.compare(first, second, within=(0, 8))
    assert found.difference == pytest.approx(fmean(first) - fmean(second))
    if found.low is None or found.high is None:
        assert found.note is not None and "same figure" in found.note
        return
    if {*first, *second} <= {0, 1}:
        return  # the exact test's: test_coverage_of_shares
    assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-7)
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)
    assert -8 <= found.low <= found.difference <= found.high <= 8


def test_swapped_columns_give_the_opposite_difference_and_the_same_p() -> None:
    source = np.random.default_rng(2)
    first, second = source.normal(1, 1, 40), source.normal(0, 1, 40)
    ahead, back = ms.compare(first, second), ms.compare(second, first)
    assert ahead.low is not None and ahead.high is not None
    assert (back.difference, back.low, back.high, back.p) == pytest.approx(
        (-ahead.difference, -ahead.high, -ahead.low, ahead.p)
    )


def test_trials_of_an_item_are_one_difference() -> None:
    items = [at for at in range(12) for _ in range(3)]
    source = np.random.default_rng(3)
    first, second = source.random(36), source.random(36)
    found = ms.compare(first, second, items)
    means = ms.compare(first.reshape(12, 3).mean(axis=1), second.reshape(12, 3).mean(axis=1))
    assert (found.difference, found.low, found.p) == pytest.approx((means.difference, means.low, means.p))
    assert (found.clusters, found.note) == (12, "approximate: fewer than 30 clusters (12)")


@pytest.mark.parametrize(
    ("values", "p", "figures"),
    [
        ([1.0] * 4, 2 / 16, (1,) * 4),
        ([0.0] * 4, 1, (0,) * 4),
        ([2.0], 1, (2,)),
        ([2] * 40, 2**-39, ()),
    ],
)
def test_without_an_interval_p_is_the_exact_sign_flip_tests(
    values: list[float], p: float, figures: tuple[float, ...]
) -> None:
    found = ms.compare(values, [0] * len(values))
    assert found.p == pytest.approx(p)
    assert (found.low, found.high, found.figures) == (None, None, figures)
    assert found.note is not None and found.note.startswith("no interval: ")


@given(differences)
@example([0.1, 0.2, -0.3])
def test_every_combination_of_signs_is_tried(values: list[float]) -> None:
    # In exact fractions; what differs by less than a millionth is a tie.
    exact = [Fraction(value) for value in values]
    bound = abs(sum(exact, Fraction())) - Fraction(1, 10**6)
    every = product((1, -1), repeat=len(exact))
    sums = [abs(sum((s * value for s, value in zip(signs, exact, strict=True)), Fraction())) for signs in every]
    assert sign_flip(np.array(values)) == pytest.approx(fmean(total >= bound for total in sums), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([1, 2], [1], {}, r"a \(2\) and b \(1\) must be as many: pair i is a\[i\] and b\[i\]"),
        ([], [], {}, "a must hold at least one number, got none"),
        ([1], [float("nan")], {}, "b must be finite numbers, got nan at place 0"),
        ([0.5], [2], {"within": (0, 1)}, r"b must lie within \(0, 1\), got 2"),
        ([1, 2], [1, 2], {"clusters": "abc"}, r"clusters \(3\) must be as many as pairs \(2\)"),
        ([1], [2], {"level": 1}, r"level \(1\) must lie between 0 and 1"),
    ],
)
def test_what_is_no_pair_of_columns_is_refused(a: Any, b: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ms.compare(a, b, **options)


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
