"""The verdict on the client, by clocks that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from virtual_time import run_virtually

from millstream.bench.load.histogram import Histogram
from millstream.bench.load.watch import ClientVerdict, ClientWatch


def times(*seconds: float) -> Histogram:
    histogram = Histogram()
    for each in seconds:
        histogram.record(each)
    return histogram


def watched(
    cpu: Callable[[float], float], stalls_s: float = 0.0, late_s: float = 0.0, begun: int = 100
) -> ClientVerdict:
    """Ten seconds over answers of 100 ms. The clock jumps by `stalls_s` once in each second."""

    async def scenario() -> ClientVerdict:
        loop = asyncio.get_running_loop()

        def clock() -> float:
            return loop.time() + stalls_s * int(loop.time())

        watch = ClientWatch(clock, lambda: cpu(clock()))
        watch.begin()
        await asyncio.sleep(10.0)
        await watch.end()
        return watch.verdict(times(*[0.1 + late_s] * 100), times(*[0.1] * 100), due=100, begun=begun)

    return run_virtually(scenario())


def test_an_idle_client_is_no_bottleneck() -> None:
    verdict = watched(lambda now: 0.3 * now, late_s=0.002)
    assert not verdict.is_client_bound
    assert (verdict.cpu_peak, verdict.cpu_mean) == pytest.approx((0.3, 0.3)) and verdict.lag_p99_s < 0.001


@pytest.mark.parametrize(
    ("cpu", "stalls_s", "late_s", "begun", "reason"),
    [
        (0.95, 0.0, 0.0, 100, "took 95% of a core, more than 90%"),
        (0.1, 0.05, 0.0, 100, "50.0 ms of p99 are our own (calls were begun 0.0 ms late, the loop lagged by 50.0 ms)"),
        (0.1, 0.0, 0.005, 100, "5.0 ms of p50 are our own (calls were begun 5.0 ms late, the loop lagged by 0.0 ms)"),
        (0.1, 0.002, 0.003, 100, "lagged by 2.0 ms), more than the 4.0 ms allowed (2% of it and 2 ms)"),
        (0.1, 0.0, 0.0, 98, "98 of 100 calls were begun, fewer than 99%"),
    ],
)
def test_a_busy_or_late_client_is_told_with_its_figures(
    cpu: float, stalls_s: float, late_s: float, begun: int, reason: str
) -> None:
    verdict = watched(lambda now: cpu * now, stalls_s, late_s, begun)
    assert reason in "; ".join(verdict.reasons) and len(verdict.reasons) <= 2


def test_one_busy_second_among_ten_is_seen() -> None:
    verdict = watched(lambda now: 0.1 * now + min(1.0, max(0.0, now - 4.0)) * 0.9)
    assert verdict.cpu_peak > 0.9 > verdict.cpu_mean and verdict.is_client_bound


def test_one_pause_counts_by_its_length_and_not_as_one_sample_among_hundreds() -> None:
    """As a process that is stopped for two seconds of ten: no sample is taken in them, and a closed loop begins no call
    late."""

    async def scenario() -> ClientWatch:
        loop = asyncio.get_running_loop()
        watch = ClientWatch(lambda: loop.time() + (2.0 if loop.time() > 5.0 else 0.0), lambda: 0.0)
        watch.begin()
        await asyncio.sleep(8.0)
        await watch.end()
        return watch

    watch = run_virtually(scenario())
    assert watch.lag.count == pytest.approx(500, abs=5)
    below, above = watch.lag.percentile(89), watch.lag.percentile(91)
    assert below is not None and above is not None and below.value_s <= 1.0 < above.value_s
    answers = times(*[0.05] * 300, *[2.05] * 5)
    verdict = watch.verdict(answers, answers, due=305, begun=305)
    assert verdict.is_client_bound and "the loop lagged by" in verdict.reasons[0]
    # What is our own of a percentile is no more than all of it.
    assert verdict.reasons[0].startswith("50.0 ms of p90 are our own")


def test_a_watch_that_never_began_ends_in_peace() -> None:
    async def scenario() -> float:
        watch = ClientWatch(asyncio.get_running_loop().time)
        await watch.end()
        return watch.cpu_mean

    assert run_virtually(scenario()) == 0.0
