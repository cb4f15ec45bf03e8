"""Claims about agreement: the published examples, a second way to every number, and intervals that hold the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from millstream.metrics.statistics.agreement import Agreement, agreement
from millstream.metrics.statistics.shares import share_interval

Table = Sequence[Sequence[int]]

# Counts, kappa, and its standard error where the source prints one.
PUBLISHED: dict[str, tuple[Table, float, float | None]] = {
    "Cohen 1960, table 1": ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], 0.492, None),
    "Fleiss 1981, psychotics and others": ([[75, 1, 4], [5, 4, 1], [0, 0, 10]], 0.676, 0.088),
    "skin conditions, two dermatologists": (
        [[10, 4, 1, 0], [5, 10, 12, 2], [2, 4, 12, 5], [0, 2, 6, 13]],
        0.3449,
        0.0724,
    ),
    "fifty grant applications": ([[20, 5], [10, 15]], 0.4, None),
    "the same share by uneven margins": ([[45, 15], [25, 15]], 0.1304, None),
    "the same share by margins that differ": ([[25, 35], [5, 35]], 0.2593, None),
}


def pairs_of(table: Table) -> list[tuple[str, str]]:
    names = "ABCDEFGH"
    return [
        (names[first], names[second])
        for first, row in enumerate(table)
        for second, count in enumerate(row)
        for _ in range(count)
    ]


def of(table: Table) -> Agreement:
    return agreement(pairs_of(table), "ABCDEFGH"[: len(table)])


@pytest.mark.parametrize("source", PUBLISHED)
def test_published_examples_come_out_as_printed(source: str) -> None:
    table, kappa, error = PUBLISHED[source]
    found = of(table)
    assert found.table == tuple(map(tuple, table))
    # Half a unit of the last digit that is printed.
    assert found.kappa == pytest.approx(kappa, abs=5e-4 if kappa in (0.492, 0.676) else 5e-5)
    if error is not None:
        assert found.kappa_se == pytest.approx(error, abs=5e-4 if error == 0.088 else 5e-5)


@pytest.mark.parametrize(
    ("agreed", "count", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_the_interval_of_a_share_is_the_published_one(agreed: int, count: int, low: float, high: float) -> None:
    assert share_interval(agreed, count) == pytest.approx((low, high), abs=5e-5)
    mirrored = share_interval(count - agreed, count)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=5e-5)


tables = st.integers(2, 4).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, 40), min_size=size, max_size=size), min_size=size, max_size=size)
)


def by_disagreement(table: Table) -> float:
    """Kappa as one minus the disagreement that there is over the one that chance would give."""
    counts = np.array(table, float)
    chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    differs = ~np.eye(len(table), dtype=bool)
    return 1 - float(counts[differs].sum() / chance[differs].sum())


def error_by_slopes(table: Table) -> float:
    """The standard error from kappa's slopes, taken by tiny steps, and the covariance of a multinomial."""
    counts = np.array(table, float)
    total = counts.sum()
    shares = counts.ravel() / total
    step = 1e-6 * total
    slopes = []
    for at in range(counts.size):
        more, less = counts.ravel().copy(), counts.ravel().copy()
        more[at] += step
        less[at] -= step
        up, down = (by_disagreement(changed.reshape(counts.shape).tolist()) for changed in (more, less))
        slopes.append((up - down) / 2e-6)
    slope = np.array(slopes)
    return math.sqrt(max(0.0, float((slope**2 * shares).sum() - (slope * shares).sum() ** 2) / total))


@given(tables)
def test_kappa_and_its_error_agree_with_a_second_way_to_them(table: Table) -> None:
    found = of(table)
    assume(found.kappa is not None)
    assert found.kappa == pytest.approx(by_disagreement(table), abs=1e-9)
    assert found.kappa_se == pytest.approx(error_by_slopes(table), abs=2e-4)


@given(tables, st.randoms(use_true_random=False))
def test_neither_the_order_nor_the_names_of_labels_matter(table: Table, random: Random) -> None:
    pairs = pairs_of(table)
    new = dict(zip("ABCD", ("pro", "con", "other", "unclear"), strict=True))
    renamed = [(new[first], new[second]) for first, second in pairs]
    random.shuffle(renamed)
    found, again = agreement(pairs), agreement(renamed)
    assert (again.count, again.agreed, again.share_interval) == (found.count, found.agreed, found.share_interval)
    assert again.kappa == (None if found.kappa is None else pytest.approx(found.kappa, abs=1e-9))
    assert sorted(again.labels) == sorted(new[label] for label in found.labels)


@given(tables)
def test_limits_lie_around_their_figure_and_within_what_is_possible(table: Table) -> None:
    found = of(table)
    if found.share is None or found.share_interval is None:
        assert found.count == 0
        return
    low, high = found.share_interval
    assert 0 <= low <= found.share <= high <= 1 and low < high
    if found.kappa is not None and found.kappa_interval is not None:
        low, high = found.kappa_interval
        assert -1 <= low <= found.kappa + 1e-12 and found.kappa <= high + 1e-12 and high <= 1 + 1e-12
        assert low < high


@given(tables.filter(lambda table: sum(map(sum, table)) > 0), st.integers(10, 50))
def test_more_of_the_same_narrows_both_intervals(table: Table, times: int) -> None:
    once, often = of(table), of([[cell * times for cell in row] for row in table])
    assert often.kappa == (None if once.kappa is None else pytest.approx(once.kappa, abs=1e-9))
    for few, many in ((once.share_interval, often.share_interval), (once.kappa_interval, often.kappa_interval)):
        if few is not None and many is not None:
            assert many[1] - many[0] < few[1] - few[0]


def test_everything_alike_is_a_kappa_of_one_and_still_has_a_lower_limit() -> None:
    found = of([[300, 0, 0], [0, 150, 0], [0, 0, 50]])
    assert (found.share, found.kappa, found.kappa_se) == (1, 1, 0)
    assert found.share_interval is not None and found.kappa_interval is not None
    assert list(found.share_interval) == pytest.approx([0.99265, 1], abs=5e-5)
    assert list(found.kappa_interval) == pytest.approx([1 - (1 - 0.99265) / 0.54, 1], abs=1e-4)
    assert found.share_interval[1] == found.kappa_interval[1] == 1


def test_kappa_is_undefined_where_there_is_but_one_label() -> None:
    for pairs in ([("A", "A")], [("A", "A")] * 500):
        found = agreement(pairs, ("A", "B"))
        assert (found.kappa, found.kappa_se, found.kappa_interval) == (None, None, None)
        assert found.share == 1 and found.share_interval is not None and found.share_interval[0] < 1
        assert "Kappa: undefined" in repr(found)


def test_nothing_labelled_has_no_figure_at_all() -> None:
    found = agreement([], ("A", "B"))
    assert (found.count, found.agreed, found.table) == (0, 0, ((0, 0), (0, 0)))
    assert (found.share, found.share_interval, found.kappa, found.kappa_interval) == (None, None, None, None)


def test_labels_that_were_not_named_stand_after_those_that_were() -> None:
    found = agreement([("unclear", "pro"), ("pro", "pro"), ("balanced", "con")], ("con", "pro"))
    assert found.labels == ("con", "pro", "balanced", "unclear")
    assert found.table == ((0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0))
    assert agreement([(name, "a") for name in "hgfedcb"]).labels == tuple("abcdefgh")


def test_no_limit_of_kappa_lies_below_what_kappa_can_be() -> None:
    found = of([[8, 1], [1, 0]])
    assert found.kappa is not None and found.kappa < 0
    assert found.kappa_interval is not None and found.kappa_interval[0] == -1


def held(shares: Table, count: int, replicates: int = 600) -> tuple[float, float]:
    """How often the true kappa lies in the interval, and in the plain one of 1.96 standard errors each side."""
    cells = np.array(shares, float) / np.sum(shares)
    true = by_disagreement(np.round(cells * 1e9).astype(int).tolist())
    draws = np.random.default_rng(3).multinomial(count, cells.ravel(), size=replicates)
    ours = plain = defined = 0
    for draw in draws.reshape(replicates, *cells.shape):
        found = of(draw.tolist())
        if found.kappa is None or found.kappa_interval is None or found.kappa_se is None:
            continue
        defined += 1
        ours += found.kappa_interval[0] <= true <= found.kappa_interval[1]
        plain += abs(found.kappa - true) <= 1.96 * found.kappa_se
    return ours / defined, plain / defined


@pytest.mark.parametrize(
    ("shares", "count"),
    [
        ([[490, 5, 0], [5, 450, 0], [0, 0, 50]], 500),
        ([[490, 5, 0], [5, 450, 0], [0, 0, 50]], 100),
        ([[490, 5, 0], [5, 450, 0], [0, 0, 50]], 5),
        ([[300, 100, 50], [100, 200, 50], [50, 50, 100]], 100),
        ([[300, 100, 50], [100, 200, 50], [50, 50, 100]], 5),
        ([[300, 50, 0], [50, 300, 50], [0, 50, 200]], 500),
        ([[25, 25], [25, 25]], 50),
        ([[80, 8], [8, 4]], 50),
        ([[2, 48], [48, 2]], 200),
    ],
    ids=[
        "nearly alike",
        "nearly alike, fewer",
        "nearly alike, hardly any",
        "little alike",
        "little alike, hardly any",
        "mostly alike",
        "by chance",
        "one rare",
        "contrary",
    ],
)
def test_the_interval_of_kappa_holds_the_truth_about_as_often_as_it_says(shares: Table, count: int) -> None:
    ours, _ = held(shares, count)
    assert 0.91 <= ours <= 0.998


def test_where_nearly_all_agree_the_plain_interval_would_not() -> None:
    ours, plain = held([[490, 5, 0], [5, 450, 0], [0, 0, 50]], 100)
    assert plain < 0.75 < 0.9 < ours


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match=r"must lie between 0 and 1, as in 0\.95"):
        agreement([("A", "A")], level=level)


def test_a_label_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="must be named once each"):
        agreement([], ("A", "A"))


@pytest.mark.parametrize(("successes", "number"), [(6, 5), (-1, 5), (1, 0)])
def test_more_successes_than_there_are_is_refused(successes: float, number: float) -> None:
    with pytest.raises(ValueError, match=r"successes \(-?\d\) must lie between 0 and number"):
        share_interval(successes, number)
