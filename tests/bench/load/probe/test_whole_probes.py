"""Whole probes of providers whose quotas nobody told: all is found, in fewer calls than three of their minutes hold."""

from __future__ import annotations

import os
import random

import pytest
from probed_provider import Manners, ProbedProvider
from virtual_time import run_virtually

from millstream.bench.load.probe.result import Probed
from millstream.bench.load.probe.run import Bounds, Probe
from millstream.fixtures.provider.quotas import RULES, Quota

MODEL = "mylab/m"
BOUNDS = Bounds(max_calls=100_000, max_cost=1_000.0)
# More in the long form.
COUNT = max(20, int(os.environ.get("MILLSTREAM_PROBES", "0")))


def drawn(seed: int) -> tuple[Quota, Manners]:
    """Each kind of window, with and without limits of tokens and of calls in flight; headers and Retry-After that are
    true, false or missing."""
    draw = random.Random(seed)
    rule = RULES[seed % 3]
    rpm = draw.choice([20, 60, 100, 500, 1_000, 3_500, 10_000])
    burst = draw.choice([1.0, 1.0, 0.5, 0.25, 0.1]) if rule == "bucket" else 1.0
    if rpm * burst < 4:
        burst = 1.0
    usual = rpm * draw.choice([20, 50, 5_000])
    tpm = draw.choice([None, rpm * 1_000, rpm * 200, usual, round(rpm * draw.uniform(100, 2_000))])
    ceiling = draw.choice([None, None, max(3, rpm // 8)])
    said = Manners(
        told=draw.choice([0.0, 1.0, 1.0, 2.0, 0.5]),
        retry_after=draw.choice(["none", "exact", "seconds", "short"]),
        latency_s=draw.choice([0.1, 0.4, 1.0]),
        starts_at_s=draw.uniform(0, 60),
    )
    return Quota(requests=rpm, tokens=tpm, rule=rule, burst=burst, max_in_flight=ceiling), said


@pytest.mark.parametrize("seed", range(COUNT))
def test_all_that_a_provider_enforces_is_found_within_three_in_a_hundred_and_nothing_above(seed: int) -> None:
    quota, said = drawn(seed)
    assert quota.requests is not None
    provider = ProbedProvider(quota, said, seed)

    async def main() -> Probed:
        return await Probe(provider, BOUNDS).run([MODEL])

    result = run_virtually(main())
    lane, rpm, holds = result.lanes[MODEL].as_lane(), quota.requests, quota.requests * quota.burst
    assert lane["window"] == quota.rule
    assert 0.97 * rpm <= lane["rpm"] <= rpm
    assert 0.97 * int(holds) <= lane["burst"] <= holds
    if quota.tokens is None:
        assert lane["tpm"] is None
    else:
        assert 0.97 * quota.tokens <= lane["tpm"] <= quota.tokens
    assert lane["concurrency"] in (quota.max_in_flight, None)
    assert result.calls == provider.calls < 3 * rpm
    assert provider.too_early == 0
