"""Two engines on one cache: one sends a call, the other waits for its answer, and no wait outlasts its reason."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from payers import ScriptedPayer
from scripted import Bench, ListSink, ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome
from millstream.engine.call_lookup import PendingCall
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stopped
from millstream.engine.prices import Price
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
