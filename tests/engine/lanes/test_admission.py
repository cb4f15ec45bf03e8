"""One decision over all quotas, in virtual time."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from permits import admit
from scripted import ScriptedProvider, engine_over, prompts, worst_minute
from torture import SEED, record, times
from virtual_time import run_virtually

from millstream.engine.attempts.estimate import TokenEstimate, call_weight
from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.prices import Price
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Message, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.events import Event, Events
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota, Tokens
from millstream.engine.run import run_calls

THROTTLE = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)


async def send_for(seconds: float, lane: Lane, folder: Path, latency_s: float = 0.3) -> list[tuple[float, int]]:
    provider = ScriptedProvider(latency_s=latency_s)
    async with engine_over({"script/m": provider}, folder, lane) as bench:
        async for _ in run_calls(bench.scheduler, prompts(10**9)):
            if provider.arrivals[-1][0] > seconds:
                break
    return [(at, 1) for at, _ in provider.arrivals if at <= seconds]


@pytest.mark.parametrize("rpm", [1, 7, 60, 600, pytest.param(3000, marks=pytest.mark.long)])
def test_no_sliding_minute_exceeds_the_declared_requests_and_98_percent_are_used(rpm: int, tmp_path: Path) -> None:
    minutes = 10
    sends = run_virtually(send_for(minutes * 60, Lane("script/m", rpm=rpm, concurrency=64), tmp_path))
    assert worst_minute(sends) <= rpm
    assert len(sends) >= 0.98 * rpm * minutes - 1


def test_the_quota_is_used_from_the_first_second(tmp_path: Path) -> None:
    sends = run_virtually(send_for(60, Lane("script/m", rpm=600, concurrency=64), tmp_path))
    assert len([at for at, _ in sends if at < 1.0]) >= 9
    assert len(sends) >= 0.98 * 600


async def token_sends(sizes: list[int], tpm: int, seconds: float, jitter: random.Random) -> list[tuple[float, int]]:
    """The reservations of calls whose sizes repeat `sizes`, first come first served."""
    import asyncio

    events = Events()
    lane = Lane("script/m", tpm=tpm, concurrency=16)
    ledger, budget = Ledger(Quota(tpm=tpm)), CostBudget()
    key = KeyGate(lane, ledger=ledger, budget=budget, policy=RetryPolicy(), events=events)
    group = LaneQueue([key])
    loop = asyncio.get_running_loop()
    sends: list[tuple[float, int]] = []
    cursor = iter(range(10**9))

    async def work() -> None:
        while loop.time() < seconds:
            size = sizes[next(cursor) % len(sizes)]
            permit = await admit(group, Tokens(size))
            sends.append((loop.time(), size))
            await asyncio.sleep(jitter.uniform(0.05, 2))
            key.succeeded(permit, Tokens(size), 0.0)
            group.release(permit, loop.time())

    await asyncio.gather(*(work() for _ in range(16)))
    assert group.in_flight == 0
    return [(at, size) for at, size in sends if at <= seconds]


@settings(max_examples=15, deadline=None)
@given(
    tpm=st.integers(1_000, 200_000),
    share=st.sampled_from([0.002, 0.01, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_no_sliding_minute_exceeds_the_declared_tokens(tpm: int, share: float, seed: int) -> None:
    jitter = random.Random(seed)
    largest = max(1, int(tpm * share))
    sizes = [largest, *(jitter.randint(1, largest) for _ in range(30))]
    minutes = 8
    sends = run_virtually(token_sends(sizes, tpm, minutes * 60, jitter))
    assert worst_minute(sends) <= tpm
    used = sum(size for _, size in sends) / (tpm * minutes)
    # Sixteen workers may be too few to use the quota with the smallest calls: then slots are the limit.
    reachable = 16 / 1.025 * 60 * (sum(sizes) / len(sizes)) / tpm
    wanted = 1 - largest / tpm - 0.025
    assert used >= min(wanted, 0.9 * reachable)


def test_the_largest_call_is_not_starved_by_small_ones() -> None:
    sizes = [6_000] + [10] * 99
    sends = run_virtually(token_sends(sizes, 10_000, 600, random.Random(3)))
    sent_large = [at for at, size in sends if size == 6_000]
    per_round = sum(sizes) / 10_000 * 60
    assert len(sent_large) >= 600 / per_round * 0.35
    # First come, first served: between two large calls there are always exactly ninety-nine small ones.
    order = [size for _, size in sends]
    places = [place for place, size in enumerate(order) if size == 6_000]
    assert all(b - a == 100 for a, b in itertools.pairwise(places))


def test_a_pause_holds_the_whole_lane_and_spends_no_attempt(tmp_path: Path) -> None:
    paused = Fault("rate_limited", "429", "throttle", 429, retry_after_s=30.0)
    provider = ScriptedProvider(lambda prompt, at: paused if at < 0.05 else None)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=4)) as bench:
            found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(20))])

    run_virtually(main())
    assert all(outcome.reply is not None for outcome in found)
    late = [at for at, _ in provider.arrivals if at > 0.05]
    assert min(late) >= 30.0
    assert len(provider.arrivals) == 24


def test_429s_of_one_episode_cut_the_rate_once_and_it_recovers_within_five_minutes(tmp_path: Path) -> None:
    # A lane at 600 a minute; every call that arrives in the second minute is refused.
    provider = ScriptedProvider(lambda prompt, at: THROTTLE if 60 <= at < 60.2 else None, latency_s=0.2)
    cuts: list[Event] = []

    async def main() -> None:
        lane = Lane("script/m", rpm=600, concurrency=32)
        async with engine_over({"script/m": provider}, tmp_path, lane) as bench:
            bench.events.subscribe(lambda event: cuts.append(event) if event.kind == "cut" else None)
            async for _ in run_calls(bench.scheduler, prompts(10**9)):
                if provider.arrivals[-1][0] > 480:
                    break

    run_virtually(main())
    assert len(cuts) == 1
    times = [at for at, _ in provider.arrivals]
    after_cut = len([at for at in times if 61 <= at < 71])
    assert after_cut <= 0.65 * 98.7
    recovered = len([at for at in times if 60.2 + 300 <= at < 60.2 + 360])
    assert recovered >= 0.9 * 600


def test_an_undeclared_quota_is_found_without_losing_a_call(tmp_path: Path) -> None:
    """A provider that takes five a second and says no more than 429 about it."""
    window: list[float] = []

    def script(prompt: str, at: float) -> Fault | None:
        window[:] = [then for then in window if then > at - 1.0]
        if len(window) >= 5:
            return THROTTLE
        window.append(at)
        return None

    provider = ScriptedProvider(script, latency_s=0.1)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=16)) as bench:
            found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(1500))])

    run_virtually(main())
    good = [outcome for outcome in found if outcome.reply is not None]
    assert len(found) == 1500
    assert len(good) >= 1490
    assert provider.arrivals[-1][0] < 1500 / 5 * 3


def test_the_breaker_opens_after_twenty_failures_and_probes_every_ten_seconds(tmp_path: Path) -> None:
    down = Fault("connect", "refused", "retry", quota="refund")
    provider = ScriptedProvider(lambda prompt, at: down if at < 200 else None, latency_s=0.01)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=32)) as bench:
            found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(500))])

    run_virtually(main())
    assert all(outcome.reply is not None for outcome in found)
    during = [at for at, _ in provider.arrivals if 15 < at < 200]
    assert 15 <= len(during) <= 20
    assert all(b - a >= 9.9 for a, b in itertools.pairwise(during))


def test_waiting_for_a_dead_provider_ends_after_patience_and_the_rest_stays_pending(tmp_path: Path) -> None:
    from millstream.engine.fault import Stopped

    down = Fault("connect", "refused", "retry", quota="refund")
    provider = ScriptedProvider(lambda prompt, at: down if at > 5 else None, latency_s=1.0)
    found: list[Outcome] = []

    async def main() -> float:
        import asyncio

        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=32)) as bench:
            with pytest.raises(Stopped) as stopped:
                async for outcome in run_calls(bench.scheduler, prompts(1000)):
                    found.append(outcome)
            assert [stop.reason for stop in stopped.value.stops] == ["patience"]
            return asyncio.get_running_loop().time()

    ended = run_virtually(main())
    assert 600 <= ended <= 700
    assert all(outcome.reply is not None for outcome in found)
    retries = len(provider.arrivals) - len(provider.counts())
    assert retries <= 0.1 * len(provider.arrivals) + 60 + 20


def test_a_dead_key_stops_the_lane_after_one_confirming_probe(tmp_path: Path) -> None:
    from millstream.engine.fault import Stopped

    dead = Fault("rejected", "401", "confirm", 401)
    provider = ScriptedProvider(lambda prompt, at: dead if at > 1 else None, latency_s=0.1)

    async def main() -> tuple[int, int]:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=8)) as bench:
            found = []
            with pytest.raises(Stopped) as stopped:
                async for outcome in run_calls(bench.scheduler, prompts(1000)):
                    found.append(outcome)
            assert stopped.value.stops[0].reason == "dead_key"
            assert all(outcome.reply is not None for outcome in found)
            return len(found), bench.lane("script/m").in_flight

    answered, in_flight = run_virtually(main())
    assert in_flight == 0
    # Eight were in flight when the key died, and one probe confirmed it.
    assert len(provider.arrivals) == answered + 8 + 1


def test_a_reached_budget_stops_sending_and_never_overspends(tmp_path: Path) -> None:
    from millstream.engine.fault import Stopped

    provider = ScriptedProvider()
    price = Price(input=1000.0, output=1000.0)

    async def main() -> tuple[float, int]:
        async with engine_over(
            {"script/m": provider}, tmp_path, Lane("script/m", concurrency=4), max_cost=1.0, price=price
        ) as bench:
            found = []
            with pytest.raises(Stopped) as stopped:
                calls = (Call("script/m", f"prompt {n}", max_tokens=10) for n in range(10_000))
                async for outcome in run_calls(bench.scheduler, calls):
                    found.append(outcome)
            assert stopped.value.stops[0].reason == "budget"
            assert bench.budget.reserved == pytest.approx(0.0)
            return bench.budget.spent, len(found)

    spent, answered = run_virtually(main())
    assert 0.9 < spent <= 1.0
    assert answered == len(provider.arrivals)


def test_a_cancelled_caller_gives_its_slot_back_wherever_it_waits(tmp_path: Path) -> None:
    """Cancelled at a random instant: in the queue, at the gate, in flight, backing off."""
    import asyncio
    import contextlib

    chance, rounds = random.Random(SEED), times(100, 1000)
    flaky = Fault("server_error", "500", "retry", 500)
    provider = ScriptedProvider(
        lambda prompt, at: flaky if chance.random() < 0.3 else None, latency_s=lambda: chance.uniform(0.01, 0.5)
    )

    async def main() -> None:
        lane = Lane("script/m", rpm=3000, tpm=1_000_000, concurrency=8)
        async with engine_over({"script/m": provider}, tmp_path, lane) as bench:
            for round_number in range(rounds):
                tasks = [
                    asyncio.create_task(bench.scheduler.ask(Call("script/m", f"{round_number} {n}"))) for n in range(20)
                ]
                for task in tasks:
                    await asyncio.sleep(chance.uniform(0, 0.05))
                    task.cancel()
                for task in tasks:
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
            admission = bench.lane("script/m")
            assert admission.in_flight == 0
            assert provider.in_flight == 0
            assert repr(admission) == "<Lane script/m [0 in flight, 0 queued, open]>"
            assert (await bench.scheduler.ask(Call("script/m", "after all that"))).reply is not None

    run_virtually(main())
    record("10", rounds * 20, rounds * 20, "no slot and no request was left behind", f"{SEED}")


def test_an_estimate_learns_from_the_reported_usage() -> None:
    from millstream.engine.call import Usage

    estimate = TokenEstimate()
    call = Call("script/m", "x" * 4000)
    assert estimate.tokens_of(call, call_weight(call)) == Tokens(1000, 256)
    for _ in range(64):
        estimate.observe(call_weight(call), Usage(2000, 40))
    tokens = estimate.tokens_of(call, call_weight(call))
    assert tokens.input == pytest.approx(2000, rel=0.05) and tokens.output == 40
    assert estimate.tokens_of(Call("script/m", "x", max_tokens=7), 1).output == 7


def test_a_prompt_in_a_script_of_a_token_a_character_is_reserved_as_such() -> None:
    salt = "\u98df\u76d0"
    for call in (Call("script/m", salt * 500), Call("script/m", (Message("user", salt * 500), Message("user", "")))):
        assert call_weight(call) == 4_000
    assert call_weight(Call("script/m", "\u201cx\u201d \u2013 " * 500)) == 3_000


def test_a_provider_that_refuses_after_every_pause_is_asked_ever_more_seldom(tmp_path: Path) -> None:
    """Ten minutes of "come back in a second": the whole lane must not come back each time."""
    from millstream.engine.fault import Stopped

    refused = Fault("rate_limited", "429", "throttle", 429, retry_after_s=1.0)
    provider = ScriptedProvider(lambda prompt, at: refused if at > 1 else None, latency_s=0.05)

    async def main() -> float:
        import asyncio

        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=64)) as bench:
            with pytest.raises(Stopped) as stopped:
                async for _ in run_calls(bench.scheduler, prompts(100_000)):
                    pass
            assert [stop.reason for stop in stopped.value.stops] == ["patience"]
            return asyncio.get_running_loop().time()

    ended = run_virtually(main())
    assert 590 <= ended <= 620
    in_vain = len([at for at, _ in provider.arrivals if at > 1])
    assert in_vain <= 64 * 20
    assert len([at for at, _ in provider.arrivals if at > 300]) <= 100


def test_one_pause_cuts_nothing(tmp_path: Path) -> None:
    refused = Fault("rate_limited", "429", "throttle", 429, retry_after_s=5.0)
    provider = ScriptedProvider(lambda prompt, at: refused if 10 <= at < 10.05 else None, latency_s=0.1)
    cuts: list[Event] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", rpm=600, concurrency=16)) as bench:
            bench.events.subscribe(lambda event: cuts.append(event) if event.kind == "cut" else None)
            async for _ in run_calls(bench.scheduler, prompts(400)):
                pass

    run_virtually(main())
    assert cuts == []
