"""Lanes whose requests and tokens bind by turns: the quota is used, and nothing above it is sent. In virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from itertools import chain, cycle, repeat
from statistics import mean
from typing import Any

import pytest
from msgspec import Struct
from permits import admit
from scripted import worst_minute
from virtual_time import run_virtually

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Fault, Request
from millstream.engine.events import Events
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota, Tokens, declared_quota
from millstream.engine.verdict import Tries, verdict
from millstream.fixtures.provider import quotas

M = "script/m"
RPM = 120
MINUTES = 5
ANSWER = 20
REFUSED = Fault("rate_limited", "429", "throttle", 429, retry_after_s=0.5)
NOTHING = Request("", "", b"", b"", b"", b"")


def equal(chance: random.Random) -> Iterator[int]:
    return repeat(500)


def near(chance: random.Random) -> Iterator[int]:
    return (chance.randint(350, 650) for _ in repeat(None))


def far(chance: random.Random) -> Iterator[int]:
    return (max(40, int(chance.expovariate(1 / 500))) for _ in repeat(None))


def in_turns(chance: random.Random) -> Iterator[int]:
    """As a grid has them: fifteen trials of each configuration, from a bare question to ten arguments."""
    steps = (110, 960, 950, 1260, 1260, 1240, 1240, 1800, 1800, 1800, 1800)
    begin = chance.randrange(len(steps))
    sizes = chain.from_iterable(repeat(size, 15) for size in cycle(steps[begin:] + steps[:begin]))
    return (size + chance.randint(-30, 30) for size in sizes)


SIZES = {"equal": equal, "near": near, "far": far, "in turns": in_turns}
MEANS = {"equal": 500.0, "near": 500.0, "far": 500.0, "in turns": 1292.7}


class Used(Struct, frozen=True):
    """Of whole minutes on the provider's clock, the first of them left out: the larger share of its two limits."""

    shares: tuple[float, ...]
    refusals: int
    order: tuple[int, ...]
    sends: tuple[tuple[float, int], ...]


def used(
    lane: Lane, account: quotas.Account, sizes: Iterator[int], seed: int, *, unsure: float = 0.0, answer: int = ANSWER
) -> Used:
    """A crowd that is never at an end. `unsure`: by so much input is misjudged; `answer`: reserved for one."""
    chance = random.Random(seed)
    began = chance.uniform(0, 60)
    arrivals: list[tuple[float, int]] = []
    sends: list[tuple[float, int]] = []
    order: list[int] = []
    refusals = 0

    async def main() -> None:
        events, budget = Events(), CostBudget()
        key = KeyGate(lane, ledger=Ledger(declared_quota(lane)), budget=budget, policy=RetryPolicy(), events=events)
        group, loop = LaneQueue([key]), asyncio.get_running_loop()
        numbers = iter(range(10**9))

        async def work() -> None:
            nonlocal refusals
            while loop.time() < MINUTES * 60:
                number, size = next(numbers), next(sizes)
                read = round((size - ANSWER) * (1 + unsure * chance.uniform(-1, 1)))
                permit = await admit(group, Tokens(read, answer))
                order.append(number)
                sends.append((loop.time(), size))
                await asyncio.sleep(chance.uniform(0.005, 0.03))
                now = loop.time() + began
                if account.decide(now, size).is_admitted:
                    arrivals.append((now, size))
                    await asyncio.sleep(chance.uniform(0.2, 2.0))
                    key.succeeded(permit, Tokens(size - ANSWER, ANSWER), 0.0)
                else:
                    refusals += 1
                    history = group.history(permit, Tries(RetryPolicy()), NOTHING)
                    group.failed(permit, REFUSED, verdict(REFUSED, history), loop.time())
                group.release(permit, loop.time())

        await asyncio.gather(*(work() for _ in range(64)))

    run_virtually(main())
    assert account.requests is not None and account.tokens is not None
    first = int(began // 60) + 2
    shares = []
    for minute in range(first, first + MINUTES - 2):
        within = [size for at, size in arrivals if minute * 60 <= at < minute * 60 + 60]
        shares.append(max(len(within) / account.requests.limit, sum(within) / account.tokens.limit))
    return Used(tuple(shares), refusals, tuple(order), tuple(sends))


@pytest.mark.long
@pytest.mark.parametrize("ratio", [0.8, 0.95, 1.0, 1.05, 1.25])
@pytest.mark.parametrize("name", SIZES)
def test_whichever_limit_binds_95_percent_of_it_are_used_and_nothing_is_refused(name: str, ratio: float) -> None:
    tokens = int(ratio * RPM * MEANS[name])
    lane = Lane(M, rpm=RPM, tpm=tokens, concurrency=64)
    for seed, rule in enumerate(quotas.RULES):
        account = quotas.Account(quotas.AccountQuota(requests=RPM, tokens=tokens, rule=rule))
        result = used(lane, account, SIZES[name](random.Random(seed)), seed)
        assert result.refusals == 0
        assert mean(result.shares) >= 0.95
        # First come, first served: no call waits for a smaller one that came later.
        assert result.order == tuple(sorted(result.order))
        assert worst_minute([(at, 1) for at, _ in result.sends]) <= RPM
        assert worst_minute(list(result.sends)) <= tokens


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_reservations_that_err_by_a_fifth_meet_no_refusal_either(seed: int) -> None:
    tokens = int(0.8 * RPM * MEANS["in turns"])
    account = quotas.Account(quotas.AccountQuota(requests=RPM, tokens=tokens))
    lane = Lane(M, rpm=RPM, tpm=tokens, concurrency=64)
    result = used(lane, account, in_turns(random.Random(seed)), seed, unsure=0.2, answer=100)
    assert result.refusals == 0
    assert mean(result.shares) >= 0.95


def test_answers_far_shorter_than_reserved_leave_no_tokens_unused() -> None:
    account = quotas.Account(quotas.AccountQuota(requests=RPM, tokens=54_000))
    result = used(Lane(M, rpm=RPM, tpm=54_000, concurrency=64), account, near(random.Random(5)), 5, answer=600)
    assert result.refusals == 0
    assert mean(result.shares) >= 0.95


@pytest.mark.parametrize("burst", [6, 12, 30])
def test_a_bucket_that_is_known_to_be_small_is_never_emptied(burst: int) -> None:
    tokens = int(RPM * MEANS["in turns"])
    account = quotas.Account(quotas.AccountQuota(requests=RPM, tokens=tokens, rule="bucket", burst=burst / RPM))
    lane = Lane(M, rpm=RPM, tpm=tokens, concurrency=64, burst=burst)
    result = used(lane, account, in_turns(random.Random(6)), 6)
    assert result.refusals == 0
    assert mean(result.shares) >= {6: 0.90, 12: 0.92, 30: 0.96}[burst]


def test_a_bucket_that_nobody_knew_to_be_small_refuses_a_few_calls_and_is_left_in_peace() -> None:
    tokens = int(RPM * MEANS["in turns"])
    account = quotas.Account(quotas.AccountQuota(requests=RPM, tokens=tokens, rule="bucket", burst=0.1))
    result = used(Lane(M, rpm=RPM, tpm=tokens, concurrency=64), account, in_turns(random.Random(6)), 6)
    assert 1 <= result.refusals <= 6


def at_once(ledger: Ledger, now: float) -> int:
    """Calls of no size that may go at one instant."""
    count = 0
    while ledger.take(now, Tokens())[0] == 0:
        count += 1
    return count


def held_up(ledger: Ledger) -> float:
    """Until when calls waited for tokens while requests were free: twenty seconds and a little."""
    assert ledger.take(100.0, Tokens(20_000)) == (0.0, "")
    wait, why = ledger.take(100.0, Tokens(1))
    assert why == "tokens" and 19 <= wait <= 21
    return 100.0 + wait


QUOTA = Quota(rpm=600, tpm=60_000)


def test_what_requests_lost_while_calls_waited_for_tokens_is_made_up_for_ten_seconds_and_no_more() -> None:
    ledger = Ledger(QUOTA)
    until = held_up(ledger)
    # Ten seconds' worth, and the burst that there always is.
    assert 99 <= at_once(ledger, until) <= 104
    assert at_once(ledger, until + 0.2) <= 3


def test_what_nobody_wanted_is_not_made_up_for() -> None:
    ledger = Ledger(QUOTA)
    until = held_up(ledger)
    assert at_once(ledger, until + 1.0) <= 5
    rested = Ledger(QUOTA)
    assert rested.take(100.0, Tokens()) == (0.0, "")
    assert at_once(rested, 130.0) <= 5


@pytest.mark.parametrize(
    ("told", "made_up_s"),
    [({}, 10.0), ({"burst": 120}, 10.0), ({"burst": 12}, 2.5), ({"burst": 1}, 0.0)],
)
def test_a_known_burst_says_how_much_is_made_up_for(told: dict[str, Any], made_up_s: float) -> None:
    assert declared_quota(Lane(M, rpm=RPM, **told)).made_up_s == pytest.approx(made_up_s)


def test_a_call_that_needs_all_of_a_minute_has_it_alone() -> None:
    ledger = Ledger(Quota(tpm=10_000))
    assert ledger.take(100.0, Tokens(10_000)) == (0.0, "")
    wait, why = ledger.take(100.0, Tokens(10_000))
    assert why == "tokens" and 60 <= wait <= 62
    assert ledger.take(100.0 + wait, Tokens(10_000)) == (0.0, "")
    # Beside others a little of the minute is kept, for answers that come longer than was reserved.
    small = Ledger(Quota(tpm=10_000))
    assert small.take(100.0, Tokens(1)) == (0.0, "")
    assert small.take(101.0, Tokens(9_950))[1] == "tokens"
    assert small.take(101.0, Tokens(9_949)) == (0.0, "")
