"""A probe of requests finds no number above the truth, and no window that is none, of providers that err or change."""

from __future__ import annotations

import random

import pytest
from probed_provider import Manners, ProbedProvider, drawn_manners
from torture import IS_LONG
from virtual_time import run_virtually

from millstream.bench.probe.result import FoundQuota
from millstream.bench.probe.run import Bounds, Probe
from millstream.fixtures.provider.quotas import RULES, AccountQuota

MODEL = "mylab/m"
# No tokens are probed: a call of one token more is refused unsent.
BOUNDS = Bounds(max_calls=60_000, max_cost=1_000.0, tokens=1)
# The long form draws more seeds.


def probed(provider: ProbedProvider) -> FoundQuota:
    async def main() -> FoundQuota:
        return (await Probe(provider, BOUNDS).run([MODEL])).lanes[MODEL]

    return run_virtually(main())


def test_a_small_bucket_that_was_full_again_is_not_taken_for_a_window() -> None:
    quota = AccountQuota(requests=41, rule="bucket", burst=0.1)
    said = Manners(told=2.0, retry_after="seconds", latency_s=1.0)
    for seed in range(8 if IS_LONG else 2):
        assert probed(ProbedProvider(quota, said, seed)).window in ("bucket", None)


def never_above(quota: AccountQuota, said: Manners, seed: int, truth: float, calls: float) -> None:
    provider = ProbedProvider(quota, said, seed)
    found = probed(provider)
    assert found.rpm is None or found.rpm <= truth
    assert provider.calls <= calls
    assert provider.too_early == 0


@pytest.mark.parametrize("seed", range(6 if IS_LONG else 3))
@pytest.mark.parametrize("window_s", [1.0, 10.0, 3_600.0])
def test_a_window_of_another_length_is_never_taken_for_more_than_it_allows(window_s: float, seed: int) -> None:
    draw = random.Random(seed)
    quota = AccountQuota(requests=draw.choice([10, 30, 100]), rule=RULES[seed % 3], window_s=window_s)
    assert quota.requests is not None
    truth = quota.requests * 60 / window_s
    never_above(quota, drawn_manners(draw, [0.0, 1.0]), seed, truth, max(3 * truth, 4 * quota.requests))


@pytest.mark.parametrize("seed", range(9))
def test_refusals_without_a_reason_give_no_number_above_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    rpm = draw.choice([10, 30, 100, 400])
    said = drawn_manners(draw, [0.0, 1.0], refuses=0.1)
    never_above(AccountQuota(requests=rpm, rule=RULES[seed % 3]), said, seed, rpm, 4 * rpm)


@pytest.mark.parametrize("seed", range(9))
def test_a_quota_that_others_use_a_third_of_is_not_told_above_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    rpm = draw.choice([10, 30, 100, 400])
    said = drawn_manners(draw, [0.0, 1.0], others=0.3 * rpm / 60)
    never_above(AccountQuota(requests=rpm, rule=RULES[seed % 3]), said, seed, rpm, 4 * rpm)


@pytest.mark.parametrize("seed", range(9))
def test_a_quota_that_changes_while_it_is_probed_is_not_told_above_its_higher_one(seed: int) -> None:
    draw = random.Random(seed)
    rpm, rule = draw.choice([10, 30, 100, 400]), RULES[seed % 3]
    later = AccountQuota(requests=round(rpm * draw.choice([0.5, 2.0])), rule=rule)
    assert later.requests is not None
    said = drawn_manners(draw, [0.0, 1.0], changes_after=int(rpm * draw.choice([0.5, 1.2])), later=later)
    truth = max(rpm, later.requests)
    never_above(AccountQuota(requests=rpm, rule=rule), said, seed, truth, 4 * truth)
