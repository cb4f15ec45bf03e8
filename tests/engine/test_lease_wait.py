"""Two engines on one cache: one sends a call, the other waits for its answer, and no wait outlasts its reason."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec import structs
from payers import ScriptedPayer
from scripted import Bench, ListSink, ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.attempts.prices import Price
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome
from millstream.engine.call_lookup import PendingCall
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stopped
from millstream.engine.limits import Tokens
from millstream.engine.run import run_calls
from millstream.engine.shared_calls import Waiter

M = "script/m"
SAME = Call(M, "same")
REJECTED = Fault("rejected", "400 bad request", "never", 400)


async def engines(
    stack: AsyncExitStack, folder: Path, provider: ScriptedProvider, count: int = 2, **options: object
) -> list[Bench]:
    """Several engines on one cache, as several processes have them."""
    return [
        await stack.enter_async_context(engine_over({M: provider}, folder, **options))  # type: ignore[arg-type]
        for _ in range(count)
    ]


async def begun(bench: Bench, call: Call = SAME) -> asyncio.Task[Outcome]:
    """A call that is under way: its first attempt is out, or it waits."""
    task = asyncio.create_task(bench.scheduler.ask(call))
    await asyncio.sleep(0.001)
    return task


@pytest.mark.parametrize("seed", range(5))
def test_three_engines_over_one_grid_pay_once_for_each_prompt(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    provider = ScriptedProvider(latency_s=lambda: chance.uniform(0.01, 3.0))
    calls = [Call(M, f"prompt {number}") for number in range(200)]

    async def main() -> list[list[Outcome]]:
        async def all_of(bench: Bench) -> list[Outcome]:
            return [outcome async for outcome in run_calls(bench.scheduler, iter(calls))]

        async with AsyncExitStack() as stack:
            benches = await engines(stack, tmp_path, provider, 3)
            return await asyncio.gather(*map(all_of, benches))

    runs = run_virtually(main())
    assert set(provider.counts().values()) == {1} and len(provider.arrivals) == 200
    for run in runs:
        found = {outcome.call.input: outcome.reply.text for outcome in run if outcome.reply is not None}
        assert found == {call.input: f"answer to {call.input}" for call in calls}
    # Of the three outcomes of each prompt one was sent; the others come from the cache.
    assert sum(outcome.attempts for run in runs for outcome in run) == 200
    assert sum(outcome.cached for run in runs for outcome in run) == 400


def test_who_waits_gets_the_answer_for_nothing_and_has_it_in_its_journal(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=10.0)
    sink = ListSink()

    async def main() -> tuple[Outcome, float]:
        async with AsyncExitStack() as stack:
            price = Price(1.0, 1.0)
            first, second = await engines(stack, tmp_path, provider, price=price)
            asked = await begun(first)
            found = await second.scheduler.ask(SAME, sink)
            took_s = asyncio.get_running_loop().time()
            assert (await asked).cost and second.budget.spent == 0.0
            return found, took_s

    found, took_s = run_virtually(main())
    assert len(provider.arrivals) == 1
    assert found.cached and found.attempts == 0 and found.cost == 0.0
    assert sink.safe == [found]
    # The answer is there after 10 s; the longest pause between two looks is half a second.
    assert 10.0 <= took_s <= 10.51


def test_an_answer_stored_between_the_look_up_and_the_lease_is_not_paid_for_again(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    async def main() -> Outcome:
        async with AsyncExitStack() as stack:
            first, second = await engines(stack, tmp_path, provider)
            pending = second.scheduler.look_up(SAME)
            assert isinstance(pending, PendingCall)
            await first.scheduler.ask(SAME)
            return await second.scheduler.fetch(pending, None)

    assert run_virtually(main()).cached
    assert len(provider.arrivals) == 1


def test_an_answer_that_an_engine_stored_between_look_up_and_begin_is_not_paid_for_again_by_itself(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider()

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path) as bench:
            await bench.scheduler.ask(Call(M, "another"))  # from here on it is alone
            pending = bench.scheduler.look_up(SAME)
            assert isinstance(pending, PendingCall)
            await bench.scheduler.ask(SAME)
            return await bench.scheduler.fetch(pending, None)

    assert run_virtually(main()).cached
    assert len(provider.arrivals) == 2


def test_an_answer_of_an_engine_that_came_and_went_since_the_look_up_is_not_paid_for_again(tmp_path: Path) -> None:
    provider = ScriptedProvider()

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path) as bench:
            await bench.scheduler.ask(Call(M, "another"))
            pending = bench.scheduler.look_up(SAME)
            assert isinstance(pending, PendingCall)
            async with engine_over({M: provider}, tmp_path) as other:
                await other.scheduler.ask(SAME)
            return await bench.scheduler.fetch(pending, None)

    assert run_virtually(main()).cached
    assert len(provider.arrivals) == 2


def test_who_waits_has_no_place_no_quota_and_no_money(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=10.0)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            price = Price(1.0, 1.0, output_max=100)
            first, second = await engines(stack, tmp_path, provider, price=price, max_cost=1.0)
            asked, waits = await begun(first), await begun(second)
            await asyncio.sleep(5)
            lane = second.lane(M)
            assert (lane.in_flight, lane.queued) == (0, 0)
            assert lane.used(asyncio.get_running_loop().time()) == (0, Tokens())
            assert second.budget.reserved == 0.0 < first.budget.reserved
            await asked, await waits

    run_virtually(main())


def test_where_the_holders_call_fails_one_of_those_who_wait_sends_it(tmp_path: Path) -> None:
    replies = iter([REJECTED])
    provider = ScriptedProvider(lambda prompt, now: next(replies, None), latency_s=2.0)

    async def main() -> list[Outcome]:
        async with AsyncExitStack() as stack:
            benches = await engines(stack, tmp_path, provider, 4)
            tasks = [await begun(bench) for bench in benches]
            return [await task for task in tasks]

    failed, *others = run_virtually(main())
    assert failed.failure is not None and failed.failure.kind == "rejected"
    assert len(provider.arrivals) == 2
    assert sorted((outcome.cached, outcome.attempts) for outcome in others) == [(False, 1), (True, 0), (True, 0)]


def test_a_holder_that_was_paused_for_longer_than_patience_takes_the_answer_of_who_sent_the_call_too(
    tmp_path: Path,
) -> None:
    replies = iter([Fault("incomplete", "cut", "retry", is_billed_maybe=True)])
    provider = ScriptedProvider(lambda prompt, now: next(replies, None), latency_s=1.0)
    paused, hasty = RetryPolicy(wait_min_s=60.0), RetryPolicy(patience_s=30.0)
    sink = ListSink()

    async def main() -> list[Outcome]:
        async with (
            engine_over({M: provider}, tmp_path, policy=paused) as first,
            engine_over({M: provider}, tmp_path, policy=hasty) as second,
        ):
            asked = asyncio.create_task(first.scheduler.ask(SAME, sink))
            await asyncio.sleep(0.001)
            return [await second.scheduler.ask(SAME), await asked]

    sent, found = run_virtually(main())
    assert len(provider.arrivals) == 2
    assert (sent.cached, sent.attempts) == (False, 1)
    # What it had sent before is still counted.
    assert (found.cached, found.attempts, found.maybe_billed) == (True, 1, 1)
    assert sink.safe == [found]


def test_an_interrupt_and_a_reached_budget_end_the_wait_at_once(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=100.0)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            price = Price(1e4, 1e4, output_max=100)
            first, interrupted, poor = await engines(stack, tmp_path, provider, 3, price=price, max_cost=10.0)
            asked = await begun(first)
            waits = [await begun(interrupted), await begun(poor)]
            await asyncio.sleep(20)
            began = asyncio.get_running_loop().time()
            interrupted.scheduler.halt("interrupted", "by the keyboard")
            poor.lane(M).stop("budget", "nothing is left")
            for task, reason in zip(waits, ("interrupted", "budget"), strict=True):
                with pytest.raises(Stopped) as raised:
                    await task
                assert [stop.reason for stop in raised.value.stops] == [reason]
            assert asyncio.get_running_loop().time() - began < 0.01
            await asked

    run_virtually(main())
    assert len(provider.arrivals) == 1


def test_an_answer_that_is_not_stored_takes_no_lease(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=1.0)

    async def main() -> float:
        async with AsyncExitStack() as stack:
            benches = await engines(stack, tmp_path, provider)
            for bench in benches:
                bench.scheduler.routes.of(M).is_kept = False
            await asyncio.gather(*(bench.scheduler.ask(SAME) for bench in benches))
            return asyncio.get_running_loop().time()

    assert run_virtually(main()) < 1.1
    assert len(provider.arrivals) == 2 and not list(tmp_path.glob("leases*"))


def test_trials_of_one_prompt_wait_for_nobody(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=1.0)

    async def main() -> float:
        async with AsyncExitStack() as stack:
            benches = await engines(stack, tmp_path, provider)
            calls = [structs.replace(SAME, trial=number) for number in range(2)]
            pairs = zip(benches, calls, strict=True)
            await asyncio.gather(*(bench.scheduler.ask(call) for bench, call in pairs))
            return asyncio.get_running_loop().time()

    assert run_virtually(main()) < 1.1
    assert len(provider.arrivals) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_payers_place_is_free_while_its_call_waits_and_taken_for_a_call_that_is_sent(
    tmp_path: Path, fails: bool
) -> None:
    replies = iter([REJECTED] if fails else [])
    provider = ScriptedProvider(lambda prompt, now: next(replies, None), latency_s=10.0)
    payer = ScriptedPayer()

    async def main() -> Outcome:
        async with AsyncExitStack() as stack:
            first, second = await engines(stack, tmp_path, provider)
            asked = await begun(first)
            pending = second.scheduler.look_up(SAME)
            assert isinstance(pending, PendingCall)
            pending.payer = payer
            waiter = Waiter(pending, is_early=True)
            second.scheduler.begin(waiter)
            await asyncio.sleep(5)
            assert (payer.granted, payer.places) == (0, 0)
            await asyncio.sleep(8)
            assert payer.places == int(fails)
            await asked
            return await waiter.outcome()

    found = run_virtually(main())
    assert found.cached is not fails
    assert payer.granted == int(fails) and payer.places == 0
    assert len(provider.arrivals) == 1 + int(fails)
