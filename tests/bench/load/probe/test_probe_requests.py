"""A probe finds requests a minute, burst, kind of window and ceiling, and nothing where there is none of these."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
from probed_provider import Manners, ProbedProvider
from virtual_time import run_virtually

from millstream.bench.load.probe.result import Found
from millstream.bench.load.probe.run import Bounds, Probe
from millstream.fixtures.provider.quotas import RULES, Quota

MODEL = "mylab/m"
# No tokens are probed: a call of one token more is refused unsent.
BOUNDS = Bounds(max_calls=60_000, max_cost=1_000.0, tokens=1)
SURE = 20
# 40 in the long form.
MORE = int(os.environ.get("MILLSTREAM_PROBES", "8"))


def probed(provider: ProbedProvider) -> Found:
    async def main() -> Found:
        return (await Probe(provider, BOUNDS).run([MODEL])).lanes[MODEL]

    return run_virtually(main())


def drawn(seed: int) -> tuple[Quota, Manners]:
    """The whole range: of what is allowed, of what a bucket holds, of ceilings, and of what is said."""
    draw = random.Random(seed)
    rule = RULES[seed % 3]
    known = draw.choice([6, 8, 10, 20, 60, 100, 500, 1_000, 3_500, 10_000])
    rpm = known if draw.random() < 0.6 else round(6 * (10_000 / 6) ** draw.random())
    burst = draw.choice([1.0, 1.0, 0.5, 0.25, 0.1, draw.uniform(0.1, 1)]) if rule == "bucket" else 1.0
    ceiling = draw.choice([None, None, max(3, rpm // 8)])
    return Quota(requests=rpm, rule=rule, burst=burst, max_in_flight=ceiling), manners(draw, [0.0, 1.0, 1.0, 2.0, 0.5])


def manners(draw: random.Random, told: list[float], **errs: Any) -> Manners:
    return Manners(
        told=draw.choice(told),
        retry_after=draw.choice(["none", "exact", "seconds", "short"]),
        latency_s=draw.choice([0.1, 0.4, 1.0]),
        starts_at_s=draw.uniform(0, 60),
        **errs,
    )


def spread(seed: int) -> tuple[Quota, Manners]:
    """As on a real machine: a round's calls go out one after the other, and now and then one is held up."""
    draw = random.Random(1_000 + seed)
    rule: Literal["fixed", "bucket"] = "bucket" if seed % 2 else "fixed"
    rpm = draw.choice([60, 100, 180, 500, 1_000, 3_500])
    burst = draw.choice([1.0, 0.5, 0.25]) if rule == "bucket" else 1.0
    slow: dict[str, Any] = {"apart_s": draw.uniform(0.0003, 0.002), "jitter_s": draw.choice([0.0, 0.005, 0.02])}
    said = manners(draw, [0.0, 1.0, 2.0], stalls=draw.choice([0.0, 0.002]), paced=draw.choice([0.0, 0.5, 1.0]), **slow)
    return Quota(requests=rpm, rule=rule, burst=burst), said


def found_of(seed: int, draw: Callable[[int], tuple[Quota, Manners]] = drawn) -> bool:
    """Whether all is found; a number above the truth, another window or too many calls are never right."""
    quota, said = draw(seed)
    provider = ProbedProvider(quota, said, seed)
    found, rpm = probed(provider), quota.requests
    assert rpm is not None
    lane, holds = found.as_lane(), max(1.0, rpm * quota.burst)
    assert lane["window"] in (quota.rule, None)
    assert lane["rpm"] is None or lane["rpm"] <= rpm
    assert lane["burst"] is None or lane["burst"] <= holds
    assert provider.too_early == 0
    # Where few calls are allowed, they are too few to find a ceiling as well.
    is_seen = quota.max_in_flight is not None and quota.max_in_flight < min(holds, BOUNDS.in_flight)
    assert lane["concurrency"] in ((quota.max_in_flight, None) if is_seen else (None,))
    if lane["rpm"] is None or lane["burst"] is None:
        return False
    assert provider.calls < 3 * rpm
    return bool(lane["window"] and lane["rpm"] >= 0.97 * rpm and lane["burst"] >= 0.97 * int(holds))


@pytest.mark.parametrize("seed", range(SURE))
def test_requests_burst_and_kind_of_window_are_found_in_fewer_calls_than_three_windows_hold(seed: int) -> None:
    assert found_of(seed)


@pytest.mark.parametrize("seed", range(10))
def test_what_comes_back_while_a_rounds_calls_go_out_is_no_part_of_a_burst(seed: int) -> None:
    assert found_of(seed, spread)


def test_of_many_more_configurations_hardly_any_is_not_found_and_none_is_wrong() -> None:
    seeds = range(SURE, SURE + MORE)
    missed = [seed for seed in seeds if not found_of(seed)]
    assert len(missed) <= 1 + 0.03 * len(seeds), missed


def test_a_small_bucket_that_was_full_again_is_not_taken_for_a_window() -> None:
    quota = Quota(requests=41, rule="bucket", burst=0.1)
    said = Manners(told=2.0, retry_after="seconds", latency_s=1.0)
    for seed in range(8):
        assert probed(ProbedProvider(quota, said, seed)).window in ("bucket", None)


def never_above(quota: Quota, said: Manners, seed: int, truth: float, calls: float) -> None:
    provider = ProbedProvider(quota, said, seed)
    found = probed(provider)
    assert found.rpm is None or found.rpm <= truth
    assert provider.calls <= calls
    assert provider.too_early == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("window_s", [1.0, 10.0, 3_600.0])
def test_a_window_of_another_length_is_never_taken_for_more_than_it_allows(window_s: float, seed: int) -> None:
    draw = random.Random(seed)
    quota = Quota(requests=draw.choice([10, 30, 100]), rule=RULES[seed % 3], window_s=window_s)
    assert quota.requests is not None
    truth = quota.requests * 60 / window_s
    never_above(quota, manners(draw, [0.0, 1.0]), seed, truth, max(3 * truth, 4 * quota.requests))


@pytest.mark.parametrize("seed", range(9))
def test_refusals_without_a_reason_give_no_number_above_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    rpm = draw.choice([10, 30, 100, 400])
    never_above(Quota(requests=rpm, rule=RULES[seed % 3]), manners(draw, [0.0, 1.0], refuses=0.1), seed, rpm, 4 * rpm)


@pytest.mark.parametrize("seed", range(9))
def test_a_quota_that_others_use_a_third_of_is_not_told_above_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    rpm = draw.choice([10, 30, 100, 400])
    said = manners(draw, [0.0, 1.0], others=0.3 * rpm / 60)
    never_above(Quota(requests=rpm, rule=RULES[seed % 3]), said, seed, rpm, 4 * rpm)


@pytest.mark.parametrize("seed", range(9))
def test_a_quota_that_changes_while_it_is_probed_is_not_told_above_its_higher_one(seed: int) -> None:
    draw = random.Random(seed)
    rpm, rule = draw.choice([10, 30, 100, 400]), RULES[seed % 3]
    later = Quota(requests=round(rpm * draw.choice([0.5, 2.0])), rule=rule)
    assert later.requests is not None
    said = manners(draw, [0.0, 1.0], changes_after=int(rpm * draw.choice([0.5, 1.2])), later=later)
    truth = max(rpm, later.requests)
    never_above(Quota(requests=rpm, rule=rule), said, seed, truth, 4 * truth)
