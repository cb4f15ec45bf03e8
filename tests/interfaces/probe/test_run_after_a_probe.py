"""A lane that holds to what a probe found meets no refusal, from the first call after it on, and uses the quota.

In virtual time: the simulated provider's quotas, the probe, and the engine's own ledger of the last minute.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from msgspec import Struct
from probed_provider import Manners, ProbedProvider
from virtual_time import run_virtually

from millstream.bench.load.probe.run import Bounds, Probe
from millstream.bench.load.probe.steps import Answer
from millstream.engine import limits
from millstream.engine.ledger import Ledger
from millstream.engine.limits import Tokens
from millstream.fixtures.provider.quotas import RULES, Quota

MODEL = "mylab/m"
MEASURED_S = 180.0
# What the provider counts beside the prompt that was asked for.
BESIDE = 14


class Behaved(Struct, frozen=True):
    refusals: int
    requests_share: float
    tokens_share: float | None


class Booked(ProbedProvider):
    """Books every call in a ledger, as a lane does."""

    def __init__(self, quota: Quota, manners: Manners, seed: int) -> None:
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


async def run_on(provider: Booked, size: int, in_flight: int, until_s: float) -> None:
    """As many calls as the ledger allows, all the time."""
    free, reserved = asyncio.Semaphore(in_flight), Tokens(size, BESIDE)

    async def send(sent: float) -> None:
        await provider.sent(MODEL, size, sent, reserved)
        free.release()

    async with asyncio.TaskGroup() as group:
        while provider.now() < until_s:
            await free.acquire()
            wait_s, _ = provider.ledger.take(provider.now(), reserved)
            if wait_s > 0:
                await asyncio.sleep(wait_s)
                free.release()
            else:
                group.create_task(send(provider.now()))


def behaved(quota: Quota, manners: Manners, seed: int, *, calls_are_large: bool) -> Behaved | None:
    """None: the probe did not find enough for a lane."""

    async def main() -> Behaved | None:
        provider = Booked(quota, manners, seed)
        found = (await Probe(provider, Bounds(max_calls=60_000, max_cost=1_000.0)).run([MODEL])).lanes[MODEL].as_lane()
        if found["rpm"] is None or (quota.tokens is not None and found["tpm"] is None):
            return None
        provider.ledger.set_quota(limits.Quota(rpm=found["rpm"], tpm=found["tpm"]))
        refusals, began = provider.refusals, provider.now()
        assert quota.requests is not None
        # Three times as many tokens a call as requests and tokens would run out with together, or a third.
        share = 1.0 if quota.tokens is None else quota.tokens / quota.requests
        size = max(1, round(share * (3 if calls_are_large else 1 / 3)) - BESIDE) if quota.tokens else 1
        await run_on(provider, size, found["concurrency"] or 128, began + MEASURED_S)
        used = [used for at, used in provider.admitted if at >= began]
        minutes = MEASURED_S / 60
        tokens_share = None if quota.tokens is None else sum(used) / (quota.tokens * minutes)
        return Behaved(provider.refusals - refusals, len(used) / (quota.requests * minutes), tokens_share)

    return run_virtually(main())


@pytest.mark.parametrize("seed", range(6))
def test_what_a_probe_found_is_used_whole_and_never_refused(seed: int) -> None:
    draw = random.Random(seed)
    rule = RULES[seed % 3]
    rpm = draw.choice([60, 100, 350])
    quota = Quota(requests=rpm, rule=rule, burst=draw.choice([1.0, 0.5]) if rule == "bucket" else 1.0)
    manners = Manners(told=draw.choice([0.0, 1.0]), retry_after=draw.choice(["none", "exact"]), latency_s=0.4)
    result = behaved(quota, manners, seed, calls_are_large=False)
    assert result is not None, "nothing was found"
    assert result.refusals == 0
    assert result.requests_share >= 0.95


@pytest.mark.parametrize("rule", ["fixed", "sliding"])
@pytest.mark.parametrize("calls_are_large", [False, True])
def test_the_same_holds_where_tokens_are_the_scarcer(rule: Any, calls_are_large: bool) -> None:
    result = behaved(Quota(requests=200, tokens=100_000, rule=rule), Manners(), 3, calls_are_large=calls_are_large)
    assert result is not None, "nothing was found"
    assert result.refusals == 0
    assert max(result.requests_share, result.tokens_share or 0.0) >= 0.95
