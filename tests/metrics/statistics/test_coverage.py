"""Claims about how often intervals hold the truth, simulated; `make intervals` does it at length and prints the table
that stands in docs/intervals.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from torture import times

import millstream as ms
from millstream.metrics.statistics.distributions import t_quantile
from millstream.metrics.statistics.intervals import Values, correlation

SAMPLES = times(500, 20_000)
IS_LONG = SAMPLES > 500
SIZES = (2, 3, 5, 10, 30, 107)
# The open-mindedness of the ten issues of the published counts that the tests come with (GPT-4o).
PUBLISHED = (7.78, 7.72, 13.27, 0.19, 3.33, 11.3, 5.06, 7.65, 10.49, 10.8)
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]


def published(source: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Spread a little around the published scores, and never below 0."""
    drawn: Values = np.maximum(0, source.choice(PUBLISHED, shape) + source.normal(0, 1.5, shape))
    return drawn


def half_zeros(source: np.random.Generator, shape: tuple[int, ...]) -> Values:
    drawn: Values = source.exponential(1, shape) * (source.random(shape) < 0.5)
    return drawn


def skewed(source: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return source.lognormal(0, 1, shape)


def normal(source: np.random.Generator, shape: tuple[int, ...]) -> Values:
    return source.normal(1, 1, shape)


def paired(source: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Differences of two models whose scores hang on the issue, and are half zeros besides."""
    issue = published(source, shape)
    return issue * source.uniform(0, 2, shape) + half_zeros(source, shape) - issue


MEANS: dict[str, Draw] = {
    "normal": normal,
    "as the published scores": published,
    "half zeros, half exponential": half_zeros,
    "strongly skewed (lognormal)": skewed,
    "paired differences": paired,
}


def true_mean(draw: Draw) -> float:
    return float(draw(np.random.default_rng(0), (1_000_000,)).mean())


def students(samples: Values) -> tuple[Values, Values]:
    """Without the rule of how many clusters it takes, which is what the table shows the reason of."""
    half = t_quantile(0.95, samples.shape[1] - 1) * samples.std(axis=1, ddof=1) / samples.shape[1] ** 0.5
    return samples.mean(axis=1) - half, samples.mean(axis=1) + half


def printed(samples: Values) -> tuple[Values, Values]:
    """The intervals that users see; NaN where there is none."""
    ends = [(found.low, found.high) for found in map(ms.interval, samples)]
    low, high = np.array(ends, dtype=np.float64).T
    return low, high


def percentiles(samples: Values) -> tuple[Values, Values]:
    """What stood in reports before: the percentiles of 2,000 means of values drawn again."""
    source = np.random.default_rng(1)
    number = samples.shape[1]
    times = source.multinomial(number, np.full(number, 1 / number), size=2_000)
    low, high = np.quantile(samples @ times.T / number, (0.025, 0.975), axis=1)
    return low, high


def coverage(ends: tuple[Values, Values], truth: float) -> float:
    """Of the intervals that are there."""
    low, high = ends
    held = (low <= truth) & (truth <= high)
    return float(np.mean(held, where=~np.isnan(low)))


def show(title: str, rows: Sequence[tuple[str, Sequence[float]]], sizes: Sequence[int]) -> None:
    print(f"\n{title}, {SAMPLES:,} samples\n\n| | {' | '.join(map(str, sizes))} |\n|---|{'--:|' * len(sizes)}")
    for name, found in rows:
        print(f"| {name} | {' | '.join(f'{100 * share:.1f}' for share in found)} |")


def allowance(share: float = 0.9) -> float:
    """Three standard errors of a simulated share."""
    return 3 * math.sqrt(share * (1 - share) / SAMPLES)


def test_intervals_of_means_hold_the_truth_from_30_clusters_on() -> None:
    rows = []
    for name, draw in MEANS.items():
        truth, source = true_mean(draw), np.random.default_rng(2)
        found = []
        for size in SIZES:
            samples = draw(source, (SAMPLES, size))
            found.append(coverage(students(samples) if size < 10 else printed(samples), truth))
        rows.append((name, found))
    show("Student's t over clusters (below 10 none is printed)", rows, SIZES)
    for name, (*_, at_10, at_30, at_107) in rows:
        # Of means over 30 strongly skewed figures it misses some: the page says so.
        least = 0.87 if "skewed" in name else 0.9
        assert min(at_30, at_107 + 0.01) > least - allowance(), name
        assert at_10 > 0.82 - allowance(), name
        assert max(at_30, at_107) < 0.98, name


def test_few_clusters_have_no_interval_since_none_would_hold_the_truth_often_enough() -> None:
    samples = 2 + half_zeros(np.random.default_rng(3), (SAMPLES, 5))
    assert coverage(students(samples), 2.5) < 0.87 + allowance()
    assert np.isnan(printed(samples)[0]).all()


@pytest.mark.skipif(not IS_LONG, reason="only for the table: make intervals")
def test_the_percentile_bootstrap_of_before() -> None:
    rows = []
    for name, draw in MEANS.items():
        truth, source = true_mean(draw), np.random.default_rng(2)
        few = [draw(source, (min(SAMPLES, 2_000), size)) for size in SIZES]
        rows.append((name, [coverage(percentiles(samples), truth) for samples in few]))
    show("Before: percentile bootstrap, at most 2,000 samples", rows, SIZES)
    assert rows[0][1][0] < 0.6


def columns(source: np.random.Generator, kind: str, rho: float, size: int, rows: int) -> tuple[Values, Values]:
    """Two columns for `size` conversations of `rows` rows each, of which 70% of the variance is the conversation's."""
    own, other = (
        0.7**0.5 * source.normal(size=(size, 1)) + 0.3**0.5 * source.normal(size=(size, rows)) for _ in range(2)
    )
    x, y = own.ravel(), (rho * own + (1 - rho * rho) ** 0.5 * other).ravel()
    if kind == "half zeros":
        return np.maximum(x, 0), np.maximum(y, 0)
    if kind == "skewed":  # squares of what is normal: a long tail
        return x * x * (x > 0), np.exp(y / 2)
    return x, y


CORRELATIONS = [
    (kind, rho, rows)
    for kind, rho in (("normal", 0.0), ("normal", 0.5), ("normal", 0.9), ("half zeros", 0.5), ("skewed", 0.5))
    for rows in (1, 3)
]


def test_intervals_of_correlations_hold_the_truth() -> None:
    samples = SAMPLES if IS_LONG else 200
    made = []
    for kind, rho, rows in CORRELATIONS:
        source = np.random.default_rng(4)
        truth = float(np.corrcoef(*columns(source, kind, rho, 300_000, rows))[0, 1])
        found = []
        for size in SIZES[3:]:
            names = np.repeat(np.arange(size), rows).tolist()
            held = 0
            for _ in range(samples):
                one = correlation(*columns(source, kind, rho, size, rows), names)
                held += one.low is not None and one.high is not None and one.low <= truth <= one.high
            found.append(held / samples)
        made.append((f"{kind}, r = {truth:.2f}, {rows} row{'s' if rows > 1 else ''} a conversation", found))
    show("Correlations", made, SIZES[3:])
    for name, (at_10, at_30, at_107) in made:
        assert min(at_30, at_107) > 0.9 - 3 * (0.09 / samples) ** 0.5, name
        assert at_10 > 0.87 - 3 * (0.09 / samples) ** 0.5, name


def models_columns(
    source: np.random.Generator, kind: str, rho: float, size: int, shift: float
) -> tuple[Values, Values, list[str]]:
    """Two columns for `size` conversations that three models each hold at two temperatures: models differ by `shift`
    standard deviations in both columns, which within a model correlate by `rho`."""
    parts = [columns(source, kind, rho, size, 2) for _ in range(3)]
    if kind == "shared":  # half of the variance is the conversation's, whichever model holds it
        own, other = source.normal(size=(2, size)).repeat(2, axis=-1)
        common = own, rho * own + (1 - rho * rho) ** 0.5 * other
        parts = [((x + common[0]) / 2**0.5, (y + common[1]) / 2**0.5) for x, y in parts]
    x, y = (np.concatenate([part[side] + shift * at for at, part in enumerate(parts)]) for side in (0, 1))
    return x, y, [name for name in "abc" for _ in range(2 * size)]


WITHIN = [(kind, rho, shift) for kind in ("normal", "shared", "skewed") for rho, shift in ((0.0, 2.0), (-0.4, 2.0))]


@pytest.mark.parametrize("is_within", [True, False], ids=["within models", "pooled"])
def test_intervals_of_correlations_over_models_hold_the_truth(is_within: bool) -> None:
    samples = SAMPLES if IS_LONG else 100
    made = []
    for kind, rho, shift in WITHIN:
        source = np.random.default_rng(5)
        x, y, models = models_columns(source, kind, rho, 100_000, shift)
        if is_within:
            middles = np.arange(3).repeat(200_000) * shift
            x, y = x - middles, y - middles
        truth = float(np.corrcoef(x, y)[0, 1])
        found = []
        for size in SIZES[3:]:
            names, held = [*np.arange(size).repeat(2).tolist() * 3], 0
            for _ in range(samples):
                x, y, models = models_columns(source, kind, rho, size, shift)
                one = correlation(x, y, names, groups=models if is_within else None)
                held += one.low is not None and one.high is not None and one.low <= truth <= one.high
            found.append(held / samples)
        made.append((f"{kind}, r = {truth:.2f}", found))
    show(f"Correlations over three models, {'within them' if is_within else 'pooled'}", made, SIZES[3:])
    for name, (at_10, at_30, at_107) in made:
        assert min(at_30, at_107) > 0.9 - 3 * (0.09 / samples) ** 0.5, name
        assert at_10 > 0.87 - 3 * (0.09 / samples) ** 0.5, name
