"""A probe finds no number above the truth of providers that err, change, or are used by others too."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec import structs
from probed_provider import MODEL, REQUESTS, WIDE, Manners, ProbedProvider, drawn_manners, probed
from torture import IS_LONG

from millstream.bench.probe.answers import Answer
from millstream.fixtures.provider.quotas import RULES, Account, AccountQuota, Decision, FixedWindow, SlidingWindow

# Every rule and every rate that is drawn come with four of them.
SEEDS = [seed if seed in (0, 1, 2, 5) else pytest.param(seed, marks=pytest.mark.long) for seed in range(9)]


def never_above(quota: AccountQuota, said: Manners, seed: int, truth: float, calls: float) -> None:
    provider = ProbedProvider(quota, said, seed)
    found = probed(provider, REQUESTS).lanes[MODEL]
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
    never_above(quota, drawn_manners(draw, [0.0, 1.0]), seed, truth, max(3 * truth, 4 * quota.requests) + 60)


@pytest.mark.parametrize("seed", SEEDS)
def test_refusals_of_windows_without_a_reason_give_no_number_above_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    rpm = draw.choice([10, 30, 100, 400])
    said = drawn_manners(draw, [0.0, 1.0], refuses=0.1)
    never_above(AccountQuota(requests=rpm, rule=RULES[seed % 2]), said, seed, rpm, 5 * rpm + 250)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quota_that_others_use_a_third_of_is_not_told_above_the_truth(seed: int) -> None:
    draw = random.Random(seed)
    rpm = draw.choice([10, 30, 100, 400])
    said = drawn_manners(draw, [0.0, 1.0], others=0.3 * rpm / 60)
    never_above(AccountQuota(requests=rpm, rule=RULES[seed % 3]), said, seed, rpm, 5 * rpm + 250)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quota_that_changes_while_it_is_probed_is_not_told_above_its_higher_one(seed: int) -> None:
    draw = random.Random(seed)
    rpm, rule = draw.choice([10, 30, 100, 400]), RULES[seed % 3]
    later = AccountQuota(requests=round(rpm * draw.choice([0.5, 2.0])), rule=rule)
    assert later.requests is not None
    said = drawn_manners(draw, [0.0, 1.0], changes_after=int(rpm * draw.choice([0.5, 1.2])), later=later)
    truth = max(rpm, later.requests)
    never_above(AccountQuota(requests=rpm, rule=rule), said, seed, truth, 4 * truth + 250)


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


ODD: list[Any] = [Reserving, InputOnly, Shared, CountingRefused, EveryTenSeconds, Hourly]
# Each account by one rule, and each rule with two of the accounts.
ODD_BY_RULE = [
    pytest.param(account, rule, marks=() if (at + place) % 3 == 0 else pytest.mark.long)
    for at, account in enumerate(ODD)
    for place, rule in enumerate(RULES)
]


@pytest.mark.parametrize(("account", "rule"), ODD_BY_RULE)
def test_a_provider_that_counts_tokens_otherwise_is_never_thought_to_admit_more(account: Any, rule: Any) -> None:
    quota = AccountQuota(requests=300, tokens=120_000, rule=rule)
    for seed in range(3 if IS_LONG else 1):
        provider = ProbedProvider(quota, Manners(told=0.0, retry_after="none", starts_at_s=17.0 * seed), seed)
        provider.account = account(quota)
        tpm = probed(provider).lanes[MODEL].tpm
        assert tpm is None or tpm <= (2_000 if account is Hourly else 120_000)


@pytest.mark.parametrize("rule", RULES)
def test_a_context_smaller_than_the_calls_is_no_limit_of_tokens(rule: Any) -> None:
    quota = AccountQuota(requests=500, tokens=250_000, rule=rule)
    tpm = probed(Narrow(quota, Manners(told=0.0))).lanes[MODEL].tpm
    assert tpm is not None
    assert 0.95 * 250_000 <= tpm <= 250_000


@pytest.mark.parametrize("rule", ["fixed", "sliding"])
def test_requests_that_were_refused_for_their_tokens_are_not_taken_for_a_limit_of_requests(rule: Any) -> None:
    found = probed(ProbedProvider(AccountQuota(requests=300, tokens=1_500, rule=rule), Manners(told=0.0))).lanes[MODEL]
    assert found.tpm is not None
    assert 0.9 * 1_500 <= found.tpm <= 1_500
    assert (found.rpm, found.burst) == (None, None)


@pytest.mark.parametrize("rule", RULES)
def test_no_minute_holds_more_tokens_than_may_be_tried(rule: Any) -> None:
    provider = ProbedProvider(AccountQuota(requests=500, tokens=900_000, rule=rule), Manners(told=0.0), seed=1)
    found = probed(provider, structs.replace(WIDE, tokens=100_000)).lanes[MODEL]
    assert found.tpm is None
    assert 50_000 < found.tested_tpm <= 101_000
    sent = provider.admitted_at
    assert all(sum(used for at, used in sent if since <= at < since + 60) <= 101_000 for since, _ in sent)
