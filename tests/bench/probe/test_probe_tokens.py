"""A probe finds tokens a minute from below, under each kind of window, and never more than a provider admits."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from probed_provider import Manners, ProbedProvider
from torture import IS_LONG
from virtual_time import run_virtually

from millstream.bench.probe.result import FoundQuota
from millstream.bench.probe.steps import Answer, Ask, Steps, TimedAnswer, Wait
from millstream.bench.probe.tokens import TokenProbe
from millstream.fixtures.provider.quotas import RULES, Account, AccountQuota, Decision, FixedWindow, SlidingWindow

MODEL = "mylab/m"
# Beside the prompt, the simulated provider counts no more than this.
BESIDE = 14
# A number counts as found from this share of the truth on.
CLOSE = 0.95
# The long form draws more seeds.


class Reserving(Account):
    """Counts what a call may use, not what it used."""

    reserved = 16

    def decide(self, now: float, tokens: int) -> Decision:
        return super().decide(now, tokens + self.reserved)


class InputOnly(Account):
    """Counts no output: one token of each call."""

    def decide(self, now: float, tokens: int) -> Decision:
        return super().decide(now, tokens - 1)


class Shared(Account):
    """Others take a third of the tokens, a little every second."""

    taken_s = 0.0

    def decide(self, now: float, tokens: int) -> Decision:
        assert self.tokens is not None
        while self.taken_s < now:
            amount = self.tokens.limit / 180
            if not self.tokens.wait_s(self.taken_s, amount):
                self.tokens.take(self.taken_s, amount)
            self.taken_s += 1.0
        return super().decide(now, tokens)


class CountingRefused(Account):
    """What is refused counts as well, as far as there is room."""

    def decide(self, now: float, tokens: int) -> Decision:
        decision = super().decide(now, tokens)
        if self.tokens is not None and not decision.is_admitted and decision.verdict != "too_large":
            self.tokens.take(now, min(tokens, self.tokens.remaining(now)))
        return decision


class Hourly(Account):
    def __init__(self, quota: AccountQuota) -> None:
        super().__init__(quota)
        assert quota.tokens is not None
        self.tokens = SlidingWindow(quota.tokens, 3_600.0)


class EveryTenSeconds(Account):
    def __init__(self, quota: AccountQuota) -> None:
        super().__init__(quota)
        assert quota.tokens is not None
        self.tokens = FixedWindow(quota.tokens / 6, 10.0)


class Narrow(ProbedProvider):
    """A context of 8,000 tokens."""

    async def ask(self, model: str, tokens: int) -> Answer:
        if tokens > 8_000:
            self.calls += 1
            await self.sleep(0.05)
            return Answer("failed", detail="rejected: too long (400)")
        return await super().ask(model, tokens)


class Uncounted(ProbedProvider):
    """Says nothing of what a call used."""

    async def ask(self, model: str, tokens: int) -> Answer:
        answer = await super().ask(model, tokens)
        return Answer(answer.verdict, 0, answer.cost, answer.retry_after_s, answer.limits)


def known(quota: AccountQuota, manners: Manners) -> FoundQuota:
    """Requests as a probe of them leaves them."""
    assert quota.requests is not None
    rate = quota.requests * (0.98 if quota.rule == "bucket" else 1.0)
    found = FoundQuota(rpm=rate, burst=float(int(quota.requests * quota.burst)), window=quota.rule)
    found.concurrency = quota.max_in_flight
    if manners.told and quota.tokens is not None:
        found.told_tpm = quota.tokens * manners.told
    return found


def after_requests(
    provider: ProbedProvider,
    calls_left: int,
    found: FoundQuota | None = None,
    tokens_most: float = math.inf,
    before: tuple[TimedAnswer, ...] = (),
) -> FoundQuota:
    """The part of a probe that finds tokens, alone."""
    quota = provider.quota
    if found is None:
        found = known(quota, provider.manners)
    at_once = min(int(found.burst or 1_024), quota.max_in_flight or 1_024)

    async def one(size: int) -> TimedAnswer:
        sent_s = provider.now()
        answer = await provider.ask(MODEL, size)
        return TimedAnswer(size, sent_s, provider.now(), answer)

    async def follow(steps: Steps) -> None:
        try:
            step = next(steps)
            while True:
                match step:
                    case Wait(until_s):
                        await provider.sleep(max(0.0, until_s - provider.now()))
                        step = steps.send([])
                    case Ask(sizes):
                        step = steps.send(list(await asyncio.gather(*(one(size) for size in sizes))))
        except StopIteration:
            return

    async def main() -> None:
        probe = TokenProbe(
            found,
            now_s=provider.now(),
            tokens_a_call=30_000,
            at_once=at_once,
            calls_left=calls_left,
            beside=BESIDE,
            tokens_most=tokens_most,
            before=before,
        )
        await follow(probe.steps())

    run_virtually(main())
    return found


def drawn(seed: int) -> tuple[AccountQuota, Manners]:
    draw = random.Random(seed)
    rule = RULES[seed % 3]
    rpm = draw.choice([20, 60, 100, 500, 1_000, 3_500, 10_000])
    burst = draw.choice([1.0, 0.5, 0.25, 0.1]) if rule == "bucket" and rpm >= 60 else 1.0
    a_request = draw.choice([200, 1_000, 200, 1_000, draw.uniform(100, 2_000), 50, 5_000])
    manners = Manners(
        told=draw.choice([0.0, 1.0, 1.0, 0.5, 2.0]),
        retry_after=draw.choice(["none", "exact", "seconds", "short"]),
        latency_s=draw.choice([0.1, 0.4, 1.0]),
        starts_at_s=draw.uniform(0, 60),
    )
    ceiling = draw.choice([None, None, max(3, rpm // 8)])
    return AccountQuota(
        requests=rpm, tokens=int(rpm * a_request), rule=rule, burst=burst, max_in_flight=ceiling
    ), manners


@pytest.mark.parametrize("seed", range(20 if IS_LONG else 3))
def test_tokens_are_found_from_below_in_a_third_of_three_minutes_calls(seed: int) -> None:
    quota, manners = drawn(seed)
    assert quota.requests is not None and quota.tokens is not None
    provider = ProbedProvider(quota, manners, seed)
    tpm = after_requests(provider, quota.requests - 1).tpm
    assert tpm is not None
    assert CLOSE * quota.tokens <= tpm <= quota.tokens
    assert provider.calls < quota.requests
    assert provider.too_early == 0


@pytest.mark.parametrize("seed", range(12 if IS_LONG else 3))
def test_no_more_than_a_provider_admits_is_found_where_calls_are_few(seed: int) -> None:
    draw = random.Random(seed)
    quota = AccountQuota(requests=draw.choice([6, 8, 10]), tokens=draw.randrange(200, 60_000), rule=RULES[seed % 3])
    provider = ProbedProvider(quota, Manners(told=draw.choice([0.0, 1.0]), retry_after="none"), seed)
    tpm = after_requests(provider, 8).tpm
    assert quota.tokens is not None
    assert tpm is None or CLOSE * quota.tokens <= tpm <= quota.tokens
    assert provider.calls <= 8


ODD: list[Callable[[AccountQuota], Account]] = [Reserving, InputOnly, Shared, CountingRefused, EveryTenSeconds]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("account", ODD)
def test_a_provider_that_counts_otherwise_is_never_thought_to_admit_more(account: Any, rule: Any) -> None:
    quota = AccountQuota(requests=300, tokens=120_000, rule=rule)
    for seed in range(3 if IS_LONG else 1):
        provider = ProbedProvider(quota, Manners(told=0.0, retry_after="none", starts_at_s=17.0 * seed), seed)
        provider.account = account(quota)
        tpm = after_requests(provider, 300).tpm
        assert tpm is None or tpm <= 120_000
        assert provider.calls <= 300


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("account", [Reserving, InputOnly])
def test_a_little_more_or_less_counted_a_call_is_found_all_the_same(account: Any, rule: Any) -> None:
    quota = AccountQuota(requests=300, tokens=600_000, rule=rule)
    provider = ProbedProvider(quota, Manners(told=0.0), seed=5)
    provider.account = account(quota)
    tpm = after_requests(provider, 300).tpm
    assert tpm is not None
    assert CLOSE * 600_000 <= tpm <= 600_000


@pytest.mark.parametrize("rule", RULES)
def test_tokens_that_do_not_come_back_within_a_minute_are_no_quota_of_a_minute(rule: Any) -> None:
    quota = AccountQuota(requests=300, tokens=120_000, rule=rule)
    provider = ProbedProvider(quota, Manners(told=0.0, retry_after="none"))
    provider.account = Hourly(quota)
    found = after_requests(provider, 300)
    assert found.tpm is None
    assert found.tested_tpm > 0


@pytest.mark.parametrize("rule", RULES)
def test_a_context_smaller_than_the_calls_is_no_limit_of_tokens(rule: Any) -> None:
    quota = AccountQuota(requests=500, tokens=250_000, rule=rule)
    tpm = after_requests(Narrow(quota, Manners(told=0.0)), 500).tpm
    assert tpm is not None
    assert CLOSE * 250_000 <= tpm <= 250_000


@pytest.mark.parametrize("rule", RULES)
def test_no_limit_of_tokens_is_none_after_few_calls_and_says_how_far_it_was_tested(rule: Any) -> None:
    provider = ProbedProvider(AccountQuota(requests=500, rule=rule), Manners(told=0.0))
    found = after_requests(provider, 500)
    assert found.tpm is None
    assert found.tested_tpm > 400_000
    assert provider.calls < 250


def test_tokens_that_nobody_counts_are_not_found() -> None:
    provider = Uncounted(AccountQuota(requests=500, tokens=100_000))
    assert after_requests(provider, 500).tpm is None
    assert provider.calls < 5


@pytest.mark.parametrize("rule", RULES)
def test_the_window_of_a_provider_that_limits_tokens_alone_is_found_by_them(rule: Any) -> None:
    provider = ProbedProvider(AccountQuota(tokens=400_000, rule=rule, burst=0.5), Manners(told=0.0, starts_at_s=11.0))
    found = after_requests(provider, 500, FoundQuota())
    assert found.tpm is not None
    assert CLOSE * 400_000 <= found.tpm <= 400_000
    assert found.window in (rule, None)


@pytest.mark.parametrize("rule", ["fixed", "sliding"])
def test_requests_that_were_refused_for_their_tokens_are_not_taken_for_a_limit_of_requests(rule: Any) -> None:
    provider = ProbedProvider(AccountQuota(requests=300, tokens=1_500, rule=rule), Manners(told=0.0), seed=2)
    seen = 1_500 // BESIDE
    found = after_requests(provider, seen, FoundQuota(rpm=seen, burst=seen, window=rule))
    assert found.tpm is not None
    assert CLOSE * 1_500 <= found.tpm <= 1_500
    assert (found.rpm, found.burst, found.tested_rpm) == (None, None, seen)


@pytest.mark.parametrize("requests", [60, 1_000])
@pytest.mark.parametrize("rule", RULES)
def test_a_limit_that_small_calls_all_but_reach_is_told_from_that_of_requests(rule: Any, requests: int) -> None:
    quota = AccountQuota(requests=requests, tokens=20 * requests, rule=rule)
    provider = ProbedProvider(quota, Manners(), seed=4)
    found = after_requests(provider, requests)
    assert found.rpm is not None
    assert found.tpm is not None
    assert CLOSE * 20 * requests <= found.tpm <= 20 * requests


@pytest.mark.parametrize("rule", RULES)
def test_no_minute_holds_more_tokens_than_may_be_tried(rule: Any) -> None:
    provider = ProbedProvider(AccountQuota(requests=500, tokens=900_000, rule=rule), Manners(told=0.0), seed=1)
    found = after_requests(provider, 300, tokens_most=100_000)
    assert found.tpm is None
    assert 50_000 < found.tested_tpm <= 101_000
    sent = provider.admitted_at
    assert all(sum(used for at, used in sent if since <= at < since + 60) <= 101_000 for since, _ in sent)


def test_where_requests_were_refused_and_their_limit_was_not_found_tokens_are_not_looked_for() -> None:
    provider = ProbedProvider(AccountQuota(requests=60, rule="bucket"))
    refused = TimedAnswer(1, 0.0, 0.04, Answer("refused"))
    assert after_requests(provider, 100, FoundQuota(burst=60.0), before=(refused,)).tpm is None
    assert provider.calls == 0


def test_calls_refused_for_those_in_flight_do_not_keep_tokens_from_being_found() -> None:
    provider = ProbedProvider(AccountQuota(tokens=400_000, max_in_flight=3), Manners(told=0.0))
    seen = tuple(TimedAnswer(1, 0.0, 0.5, Answer("admitted" if place < 3 else "refused", 15)) for place in range(5))
    tpm = after_requests(provider, 300, FoundQuota(concurrency=3), before=seen).tpm
    assert tpm is not None
    assert CLOSE * 400_000 <= tpm <= 400_000
