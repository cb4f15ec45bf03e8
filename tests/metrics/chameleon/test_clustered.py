"""Claims about intervals by drawing whole conversations."""

from __future__ import annotations

from itertools import permutations
from math import sqrt

import numpy as np
import pytest

from millstream.metrics.chameleon.clustered import Draws, Resampling
from millstream.metrics.chameleon.correlation import pearson

NAMES = [f"c{number}" for number in range(200)]


def values(seed: int = 0, size: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.5, 0.1, size)


def test_an_interval_of_a_mean_is_about_four_standard_errors_wide() -> None:
    own = values()
    low, high = Draws().mean(NAMES, own) or (0, 0)
    assert low < own.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * own.std(ddof=1) / sqrt(200), rel=0.1)


def test_one_conversation_held_several_times_is_no_more_evidence() -> None:
    own = values()
    once = Draws().mean(NAMES, own) or (0, 0)
    thrice = Draws().mean(NAMES * 3, np.tile(own, 3)) or (0, 0)
    assert thrice == pytest.approx(once)


def test_the_same_conversations_and_seed_give_the_same_interval() -> None:
    own = values()
    assert Draws(5).mean(NAMES, own) == Draws(5).mean(NAMES, own) != Draws(6).mean(NAMES, own)
    back = list(reversed(NAMES))
    assert Draws(5).mean(back, own[::-1]) == pytest.approx(Draws(5).mean(NAMES, own))


def test_a_single_conversation_has_no_interval() -> None:
    assert Draws().mean(["c"], np.array([0.5])) is None
    assert Draws().mean(["c", "c"], np.array([0.5, 0.6])) is None
    assert Draws().mean(["c", "d"], np.array([0.5, np.nan])) is None


def test_the_interval_of_a_correlation_holds_it_and_is_as_wide_as_fishers() -> None:
    x = values(1)
    y = x + values(2)
    r = pearson(x, y).r
    assert r is not None
    low, high = Draws().correlation(NAMES, x, y, r) or (0, 0)
    assert low < r < high
    assert np.arctanh(high) - np.arctanh(low) == pytest.approx(2 * 1.96 / sqrt(197), rel=0.15)
    assert Draws().correlation(NAMES, x, np.full(200, 0.67), None) is None


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = np.random.default_rng(11)
    draws = Draws(resampling=Resampling(replicates=400))
    held = 0
    for _ in range(200):
        # Three models on sixty conversations, which they share most of their luck on.
        luck = chance.normal(0, 1, 60)
        own = np.concatenate([luck + chance.normal(0, 0.3, 60) for _ in range(3)])
        low, high = draws.mean(NAMES[:60] * 3, own) or (1, 1)
        held += low <= 0 <= high
    assert 0.88 <= held / 200 <= 0.99


def p_of(
    names: list[str], columns: list[int], x: np.ndarray, y: np.ndarray, seed: int = 0, times: int = 2_000
) -> float:
    p = Draws(seed, Resampling(replicates=times)).shuffled_p(names, columns, x, y, pearson(x, y).r)
    assert p is not None
    return p


def test_the_p_of_shuffled_conversations_is_that_of_all_their_orders() -> None:
    chance = np.random.default_rng(3)
    x, y = chance.normal(0, 1, (2, 6)), chance.normal(0, 1, (2, 6))
    # One conversation lacks the second temperature, and another the value there.
    x[1, 4], y[1, 2] = np.nan, np.nan
    names, columns = NAMES[:6] * 2, [0] * 6 + [1] * 6
    is_known = ~(np.isnan(x) | np.isnan(y))
    ours, theirs = np.where(is_known, x, np.nan), np.where(is_known, y, np.nan)
    observed = abs(pearson(ours.ravel(), theirs.ravel()).r or 0)
    every = [abs(pearson(ours.ravel(), theirs[:, list(order)].ravel()).r or 0) for order in permutations(range(6))]
    exact = sum(r >= observed - 1e-12 for r in every) / len(every)
    assert p_of(names, columns, x.ravel(), y.ravel(), times=20_000) == pytest.approx(exact, abs=0.02)


def test_a_conversation_held_at_three_temperatures_is_one_thing_and_not_three() -> None:
    chance = np.random.default_rng(7)
    naive = clustered = 0
    names, columns = NAMES[:24] * 3, [at for at in range(3) for _ in range(24)]
    for _ in range(200):
        # What a conversation has of both sides is its own and unrelated; temperatures hardly move it.
        x, y = (np.tile(chance.normal(0, 1, 24), 3) + chance.normal(0, 0.1, 72) for _ in range(2))
        naive += (pearson(x, y).p or 1) < 0.05
        clustered += p_of(names, columns, x, y, times=199) < 0.05
    assert naive > 40
    assert 2 <= clustered <= 20


def test_what_does_go_together_is_as_sure_as_the_shuffles_can_tell() -> None:
    x = values(1)
    assert p_of(NAMES, [0] * 200, x, x + values(2) / 10) == 1 / 2_001
    y = values(2)
    assert p_of(NAMES, [0] * 200, x, y, seed=4) == p_of(NAMES, [0] * 200, x, y, seed=4)
    assert p_of(NAMES, [0] * 200, x, y) == pytest.approx(pearson(x, y).p or 0, abs=0.05)


def test_a_single_conversation_or_a_side_that_does_not_vary_has_no_p() -> None:
    assert Draws().shuffled_p(["c", "c"], [0, 1], values()[:2], values(1)[:2], 1.0) is None
    assert Draws().shuffled_p(NAMES, [0] * 200, values(), np.full(200, 0.67), None) is None


@pytest.mark.parametrize("options", [{"replicates": 0}, {"level": 1.0}])
def test_settings_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        Resampling(**options)  # type: ignore[arg-type]
