"""Kinds of windows are told apart by what is admitted again and when, and by nothing less."""

from __future__ import annotations

import random

import pytest

from millstream.bench.probe.boxes import MINUTE_S, Event
from millstream.bench.probe.choice import RoundChoice
from millstream.bench.probe.request_hypotheses import RequestHypotheses
from millstream.bench.probe.steps import Window
from millstream.fixtures.provider.quotas import RULES, AccountQuota, meter

LATE_S = 0.1
SURE = 0.95


class Provider:
    """One that decides each call at any time within its latency. `tells`: every refusal asks for this share of the
    true wait."""

    def __init__(self, quota: AccountQuota, seed: int, begins: float | None = None, tells: float | None = None) -> None:
        self._draw = random.Random(seed)
        # On the clock of the provider; None: anywhere.
        self._off_s = MINUTE_S - (self._draw.uniform(0, 60) if begins is None else begins)
        self.tells = tells
        self.asked = 0
        found = meter(quota.requests, quota)
        assert found is not None
        self._meter = found

    def ask(self, at_s: float, count: int) -> Event:
        admitted, told_s = 0, None
        is_refused = False
        for decided_s in sorted(at_s + LATE_S * self._draw.random() for _ in range(count)):
            wait_s = self._meter.wait_s(decided_s + self._off_s, 1)
            if wait_s:
                is_refused = True
                told_s = None if self.tells is None else self.tells * wait_s
            else:
                self._meter.take(decided_s + self._off_s, 1)
                admitted += 1
        self.asked += count
        return Event(at_s, at_s + LATE_S, admitted, admitted, 1.0 if is_refused else None, at_s, 0, told_s)


def burst(provider: Provider, count: int, at_s: float = 7.0) -> list[Event]:
    """One call, then ever so many until one is refused."""
    events, at_s = [provider.ask(at_s, 1)], at_s + 4.0
    while events[-1].refused is None:
        events.append(provider.ask(at_s, count))
        at_s += 0.5
    return events


def emptied(provider: Provider, count: int, told: float | None = None) -> tuple[RequestHypotheses, float]:
    events = burst(provider, count)
    return RequestHypotheses(events, told, LATE_S), events[-1].by_s


def share(kinds: RequestHypotheses, kind: Window) -> float:
    return sum(
        float(weight.sum()) for boxes, weight in zip(kinds.boxes, kinds.weights, strict=True) if boxes.kind == kind
    )


def watched(kinds: RequestHypotheses, provider: Provider, now_s: float, limit: int) -> None:
    """As a probe does: what tells most, a second after each refusal at the earliest, until it is sure."""
    for _ in range(60):
        left = max(14, 2.95 * limit) - provider.asked
        if kinds.is_void or left < 1:
            return
        if not kinds.is_known:
            chosen = kinds.next(now_s, 1_000, left)
        elif kinds.kind[0] != "bucket" and kinds.unproven:
            chosen = RoundChoice(now_s, kinds.unproven, 1.0, 0.0)
        else:
            return
        if chosen is None:
            return
        event = provider.ask(chosen.at_s, chosen.calls)
        kinds.learn(event)
        now_s = event.by_s + (1.0 if event.refused is not None else 0.1)


# Clear evidence


@pytest.mark.parametrize(("rule", "limit"), [("bucket", 100), ("fixed", 20), ("sliding", 100)])
def test_what_it_asks_for_tells_each_kind_from_the_others(rule: Window, limit: int) -> None:
    provider = Provider(AccountQuota(requests=limit, rule=rule), 1)
    kinds, now_s = emptied(provider, limit // 4)
    assert sorted(kinds.kinds) == ["bucket", "fixed", "sliding"]
    watched(kinds, provider, now_s + 1.0, limit)
    assert kinds.kind[0] == rule
    assert kinds.kind[1] > SURE
    if rule == "bucket":
        least, is_sure = kinds.bucket_least("limit")
        assert 0.95 * limit <= least <= limit
        assert is_sure
        holds, is_sure = kinds.bucket_least("capacity")
        assert 0.95 * limit <= holds <= limit
        assert is_sure
    else:
        found = kinds.window_limit(SURE)
        assert found is not None
        assert 0.97 * limit <= found <= limit
        assert not kinds.unproven


def test_a_call_that_is_admitted_soon_after_a_refusal_speaks_for_a_bucket() -> None:
    kinds, now_s = emptied(Provider(AccountQuota(requests=20, rule="bucket"), 1), 5)
    for after_s in (2.0, 4.0, 6.0):
        kinds.learn(Event(now_s + after_s, now_s + after_s + LATE_S, 1.0, 1, None, now_s + after_s))
    assert kinds.kind[0] == "bucket"
    assert kinds.kind[1] > SURE


def test_all_at_once_before_the_first_has_left_a_minute_is_a_window_that_ended() -> None:
    provider = Provider(AccountQuota(requests=20, rule="fixed"), 1, begins=31.0)
    kinds, _ = emptied(provider, 5)
    kinds.learn(provider.ask(30.0, 1))
    kinds.learn(provider.ask(32.0, 20))
    assert kinds.kinds == ["fixed"]


def test_the_first_call_alone_comes_back_a_minute_later_from_a_sliding_window() -> None:
    provider = Provider(AccountQuota(requests=20, rule="sliding"), 1)
    kinds, _ = emptied(provider, 5)
    kinds.learn(provider.ask(50.0, 1))
    kinds.learn(provider.ask(67.5, 2))
    assert kinds.kind[0] == "sliding"
    assert kinds.kind[1] > SURE


def test_a_window_that_begins_with_the_first_call_is_told_from_a_sliding_one() -> None:
    # The first call stands four seconds before the others: one gives back all by then, the other one call.
    pairs: list[tuple[Window, Window]] = [("fixed", "sliding"), ("sliding", "fixed")]
    for rule, other in pairs:
        for begins in (7.0, 59.95):
            provider = Provider(AccountQuota(requests=20, rule=rule), 3, begins=begins % 60)
            events = burst(provider, 5, begins + 0.02)
            kinds = RequestHypotheses(events, None, LATE_S)
            assert min(share(kinds, "fixed"), share(kinds, "sliding")) > 0.1
            kinds.learn(provider.ask(events[0].at_s + 30, 1))
            kinds.learn(provider.ask(events[0].by_s + MINUTE_S + 0.4, 3))
            assert share(kinds, rule) > SURE, (rule, begins)
            assert share(kinds, other) < 0.01


def test_a_window_that_begins_with_the_first_call_is_likely_though_the_clocks_minute_ends_in_that_call() -> None:
    kinds = RequestHypotheses(burst(Provider(AccountQuota(requests=20, rule="sliding"), 1), 5, 59.95), None, LATE_S)
    fixed = kinds.kinds.index("fixed")
    begins, weight = kinds.boxes[fixed].least, kinds.weights[fixed]
    for first, last in ((0.0, 0.04), (59.96, 60.0)):
        with_it = weight[(begins >= first) & (begins < last)].sum()
        assert with_it > 3 * weight[(begins >= 30.0) & (begins < 30.0 + last - first)].sum() > 0


# What was told


@pytest.mark.parametrize("rule", RULES)
def test_a_wait_that_was_told_speaks_for_its_kind(rule: Window) -> None:
    quota = AccountQuota(requests=20, rule=rule)
    silent, _ = emptied(Provider(quota, 5, begins=40.0), 5)
    told, _ = emptied(Provider(quota, 5, begins=40.0, tells=1.0), 5)
    assert share(silent, rule) == pytest.approx(1 / 3, abs=0.15)
    assert share(told, rule) > 1.5 * share(silent, rule)


@pytest.mark.parametrize("tells", [0.01, 5.0])
@pytest.mark.parametrize("rule", RULES)
def test_a_wait_that_was_told_rules_no_kind_out(rule: Window, tells: float) -> None:
    kinds, _ = emptied(Provider(AccountQuota(requests=20, rule=rule), 5, tells=tells), 5)
    assert sorted(kinds.kinds) == ["bucket", "fixed", "sliding"]
    assert all(share(kinds, kind) > 0 for kind in RULES)


@pytest.mark.parametrize("rule", RULES)
def test_waits_that_are_not_true_lead_to_no_other_kind(rule: Window) -> None:
    provider = Provider(AccountQuota(requests=20, rule=rule), 3, tells=1 / 3)
    kinds, now_s = emptied(provider, 5)
    watched(kinds, provider, now_s + 1.0, 20)
    assert kinds.kind[0] == rule or kinds.kind[1] < SURE


def test_headers_say_only_where_to_look() -> None:
    provider = Provider(AccountQuota(requests=20, rule="fixed"), 2)
    kinds, now_s = emptied(provider, 5, told=19.0)
    watched(kinds, provider, now_s + 1.0, 20)
    assert kinds.window_limit(SURE) == 20


# Nothing by elimination alone


def test_a_window_is_not_believed_before_it_has_admitted_several_again() -> None:
    provider = Provider(AccountQuota(requests=20, rule="fixed"), 1, begins=31.0)
    kinds, _ = emptied(provider, 5)
    assert kinds.unproven == 1
    kinds.learn(provider.ask(30.0, 1))
    # It was refused: all that is known is what it is not.
    assert kinds.unproven == 1
    for asked, unproven in enumerate((2, 1, 0), 1):
        kinds.learn(provider.ask(31.5 + asked, 1))
        assert kinds.unproven == unproven


def test_of_a_window_of_one_call_one_more_is_several() -> None:
    provider = Provider(AccountQuota(requests=1, rule="fixed"), 1, begins=31.0)
    kinds, _ = emptied(provider, 1)
    kinds.learn(provider.ask(32.0, 1))
    assert kinds.unproven == 0


def test_a_sliding_window_is_believed_when_it_admits_one_and_refuses_again() -> None:
    provider = Provider(AccountQuota(requests=20, rule="sliding"), 1)
    kinds, _ = emptied(provider, 5)
    kinds.learn(provider.ask(50.0, 1))
    kinds.learn(provider.ask(67.5, 1))
    assert kinds.kind[0] == "sliding"
    assert kinds.unproven == 2
    kinds.learn(provider.ask(68.0, 1))
    assert kinds.unproven == 0


# What is asked for


def test_little_is_asked_for_where_the_last_was_refused() -> None:
    for limit, few in ((12, 2), (20, 3)):
        kinds, now_s = emptied(Provider(AccountQuota(requests=limit, rule="fixed"), 4, begins=0.0), limit // 4)
        # The longer it rests, the likelier it is that something came back.
        for after_s, most in ((1.0, few), (20.0, limit)):
            chosen = kinds.next(now_s + after_s, 1_000, 2.0 * limit)
            assert chosen is not None
            assert chosen.at_s >= now_s + after_s
            assert 1 <= chosen.calls <= most


def test_no_more_is_asked_for_than_may_be_in_flight_or_is_left() -> None:
    provider = Provider(AccountQuota(requests=40, rule="fixed"), 1, begins=31.0)
    kinds, _ = emptied(provider, 10)
    kinds.learn(provider.ask(32.0, 1))
    for at_once, left in ((1, 100.0), (2, 100.0), (5, 100.0), (100, 1.0), (100, 3.0)):
        chosen = kinds.next(33.0, at_once, left)
        assert chosen is not None
        assert chosen.calls <= min(at_once, left)


def test_what_nobody_can_have_done_is_no_kind_of_window() -> None:
    kinds, now_s = emptied(Provider(AccountQuota(requests=20, rule="sliding"), 1), 5)
    kinds.learn(Event(now_s + 1.0, now_s + 1.1, 1_000.0, 1_000, None, now_s + 1.0))
    assert kinds.is_void
    assert kinds.is_known
