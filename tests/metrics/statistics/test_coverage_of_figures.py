"""Claims about how often intervals of figures over all answers hold the truth, simulated; `make intervals` does it at
length and prints the tables that stand in docs/intervals.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torture import times

from millstream.metrics.statistics.intervals import Interval, mean_interval
from millstream.metrics.statistics.jackknife import PARTS_MOST
from millstream.metrics.task.figures import auroc, calibration_error, f1, pass_at

SAMPLES = times(40, 5_000)
IS_LONG = SAMPLES > 40
SIZES = (30, 50, 100, 200) if IS_LONG else (30, 50)
LARGE = 400_000
Source = np.random.Generator
Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
Figure = Callable[[Source, int], Interval | None]


def labelled(source: Source, items: int, shares: Sequence[float], right: float, trials: int) -> Columns:
    """Predicted and true labels: items differ in difficulty, and a wrong label may be any other one."""
    truth = np.repeat(source.choice(len(shares), items, p=shares), trials)
    chance = np.repeat(source.beta(right * 2, (1 - right) * 2, items), trials)
    other = (truth + source.integers(1, len(shares), len(truth))) % len(shares)
    predicted = np.where(source.random(len(truth)) < chance, truth, other)
    return predicted, truth, np.repeat(np.arange(items), trials)


def f1_of(shares: Sequence[float], right: float, trials: int, positive: int | None = None) -> Figure:
    return lambda source, items: f1(*labelled(source, items, shares, right, trials), len(shares), positive)


def auroc_of(share: float, apart: float, trials: int, steps: int = 0) -> Figure:
    """Scores with a part that an item's trials share; with `steps` only so many different ones, as people say them."""

    def figure(source: Source, items: int) -> Interval | None:
        item = np.repeat(np.arange(items), trials)
        is_right = np.repeat(source.random(items) < share, trials)
        score = source.normal(0, 0.7, items)[item] + source.normal(0, 0.7, len(item)) + apart * is_right
        return auroc(np.round(score * steps / 4) if steps else score, is_right, item)

    return figure


def pass_of(k: int, trials: int, share: float, alike: float) -> Figure:
    """Trials of an item follow a beta-binomial distribution with this correlation."""

    def figure(source: Source, items: int) -> Interval | None:
        chance = source.beta(share * (1 / alike - 1), (1 - share) * (1 / alike - 1), items)
        item = np.repeat(np.arange(items), trials)
        return pass_at(k, source.random(len(item)) < chance[item], item, item)

    return figure


def win_rate_of(share: float, alike: float, ties: float, favour: float) -> Figure:
    """Items differ in how often the answer is better; a judge favours the first place by so much."""

    def figure(source: Source, items: int) -> Interval | None:
        chance = source.beta(share * (1 / alike - 1), (1 - share) * (1 / alike - 1), items)
        orders = np.clip(np.stack([chance + favour, chance - favour]), 0, 1)
        points = np.where(source.random((2, items)) < ties, 0.5, source.random((2, items)) < orders)
        values = points.mean(axis=0)
        return mean_interval(values, within=(0, 1), of="items", shares=values)

    return figure


def calibrated(source: Source, items: int) -> Interval | None:
    confidence = source.random(items)
    return calibration_error(confidence, source.random(items) < confidence, np.arange(items), 10)


F1: dict[str, Figure] = {
    "F1, 2 labels, 60% right": f1_of((0.5, 0.5), 0.6, 1),
    "F1, 2 labels, 90% right": f1_of((0.5, 0.5), 0.9, 1),
    "F1, 2 labels of 80 and 20%, 70% right": f1_of((0.8, 0.2), 0.7, 1),
    "F1, the rarer of these labels alone": f1_of((0.8, 0.2), 0.7, 1, positive=1),
    "F1, 3 labels of 60, 30 and 10%, 80% right": f1_of((0.6, 0.3, 0.1), 0.8, 1),
    "F1, the same, 3 trials": f1_of((0.6, 0.3, 0.1), 0.8, 3),
    "F1, 5 labels, 70% right": f1_of((0.3, 0.25, 0.2, 0.15, 0.1), 0.7, 1),
    "F1, 5 labels, 95% right": f1_of((0.2,) * 5, 0.95, 1),
}
AUROC: dict[str, Figure] = {
    "AUROC 0.64, half right": auroc_of(0.5, 0.5, 1),
    "AUROC 0.80, half right": auroc_of(0.5, 1.2, 1),
    "AUROC 0.95, half right": auroc_of(0.5, 2.3, 1),
    "AUROC 0.80, 20% right": auroc_of(0.2, 1.2, 1),
    "AUROC 0.95, 20% right, scores with ties": auroc_of(0.2, 2.3, 1, 10),
    "AUROC 0.80, half right, 3 trials, ties": auroc_of(0.5, 1.2, 3, 10),
    "AUROC 0.80, 10% right": auroc_of(0.1, 1.2, 1),
}
PASS: dict[str, Figure] = {
    f"pass@{k} of {trials}, {100 * share:.0f}% right, correlation {alike}": pass_of(k, trials, share, alike)
    for k, trials in ((2, 5), (5, 10))
    for share, alike in ((0.1, 0.3), (0.3, 0.5), (0.7, 0.3), (0.85, 0.3))
}

WINS: dict[str, Figure] = {
    f"better in {100 * share:.0f}%, {100 * ties:.0f}% ties, a place favoured by {100 * favour:.0f}%": win_rate_of(
        share, alike, ties, favour
    )
    for share, alike, ties, favour in (
        (0.5, 0.5, 0.0, 0.0),
        (0.5, 0.3, 0.3, 0.2),
        (0.7, 0.5, 0.1, 0.1),
        (0.9, 0.5, 0.1, 0.0),
        (0.97, 0.5, 0.0, 0.0),
        (0.97, 0.3, 0.05, 0.1),
    )
}


def simulated(figure: Figure, size: int, source: Source, truth: float) -> tuple[float, float]:
    """How many intervals hold the truth, and how many samples have one."""
    every = [found for _ in range(SAMPLES) if (found := figure(source, size)) is not None]
    ends = [(found.low, found.high) for found in every if found.low is not None and found.high is not None]
    held = sum(low <= truth <= high for low, high in ends)
    return held / max(1, len(ends)), len(ends) / SAMPLES


def rows_of(figures: dict[str, Figure], sizes: Sequence[int] = SIZES) -> dict[str, list[tuple[float, float]]]:
    rows = {}
    for name, figure in figures.items():
        source = np.random.default_rng(7)
        whole = figure(source, LARGE if IS_LONG else LARGE // 40)
        assert whole is not None
        rows[name] = [simulated(figure, size, source, whole.mean) for size in sizes]
    print(f"\n{SAMPLES:,} samples\n\n| | {' | '.join(map(str, sizes))} |\n|---|{'--:|' * len(sizes)}")
    for name, found in rows.items():
        print(f"| {name} | {' | '.join(f'{100 * held:.1f} ({100 * there:.0f}%)' for held, there in found)} |")
    return rows


def allowance(share: float, samples: float) -> float:
    """Three standard errors of a simulated share."""
    return 3 * math.sqrt(share * (1 - share) / max(1.0, samples))


def check(figures: dict[str, Figure], least: float, sizes: Sequence[int] = SIZES) -> None:
    for name, found in rows_of(figures, sizes).items():
        for size, (held, there) in zip(sizes, found, strict=True):
            assert there * SAMPLES < 30 or held > least - allowance(least, there * SAMPLES), (name, size, held)


def check_misses(figures: dict[str, Figure], most: float) -> None:
    """Of all samples, with an interval or not: the few that have one where hardly any has are no fair sample."""
    for name, found in rows_of(figures).items():
        for size, (held, there) in zip(SIZES, found, strict=True):
            assert there * (1 - held) < most + allowance(most, SAMPLES), (name, size, held, there)


def test_intervals_of_f1_hold_the_truth() -> None:
    check(F1, 0.93)


def test_intervals_of_auroc_hold_the_truth() -> None:
    check(AUROC, 0.93)


def test_intervals_of_pass_at_k_hold_the_truth() -> None:
    check_misses(PASS, 0.07)


def test_intervals_of_win_rates_hold_the_truth() -> None:
    check(WINS, 0.95, (10, *SIZES))


def test_intervals_of_figures_that_leave_out_parts_of_many_items_hold_the_truth() -> None:
    check({"AUROC 0.80, half right": AUROC["AUROC 0.80, half right"]}, 0.93, (3 * PARTS_MOST,))


def test_a_calibration_error_of_calibrated_answers_is_above_0_so_that_it_has_no_interval() -> None:
    source = np.random.default_rng(7)
    every = [found for _ in range(20) if (found := calibrated(source, 200)) is not None]
    assert min(found.mean for found in every) > 0.02 and all(found.low is None for found in every)
