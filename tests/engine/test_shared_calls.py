"""Identical calls of several payers: one is sent, whoever can pay for it, and nobody waits at another's expense."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from pathlib import Path

from payers import ScriptedPayer
from scripted import Bench, ListSink, ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.call import Call, Outcome
from millstream.engine.call_lookup import PendingCall
from millstream.engine.endpoint import Fault
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls
from millstream.engine.shared_calls import Waiter

M = "script/m"
REFUSED = Fault("rejected", "400", "never", 400)


def waiting(bench: Bench, payer: ScriptedPayer, prompt: str = "same") -> Waiter:
    """Begins or joins a call at this payer's expense, as the gateway does."""
    pending = bench.scheduler.look_up(Call(M, prompt))
    assert isinstance(pending, PendingCall)
    pending.payer = payer
    waiter = Waiter(pending, is_early=True)
    bench.scheduler.begin(waiter)
    return waiter


async def text_of(waiter: Waiter) -> str:
    reply = (await waiter.outcome()).reply
    assert reply is not None
    return reply.text


def test_a_call_that_two_payers_let_wait_is_sent_when_the_first_of_them_grants_it(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=1.0)
    slow, quick = ScriptedPayer("slow", waits_s=2.0), ScriptedPayer("quick", waits_s=1.5)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            waiters = [waiting(bench, payer) for payer in (slow, slow, quick)]
            await asyncio.sleep(0.1)
            assert (slow.granted, quick.granted, bench.lane(M).in_flight, bench.scheduler.under_way) == (0, 0, 0, 1)
            await asyncio.sleep(2.0)
            assert (slow.granted, quick.granted, bench.lane(M).in_flight, bench.scheduler.under_way) == (0, 1, 1, 1)
            assert await asyncio.gather(*map(text_of, waiters)) == ["answer to same"] * 3

    run_virtually(main())
    assert (len(provider.arrivals), slow.paid, quick.paid) == (1, 0, 1)
    assert slow.places == quick.places == 0


def test_an_answer_that_was_stored_while_a_payer_let_its_call_wait_is_not_paid_for_again(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    slow, quick = ScriptedPayer("slow", waits_s=9.0), ScriptedPayer("quick")

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            late, early = waiting(bench, slow), waiting(bench, quick)
            assert await text_of(early) == await text_of(late) == "answer to same"

    run_virtually(main())
    assert (len(provider.arrivals), slow.paid, quick.paid) == (1, 0, 1)


def test_a_payer_that_grants_nothing_in_the_end_takes_nothing_of_the_lanes_quota(tmp_path: Path) -> None:
    provider, payer = ScriptedProvider(), ScriptedPayer(lost=3)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=6000, concurrency=1)) as bench:
            assert await text_of(waiting(bench, payer)) == "answer to same"
            await bench.scheduler.end()
            requests, _ = bench.lane(M).used(asyncio.get_running_loop().time())
            assert (requests, bench.lane(M).in_flight, payer.granted, payer.places) == (1, 0, 1, 0)

    run_virtually(main())
    assert len(provider.arrivals) == 1


def test_calls_that_wait_for_their_payer_are_not_looked_at_again_for_each_call_of_another(tmp_path: Path) -> None:
    slow, quick = ScriptedPayer("slow", waits_s=1e6), ScriptedPayer("quick", most=50)

    async def main() -> None:
        async with engine_over({M: ScriptedProvider()}, tmp_path, Lane(M, concurrency=4)) as bench:
            waiters = [waiting(bench, slow, f"slow {number}") for number in range(100)]
            before = slow.asked
            await asyncio.gather(*(text_of(waiting(bench, quick, f"quick {number}")) for number in range(4)))
            for number in range(40):
                await text_of(waiting(bench, quick, f"next {number}"))
            assert slow.asked - before <= 4 and bench.lane(M).queued == 100
            for waiter in waiters:
                waiter.leave()
            assert bench.lane(M).queued == 0

    run_virtually(main())


WHO: ContextVar[str] = ContextVar("who", default="nobody")


def test_an_attempt_is_begun_in_the_context_of_who_asked_whoever_made_room_for_it(tmp_path: Path) -> None:
    seen: list[str] = []

    def script(prompt: str, at: float) -> None:
        seen.append(f"{prompt} by {WHO.get()}")

    async def ask(bench: Bench, who: str) -> None:
        WHO.set(who)
        await bench.scheduler.ask(Call(M, f"call of {who}"))

    async def main() -> None:
        async with engine_over({M: ScriptedProvider(script)}, tmp_path, Lane(M, concurrency=1)) as bench:
            await asyncio.gather(*(asyncio.create_task(ask(bench, who)) for who in ("ann", "bob", "eve")))

    run_virtually(main())
    assert seen == [f"call of {who} by {who}" for who in ("ann", "bob", "eve")]


def test_a_sink_is_called_in_the_context_of_who_asked_whoevers_answer_comes_last(tmp_path: Path) -> None:
    seen: set[str] = set()

    class Noting(ListSink):
        def write(self, outcome: Outcome) -> None:
            seen.add(f"{outcome.call.input} is written by {WHO.get()}")

        def flush(self) -> None:
            seen.add(f"flushed by {WHO.get()}")

    async def ask(bench: Bench, who: str) -> None:
        WHO.set(who)
        # One answer is stored, one fails at once, one is asked for by two.
        for prompt in (f"call of {who}", f"bad call of {who}"):
            await bench.scheduler.ask(Call(M, prompt), Noting())
        async for _ in run_calls(bench.scheduler, [Call(M, "of both", tag=who)], Noting()):
            pass

    async def main() -> None:
        provider = ScriptedProvider(lambda prompt, at: REFUSED if prompt.startswith("bad") else None)
        async with engine_over({M: provider}, tmp_path, Lane(M)) as bench:
            await asyncio.gather(*(asyncio.create_task(ask(bench, who)) for who in ("ann", "bob")))

    run_virtually(main())
    each = {f"{what} of {who} is written by {who}" for what in ("call", "bad call") for who in ("ann", "bob")}
    both = {f"of both is written by {who}" for who in ("ann", "bob")}
    assert seen == {*each, *both, "flushed by ann", "flushed by bob"}


def test_an_engine_says_which_call_waits_longest_where_and_since_when(tmp_path: Path) -> None:
    said: list[str] = []

    async def main() -> None:
        async with engine_over({M: ScriptedProvider(latency_s=9.0)}, tmp_path, Lane(M, concurrency=1)) as bench:
            said.append(repr(bench.scheduler))
            asked = [asyncio.create_task(bench.scheduler.ask(Call(M, "same"))) for _ in range(2)]
            await asyncio.sleep(2.0)
            other = asyncio.create_task(bench.scheduler.ask(Call(M, "other")))
            await asyncio.sleep(1.5)
            said.append(repr(bench.scheduler))
            await asyncio.wait(asked)
            await asyncio.sleep(1.0)
            said.append(repr(bench.scheduler))
            await other

    run_virtually(main())
    idle, first, then = said
    assert "0 calls under way" in idle and "waits longest: nothing" in idle
    assert "2 calls under way, 1 in flight" in first and f"to {M} [sent for 3.5 s, attempt 1, 2 waiting]" in first
    assert "1 calls under way, 1 in flight" in then and f"to {M} [sent for 1.0 s, attempt 1, 1 waiting]" in then
