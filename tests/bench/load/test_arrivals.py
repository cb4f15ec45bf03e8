"""Arrivals against the laws they claim, by tests of others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, pairwise
from random import Random

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from millstream.bench.load.arrivals import OpenLoop, Replay, Stretch, at_rate


def gaps(times: Iterator[float], count: int) -> list[float]:
    return [after - before for before, after in pairwise(islice(times, count + 1))]


def dispersion(times: list[float], window_s: float) -> float:
    """Variance of the arrivals in a window by their mean: 1 for a Poisson process."""
    counts = np.bincount((np.array(times) / window_s).astype(int))[:-1]
    return float(counts.var(ddof=1) / counts.mean())


def test_a_constant_rate_has_even_gaps_and_drifts_by_nothing_in_a_million_calls() -> None:
    last = next(islice(at_rate(300.0, "constant").times(Random(1)), 1_000_000, None))
    assert last == pytest.approx(1_000_000 / 300, rel=1e-12)
    assert max(gaps(at_rate(300.0, "constant").times(Random(1)), 1_000)) == pytest.approx(1 / 300)


@pytest.mark.parametrize("seed", range(5))
def test_poisson_gaps_are_exponential_and_each_independent_of_the_one_before(seed: int) -> None:
    found = gaps(at_rate(40.0).times(Random(seed)), 20_000)
    assert stats.kstest(found, "expon", args=(0, 1 / 40)).pvalue > 0.001
    assert abs(stats.pearsonr(found[1:], found[:-1]).statistic) < 4 / math.sqrt(20_000)


def test_poisson_counts_vary_as_much_as_their_mean_and_constant_ones_do_not() -> None:
    poisson = list(islice(at_rate(50.0).times(Random(3)), 50_000))
    constant = list(islice(at_rate(50.0, "constant").times(Random(3)), 50_000))
    assert dispersion(poisson, 1.0) == pytest.approx(1.0, abs=0.2)
    assert dispersion(constant, 1.0) < 0.01


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0, 25.0])
def test_gamma_gaps_keep_the_rate_and_have_the_variance_that_was_asked_for(burstiness: float) -> None:
    found = gaps(at_rate(20.0, "gamma", burstiness).times(Random(7)), 100_000)
    law = stats.gamma(1 / burstiness, scale=burstiness / 20)
    # What is shorter than a microsecond is lost beside times of thousands of seconds.
    least = 1e-6
    share = float(law.cdf(least))
    seen = [gap for gap in found if gap > least]
    assert len(found) - len(seen) == pytest.approx(100_000 * share, abs=4 * math.sqrt(100_000 * share) + 1)
    assert stats.kstest(seen, lambda gap: (law.cdf(gap) - share) / (1 - share)).pvalue > 0.001
    assert np.mean(found) == pytest.approx(1 / 20, rel=0.06)
    assert np.var(found) == pytest.approx(burstiness / 400, rel=0.15)


@pytest.mark.parametrize(("rate", "rate_end"), [(0.0, 100.0), (100.0, 0.0), (10.0, 90.0), (50.0, 50.0 + 1e-9)])
def test_a_ramp_is_a_poisson_process_in_the_time_of_its_expected_arrivals(rate: float, rate_end: float) -> None:
    schedule = OpenLoop((Stretch(400.0, rate, rate_end),))
    times = np.array(list(schedule.times(Random(5))))
    assert len(times) == pytest.approx(400 * (rate + rate_end) / 2, abs=4 * math.sqrt(20_000))
    assert (np.diff(times) >= 0).all() and times[-1] <= 400
    # Given their number, arrivals are spread as the rate is.
    spread = (rate * times + (rate_end - rate) / 800 * times**2) / (200 * (rate + rate_end))
    assert stats.kstest(spread, "uniform").pvalue > 0.001


def test_steps_have_their_rates_a_pause_has_no_call_and_each_time_knows_its_step() -> None:
    schedule = OpenLoop((Stretch(100.0, 10.0), Stretch(50.0, 0.0), Stretch(100.0, 40.0)), "constant")
    times = list(schedule.times(Random(1)))
    counted = [sum(schedule.step_of(at) == step for at in times) for step in range(3)]
    assert counted == [1_000, 0, 4_000]
    assert not [at for at in times if 100 <= at < 150]


def test_a_trace_is_replayed_from_its_first_stamp_at_the_speed_that_was_asked_for() -> None:
    replay = Replay((1_000.0, 1_001.0, 1_001.0, 1_009.0), speed=2.0)
    assert list(replay.times(Random(1))) == [0.0, 0.5, 0.5, 4.5]
    assert replay.seconds == 4.5


def test_the_same_seed_gives_the_same_arrivals_and_another_one_others() -> None:
    one, same, other = (list(islice(at_rate(5.0).times(Random(seed)), 50)) for seed in (1, 1, 2))
    assert one == same != other
