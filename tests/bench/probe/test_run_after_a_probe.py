"""A lane that holds to what a probe found meets no refusal, from the first call after it on, and uses the quota.

In virtual time: the simulated provider's quotas, the probe, and the engine's own ledger of the last minute.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any

import pytest
from msgspec import Struct
from probed_provider import MODEL, WIDE, Manners, ProbedProvider
from torture import IS_LONG
from virtual_time import run_virtually

from millstream.bench.probe.answers import Answer
from millstream.bench.probe.run import Probe
from millstream.engine import limits
from millstream.engine.lane import Lane
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Tokens
from millstream.fixtures.provider.quotas import RULES, AccountQuota

REST_S, MEASURED_S = 62.0, 600.0
# What the provider counts beside the prompt that was asked for.
BESIDE = 14
# The long form draws more seeds.


class Behaved(Struct, frozen=True):
    refusals: int
    requests_share: float
    tokens_share: float | None


class Booked(ProbedProvider):
    """Books every call in a ledger, as a lane does."""

    def __init__(self, quota: AccountQuota, manners: Manners, seed: int) -> None:
        super().__init__(quota, manners, seed)
        self.ledger = Ledger(limits.Quota())
        self.admitted: list[tuple[float, int]] = []

    async def ask(self, model: str, tokens: int) -> Answer:
        sent, reserved = self.now(), Tokens(tokens, BESIDE)
        assert self.ledger.take(sent, reserved) == (0.0, "")
        return await self.sent(model, tokens, sent, reserved)

    async def sent(self, model: str, tokens: int, sent: float, reserved: Tokens) -> Answer:
        answer = await super().ask(model, tokens)
        if answer.verdict == "admitted":
            self.ledger.settle(sent, reserved, Tokens(tokens, answer.tokens - tokens))
            self.admitted.append((sent, answer.tokens))
        return answer


async def run_on(provider: Booked, sizes: Iterator[int], in_flight: int, until_s: float) -> None:
    """As many calls as the ledger allows, all the time, in their order."""
    free, size = asyncio.Semaphore(in_flight), next(sizes)

    async def send(size: int, sent: float) -> None:
        await provider.sent(MODEL, size, sent, Tokens(size, BESIDE))
        free.release()

    async with asyncio.TaskGroup() as group:
        while provider.now() < until_s:
            await free.acquire()
            wait_s, _ = provider.ledger.take(provider.now(), Tokens(size, BESIDE))
            if wait_s > 0:
                await asyncio.sleep(wait_s)
                free.release()
            else:
                group.create_task(send(size, provider.now()))
                size = next(sizes)


def behaved(quota: AccountQuota, manners: Manners, seed: int, shares: Iterable[float]) -> Behaved | None:
    """None: the probe did not find enough for a lane. `shares`: how large calls are, in those of which requests and
    tokens would run out together."""

    async def main() -> Behaved | None:
        provider = Booked(quota, manners, seed)
        probe = Probe(provider, WIDE)
        await probe.run([MODEL])
        found = probe.lanes[MODEL].as_lane()
        if found["rpm"] is None or (quota.tokens is not None and found["tpm"] is None):
            return None
        lane = Lane(MODEL, found["rpm"], found["tpm"], 128, burst=found["burst"])
        provider.ledger.set_quota(limits.declared_quota(lane))
        refusals, began = provider.refusals, provider.now()
        assert quota.requests is not None
        even = 1.0 if quota.tokens is None else quota.tokens / quota.requests
        sizes = (max(1, round(even * share) - BESIDE) for share in cycle(shares))
        # Until the probe's own calls have left the ledger, less may be sent.
        await run_on(provider, sizes, lane.in_flight_most, began + REST_S)
        began = provider.now()
        await run_on(provider, sizes, lane.in_flight_most, began + MEASURED_S)
        used = [used for at, used in provider.admitted if at >= began]
        minutes = MEASURED_S / 60
        tokens_share = None if quota.tokens is None else sum(used) / (quota.tokens * minutes)
        return Behaved(provider.refusals - refusals, len(used) / (quota.requests * minutes), tokens_share)

    return run_virtually(main())


@pytest.mark.parametrize("seed", range(6 if IS_LONG else 3))
def test_what_a_probe_found_is_used_whole_and_never_refused(seed: int) -> None:
    draw = random.Random(seed)
    rule = RULES[seed % 3]
    rpm = draw.choice([60, 100, 350])
    quota = AccountQuota(requests=rpm, rule=rule, burst=draw.choice([1.0, 0.5]) if rule == "bucket" else 1.0)
    manners = Manners(told=draw.choice([0.0, 1.0]), retry_after=draw.choice(["none", "exact"]), latency_s=0.4)
    result = behaved(quota, manners, seed, [1 / 3])
    assert result is not None, "nothing was found"
    assert result.refusals == 0
    assert result.requests_share >= 0.95


@pytest.mark.parametrize("rule", ["fixed", "sliding"])
@pytest.mark.parametrize("share", [1 / 3, 3.0])
def test_the_same_holds_where_tokens_are_the_scarcer(rule: Any, share: float) -> None:
    result = behaved(AccountQuota(requests=200, tokens=100_000, rule=rule), Manners(), 3, [share])
    assert result is not None, "nothing was found"
    assert result.refusals == 0
    assert max(result.requests_share, result.tokens_share or 0.0) >= 0.95


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "burst", "least"),
    # A small bucket loses for good what comes while it is full.
    [
        ("fixed", 1.0, 0.95),
        ("sliding", 1.0, 0.95),
        ("bucket", 1.0, 0.95),
        ("bucket", 0.25, 0.95),
        ("bucket", 0.1, 0.9),
    ],
)
def test_the_same_holds_where_both_are_by_turns(rule: Any, burst: float, least: float) -> None:
    # Fifteen calls of a size, as a grid's trials are; over all of them neither is the scarcer.
    shares = [share for share in (0.1, 1.7, 0.7, 1.5) for _ in range(15)]
    result = behaved(AccountQuota(requests=200, tokens=100_000, rule=rule, burst=burst), Manners(), 3, shares)
    assert result is not None, "nothing was found"
    assert result.refusals == 0
    assert max(result.requests_share, result.tokens_share or 0.0) >= least
