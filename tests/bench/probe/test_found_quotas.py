"""Of quotas of every kind, 19 in 20 are found within 5%, and no number is above the truth.

A kind: how a provider counts, whether headers say the limit, whether somebody has just used it, and what is looked for.
The long form prints a table: of each kind how many were found, and what a probe used in the middle and at the most.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count, product
from typing import Any, NamedTuple

import pytest
from probed_provider import MODEL, REQUESTS, WIDE, Manners, ProbedProvider, probed
from torture import SEED, times

from millstream.fixtures.provider.quotas import RULES, AccountQuota

KINDS = tuple(product(RULES, ("in headers", "unsaid"), ("rested", "used"), ("requests", "tokens")))
# The long form: so many of each kind.
COUNT = times(0, 100)
CLOSE, OFTEN = 0.95, 0.95


def drawn(rule: Any, says: str, state: str, of: str, seed: int) -> ProbedProvider:
    """A provider of 20 to 3,500 requests a minute, and of 50 to 2,000 tokens for each."""
    draw = random.Random(f"{rule} {says} {state} {of} {seed}")
    rpm = draw.choice([20, 60, 100, 500, 1_000, 3_500]) if draw.random() < 0.5 else round(20 * 150 ** draw.random())
    burst = draw.choice([1.0, 1.0, 0.5, 0.25, 0.1]) if rule == "bucket" else 1.0
    tpm = rpm * draw.choice([50, 200, 1_000, round(draw.uniform(100, 2_000))]) if of == "tokens" else None
    quota = AccountQuota(requests=rpm, tokens=tpm, rule=rule, burst=burst if rpm * burst >= 10 else 1.0)
    manners = Manners(
        told=1.0 if says == "in headers" else 0.0,
        retry_after=draw.choice(["none", "exact", "seconds", "short"]),
        latency_s=draw.choice([0.1, 0.4, 1.0]),
        starts_at_s=60 + draw.uniform(0, 60),
        jitter_s=draw.choice([0.005, 0.02, 0.05]),
    )
    provider = ProbedProvider(quota, manners, seed)
    if state == "used":
        size, span_s = draw.randrange(15, max(16, 2 * (tpm or 1_000) // rpm)), draw.choice([2, 10, 59])
        for at_s in sorted(manners.starts_at_s - 0.5 - draw.uniform(0, span_s) for _ in range(draw.randrange(1, rpm))):
            provider.account.decide(at_s, size)
    return provider


class Used(NamedTuple):
    """Whether all was found within 5%, the calls or tokens used in minutes' worth of the quota, whichever is more, and
    the minutes that it took."""

    is_found: bool
    worth: float
    minutes: float


def used_for(kind: tuple[str, str, str, str], seed: int) -> Used:
    """Probes one provider. A number above the truth, another kind, or a call that came too early fails the test."""
    provider = drawn(*kind, seed)
    quota = provider.quota
    assert quota.requests is not None
    probe = probed(provider, REQUESTS if quota.tokens is None else WIDE)
    lane = probe.lanes[MODEL].as_lane()
    truth = {"rpm": quota.requests, "burst": max(1.0, quota.requests * quota.burst)}
    if quota.tokens is not None:
        truth["tpm"] = quota.tokens
    else:
        assert lane["tpm"] is None, (kind, seed)
    assert [name for name in truth if lane[name] is not None and lane[name] > truth[name]] == [], (kind, seed)
    assert lane["window"] in (quota.rule, None), (kind, seed)
    assert provider.too_early == 0, (kind, seed)
    assert probe.calls == provider.calls
    is_found = all(lane[name] is not None and lane[name] >= CLOSE * truth[name] for name in truth if name != "burst")
    tokens = 0.0 if quota.tokens is None else sum(used for _, used in provider.admitted_at) / quota.tokens
    return Used(is_found, max(probe.calls / quota.requests, tokens), provider.ended_s / 60)


def spread(numbers: Sequence[float]) -> str:
    return f"{sorted(numbers)[len(numbers) // 2]:.2f}, at most {max(numbers):.2f}"


@pytest.mark.parametrize("kind", KINDS[::3] + KINDS[1::6], ids=" ".join)
def test_a_quota_is_found_within_five_in_a_hundred_and_never_above(kind: tuple[str, str, str, str]) -> None:
    # A larger one takes thousands of calls: those are among the long tests.
    assert used_for(kind, next(seed for seed in count() if (drawn(*kind, seed).quota.requests or 0) <= 1_000)).is_found


def test_calls_of_tokens_that_are_in_flight_count_against_the_quota_of_requests() -> None:
    # Else a call is refused for its number, and what the bucket of tokens holds seems to come back at once.
    used_for(("bucket", "unsaid", "used", "tokens"), 4_349)


def test_a_burst_that_few_calls_can_carry_on_ends_a_minute_after_its_first_refusal() -> None:
    # Else a bucket refills faster than 20 calls a minute use it, and nothing is refused any more.
    assert used_for(("bucket", "unsaid", "used", "tokens"), 2_610_102).minutes <= 10


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_nineteen_in_twenty_quotas_are_found_within_five_in_a_hundred_none_above(
    kind: tuple[str, str, str, str],
) -> None:
    seeds = range(1_000 * SEED, 1_000 * SEED + (COUNT or 3))
    used = {seed: used_for(kind, seed) for seed in seeds}
    missed = [seed for seed in seeds if not used[seed].is_found]
    worth, minutes = (spread([one[place] for one in used.values()]) for place in (1, 2))
    print(f"{' '.join(kind)}: {len(seeds) - len(missed)} of {len(seeds)} found; {worth} of a minute; {minutes} min")
    assert len(missed) <= (1 - OFTEN) * len(seeds) + 1e-9 or not COUNT, missed
