"""Claims about how often intervals of shares hold the truth, computed from the binomial distribution where that is
possible, else simulated; `make intervals` does it at length and prints tables of docs/intervals.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torture import times

import millstream as ms
from millstream.metrics.statistics.intervals import mean_interval

stats = pytest.importorskip("scipy.stats")
Values = NDArray[np.float64]

IS_LONG = times(1, 2) > 1
SHARES = np.arange(1, 100) / 100
COLUMNS = (5, 10, 20, 30, 50, 100, 200, 400)
ROWS = (1, 2, 3, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97, 98, 99)
SIZES: Sequence[int] = range(5, 401) if IS_LONG else (5, 6, 7, 8, 11, 13, 20, 21, 25, 50, 100, 230, 400)


@cache
def printed(size: int) -> tuple[Values, Values]:
    """The interval that users see, by the number of ones."""
    every = [ms.interval([1.0] * ones + [0.0] * (size - ones), within=(0, 1)) for ones in range(size + 1)]
    low, high = np.array([(found.low, found.high) for found in every], dtype=np.float64).T
    return low, high


@cache
def wilson(size: int) -> tuple[Values, Values]:
    """Not ours: SciPy's."""
    every = [stats.binomtest(ones, size).proportion_ci(0.95, method="wilson") for ones in range(size + 1)]
    low, high = np.array([(found.low, found.high) for found in every]).T
    return low, high


def students(size: int) -> tuple[Values, Values]:
    """What stood in reports before; no interval where all are equal."""
    share = np.arange(size + 1) / size
    half = stats.t.ppf(0.975, size - 1) * np.sqrt(share * (1 - share) / (size - 1))
    half[[0, -1]] = np.nan
    return np.maximum(0, share - half), np.minimum(1, share + half)


def weights(size: int) -> Values:
    """How likely each number of ones is, a row for each share from 1% to 99%."""
    likely: Values = stats.binom.pmf(np.arange(size + 1), size, SHARES[:, None])
    return likely


def coverage(ends: tuple[Values, Values], size: int) -> Values:
    """By share, of the intervals that are there."""
    low, high = ends
    is_held = (low <= SHARES[:, None]) & (SHARES[:, None] <= high)
    is_there = ~np.isnan(low)
    likely = weights(size)
    found: Values = (likely * is_held).sum(axis=1) / (likely * is_there).sum(axis=1)
    return found


def width(ends: tuple[Values, Values], size: int) -> Values:
    found: Values = weights(size) @ (ends[1] - ends[0])
    return found


def show(title: str, head: Sequence[object], rows: Sequence[tuple[str, Sequence[float]]]) -> None:
    print(f"\n{title}\n\n| | {' | '.join(map(str, head))} |\n|---|{'--:|' * len(head)}")
    for name, values in rows:
        print(f"| {name} | {' | '.join(f'{100 * value:.1f}' for value in values)} |")


def show_shares(title: str, method: Callable[[int], tuple[Values, Values]]) -> None:
    by_size = [coverage(method(size), size) for size in COLUMNS]
    rows = [(f"{percent}%", [each[percent - 1] for each in by_size]) for percent in ROWS]
    show(title, COLUMNS, [*rows, ("the least from 1% to 99%", [float(each.min()) for each in by_size])])


def test_intervals_of_shares_hold_the_truth_at_every_share_and_size() -> None:
    least = {size: float(coverage(printed(size), size).min()) for size in SIZES}
    worst = min(least, key=lambda size: least[size])
    assert least[worst] >= 0.93, f"{least[worst]:.3f} of {worst} items"
    wider = {size: width(printed(size), size) / width(wilson(size), size) for size in SIZES if size >= 20}
    widest = max(wider, key=lambda size: float(wider[size].max()))
    print(
        f"\nLeast coverage {least[worst]:.3f}, at {worst}; {wider[widest].max():.3f} as wide as Wilson's, at {widest}"
    )
    assert wider[widest].mean() <= 1.25 and wider[widest].max() <= 1.25
    show_shares("Shares, exact intervals: computed", printed)
    show_shares("Shares, Student's t: computed", students)


def clustered(source: np.random.Generator, share: float, alike: float, clusters: int, trials: int) -> Values:
    """Trials of items whose own shares follow a beta distribution; `alike` is the correlation within an item."""
    own = np.full(clusters, share)
    if alike:
        scale = (1 - alike) / alike
        own = source.beta(share * scale, (1 - share) * scale, clusters)
    drawn: Values = (source.random((clusters, trials)) < own[:, None]).astype(np.float64)
    return drawn


CLUSTERED = [(clusters, trials) for clusters in (10, 30, 100) for trials in (2, 5, 10)]


def test_intervals_of_shares_over_trials_hold_the_truth_from_10_items_on() -> None:
    samples = 2_000 if IS_LONG else 150
    percents = (1, 3, 5, 10, 30, 50, 90, 97, 99) if IS_LONG else (3, 50, 97)
    rows = []
    for alike in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9) if IS_LONG else (0.0, 0.5, 0.9):
        source = np.random.default_rng(5)
        held = [
            [simulated(source, percent / 100, alike, clusters, trials, samples) for clusters, trials in CLUSTERED]
            for percent in percents
        ]
        rows.append((f"correlation {alike:g} within an item", [min(each) for each in zip(*held, strict=True)]))
    show(
        f"Shares over trials, the least of {percents}%: {samples:,} samples", [f"{c} x {t}" for c, t in CLUSTERED], rows
    )
    for name, least in rows:
        assert min(least) > 0.92 - 3 * math.sqrt(0.92 * 0.08 / samples), name


def simulated(
    source: np.random.Generator, share: float, alike: float, clusters: int, trials: int, samples: int
) -> float:
    names = np.repeat(np.arange(clusters), trials).tolist()
    held = 0
    for _ in range(samples):
        found = ms.interval(clustered(source, share, alike, clusters, trials).ravel(), names, within=(0, 1))
        assert found.low is not None and found.high is not None and found.low <= found.mean <= found.high
        held += found.low <= share <= found.high
    return held / samples


@cache
def paired(size: int) -> tuple[Values, Values, Values, Values, Values]:
    """By the numbers of pairs ahead and behind: these, the ends of the interval that users see, and p."""
    made: list[tuple[float, ...]] = []
    for ahead in range(size + 1):
        for behind in range(size + 1 - ahead):
            first = [1] * ahead + [0] * (size - ahead)
            second = [0] * ahead + [1] * behind + [0] * (size - ahead - behind)
            found = ms.compare(first, second)
            assert found.low is not None and found.high is not None
            made.append((ahead, behind, found.low, found.high, found.p))
    a, b, low, high, p = np.array(made).T
    return a, b, low, high, p


PAIRED = (5, 10, 20, 40, 70, 120) if IS_LONG else (5, 8, 20)


def test_intervals_of_paired_shares_hold_the_truth_and_agree_with_the_exact_test() -> None:
    differing = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99)
    balances = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    rows: dict[float, list[float]] = {}
    for size in PAIRED:
        ahead, behind, low, high, p = paired(size)
        expected = [
            stats.binomtest(int(a), int(a + b)).pvalue if a + b else 1 for a, b in zip(ahead, behind, strict=True)
        ]
        assert p == pytest.approx(expected, rel=1e-9)
        assert ((p < 0.05) == ((low > 0) | (high < 0))).all()
        assert ((low <= (ahead - behind) / size) & ((ahead - behind) / size <= high)).all()
        for share in differing:
            likely = [
                stats.multinomial.pmf(
                    np.stack([ahead, behind, size - ahead - behind], axis=-1),
                    size,
                    [share * balance, share * (1 - balance), 1 - share],
                )
                for balance in balances
            ]
            truths = [share * (2 * balance - 1) for balance in balances]
            held = [
                float(each[(low <= truth + 1e-12) & (truth - 1e-12 <= high)].sum())
                for each, truth in zip(likely, truths, strict=True)
            ]
            rows.setdefault(share, []).append(min(held))
    show("Paired shares, the least over how one-sided the pairs that differ are: computed", PAIRED, [
        (f"{share:.0%} of the pairs differ", held) for share, held in rows.items()
    ])  # fmt: skip
    assert min(map(min, rows.values())) >= 0.93


@pytest.mark.parametrize(("ahead", "p"), [(4, 0.125), (5, 0.0625), (6, 0.03125)])
def test_a_few_of_100_pairs_all_one_way_have_the_exact_p(ahead: int, p: float) -> None:
    found = ms.compare([1] * 100, [0] * ahead + [1] * (100 - ahead))
    assert found.p == pytest.approx(p)
    assert found.low is not None and (found.low > 0) == (p < 0.05)


@pytest.mark.parametrize("ones", [0, 3, 5])
def test_five_shares_have_an_interval_and_four_have_none(ones: int) -> None:
    values = [1.0] * ones + [0.0] * (5 - ones)
    found = ms.interval(values, of="items")
    expected: Any = stats.binomtest(ones, 5).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert (found.note, found.figures) == (None, ())
    few = ms.interval(values[:4], of="items")
    assert (few.low, few.note, few.figures) == (None, "no interval: fewer than 5 items (4)", tuple(values[:4]))


def test_figures_that_may_exceed_1_are_no_shares() -> None:
    assert ms.interval([1.0] * 20, within=(0, 5)).note == "no interval: all 20 clusters have the same figure"


def test_an_item_asked_once_counts_as_one_value_however_often_the_others_were_asked() -> None:
    """One item of ten is hard (60% ones) and asked once, the others (2%) twenty times."""
    random, number, sizes, truth = np.random.default_rng(3), 15, (20, 1), 0.1 * 0.6 + 0.9 * 0.02
    held: list[bool] = []
    while len(held) < 200:
        is_hard = (random.random(number) < 0.1).astype(int)
        asked = np.array(sizes)[is_hard]
        if len(set(asked)) < 2:
            continue  # a sample without a hard item can't show that there are any
        ones = random.random(asked.sum()) < np.repeat(np.array((0.02, 0.6))[is_hard], asked)
        found = ms.interval(ones.astype(float).tolist(), iter(np.repeat(np.arange(number), asked).tolist()))
        assert found.low is not None and found.high is not None
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.92


def test_items_asked_equally_often_have_the_interval_of_their_shares() -> None:
    values = (np.random.default_rng(1).random((40, 3)) < 0.6).astype(float)
    found = ms.interval(values.ravel(), [number // 3 for number in range(120)])
    shares = values.mean(axis=1)
    assert found == mean_interval(shares, within=(0, 1), shares=shares)
