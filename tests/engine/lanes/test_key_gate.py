"""What one key's gate makes of a fault, without a loop: the faults and their times are the test's own."""

from __future__ import annotations

import pytest

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Fault
from millstream.engine.events import Event, Events
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import STOPPED, Hold, KeyGate, Permit
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Tokens, declared_quota
from millstream.engine.verdict import verdict

REFUSED = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
BROKEN = Fault("server_error", "500", "retry", 500)
REJECTED = Fault("rejected", "400", "never", 400)
# Nothing left to connect with, as files or ports.
OWN = Fault("connect", "no file is free", "wait", quota="refund")


def gate(events: Events, budget: CostBudget | None = None, policy: RetryPolicy | None = None) -> KeyGate:
    lane, budget = Lane("lab/one", rpm=600, concurrency=4), budget or CostBudget()
    return KeyGate(
        lane, ledger=Ledger(declared_quota(lane)), budget=budget, policy=policy or RetryPolicy(), events=events
    )


def failed_once(key: KeyGate, fault: Fault, now: float) -> None:
    permit = key.try_take(now)
    assert isinstance(permit, Permit), permit
    key.failed(permit, fault, verdict(fault), now)
    key.release(permit, now)


def test_a_cut_is_told_with_the_rate_that_it_leaves() -> None:
    told, events = list[Event](), Events()
    events.subscribe(told.append)
    failed_once(gate(events), REFUSED, 1.0)
    (cut,) = (event for event in told if event.kind == "cut")
    # Half of 600 a minute is 5 a second.
    assert cut.value == pytest.approx(5)
    assert cut.detail == "rate_limited"


@pytest.mark.parametrize(("fault", "is_outage"), [(REJECTED, False), (REFUSED, True)])
def test_calls_that_are_rejected_spend_no_retries_and_are_no_outage(fault: Fault, is_outage: bool) -> None:
    key = gate(Events())
    # Half a minute apart, so that a slow lane or a closed one still sends most of them.
    for number in range(25):
        permit = key.try_take(30.0 * number)
        if isinstance(permit, Permit):
            key.failed(permit, fault, verdict(fault), 30.0 * number)
            key.release(permit, 30.0 * number)
    assert key.breaker.is_failing is is_outage
    assert key.is_healthy is not is_outage


@pytest.mark.parametrize(
    ("fault", "counted", "paid"),
    [
        # Of 100 reserved tokens and $1: an error keeps the tokens and costs nothing, a refused connection gives
        # them back, a useless answer counts what it reports and is paid for, a cut one may have been billed.
        (Fault("server_error", "500", "retry", 500), (1, 100), 0.0),
        (Fault("connect", "refused", "retry", quota="refund"), (0, 0), 0.0),
        (Fault("empty", "no choices", "retry", 200, quota="settle", usage_tokens=30), (1, 30), 1.0),
        (Fault("empty", "no choices, no usage", "retry", 200, quota="settle"), (1, 100), 1.0),
        (Fault("incomplete", "cut", "retry", is_billed_maybe=True), (1, 100), 1.0),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_a_faults_tokens_and_cost_are_those_of_its_kind(fault: Fault, counted: tuple[int, int], paid: float) -> None:
    budget = CostBudget()
    key = gate(Events(), budget)
    permit = key.try_take(1.0, Tokens(80, 20), 1.0)
    assert isinstance(permit, Permit)
    key.failed(permit, fault, verdict(fault), 1.0)
    key.release(permit, 1.0)
    requests, tokens = key.ledger.used(1.0)
    assert (requests, tokens.total) == counted
    assert (budget.spent, budget.reserved) == (paid, 0.0)


def test_a_wait_for_the_next_probe_never_outlasts_the_patience_and_ends_with_it() -> None:
    key = gate(Events(), policy=RetryPolicy(patience_s=19.0, breaker_failures=1, probe_every_s=10.0))
    failed_once(key, BROKEN, 0.0)
    # The probe fails too, so the next one would be sent at 20 s.
    failed_once(key, BROKEN, 10.0)
    assert key.try_take(18.5) == Hold(0.5, "breaker")
    assert key.try_take(19.25) is STOPPED


@pytest.mark.parametrize(
    ("own_s", "fault", "ends_s"),
    [(5.0, BROKEN, 19.0), (5.0, OWN, 5.0), (None, OWN, 19.0)],
    ids=["its trouble", "our trouble", "our trouble, without a patience of its own"],
)
def test_own_patience_is_for_trouble_of_our_own(own_s: float | None, fault: Fault, ends_s: float) -> None:
    policy = RetryPolicy(patience_s=19.0, own_patience_s=own_s, breaker_failures=1, probe_every_s=1.0)
    key = gate(Events(), policy=policy)
    second = 0.0
    while (found := key.try_take(second)) is not STOPPED:
        if isinstance(found, Permit):
            key.failed(found, fault, verdict(fault), second)
            key.release(found, second)
        second += 0.25
    assert ends_s - 1.0 <= second <= ends_s + 1.0
