"""Answers that arrive together are taken in turns of the loop, so that a burst of calls spreads out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from scripted import Bench, ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.call import Outcome, Reply
from millstream.engine.endpoint import Attempt, Fault, Receiver, Request, Response
from millstream.engine.lane import Lane
from millstream.engine.shared_calls import LANDED_MOST

M = "script/m"
COUNT = 3 * LANDED_MOST + 4


class Ended:
    """An attempt whose answer has arrived."""

    def abort(self) -> None:
        pass


class Together(ScriptedProvider):
    """Answers all calls at the same moment, when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Receiver] = []
        self.taken = 0

    def begin(self, request: Request, receiver: Receiver) -> Attempt:
        receiver.clear()
        self.asked.append(receiver)
        return Ended()

    def decode(self, response: Response) -> Reply | Fault:
        self.taken += 1
        return super().decode(response)

    def answer(self) -> None:
        for receiver in self.asked:
            receiver.received(Response(200, b"answer"))


def in_a_burst(
    folder: Path, then: Callable[[Together, Bench, list[asyncio.Task[Outcome]]], Awaitable[None]]
) -> Together:
    """Begins the calls, answers them all, and goes on with `then` in the same turn of the loop."""
    provider = Together()

    async def main() -> None:
        async with engine_over({M: provider}, folder, Lane(M, rpm=6_000_000, concurrency=COUNT)) as bench:
            asks = [asyncio.create_task(bench.scheduler.ask(call)) for call in prompts(COUNT, M)]
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(provider.asked) == COUNT
            provider.answer()
            await then(provider, bench, asks)

    run_virtually(main())
    return provider


def test_a_turn_of_the_loop_takes_a_few_of_the_answers_that_arrived_together(tmp_path: Path) -> None:
    taken: list[int] = []

    async def then(provider: Together, bench: Bench, asks: list[asyncio.Task[Outcome]]) -> None:
        while not taken or taken[-1] < COUNT:
            taken.append(provider.taken)
            await asyncio.sleep(0)
        assert all([(await ask).reply for ask in asks])

    in_a_burst(tmp_path, then)
    assert [*dict.fromkeys(taken)] == [LANDED_MOST, 2 * LANDED_MOST, 3 * LANDED_MOST, COUNT]


def test_a_call_that_is_cancelled_while_its_answer_waits_for_its_turn_may_have_been_billed(tmp_path: Path) -> None:
    async def then(provider: Together, bench: Bench, asks: list[asyncio.Task[Outcome]]) -> None:
        asks[-1].cancel()
        ends = await asyncio.gather(*asks, return_exceptions=True)
        assert isinstance(ends[-1], asyncio.CancelledError)
        assert all(isinstance(end, Outcome) and end.reply for end in ends[:-1])
        assert bench.scheduler.maybe_billed_pending == 1 and bench.scheduler.out == 0
        assert bench.lane(M).in_flight == 0

    assert in_a_burst(tmp_path, then).taken == COUNT - 1


def test_an_engine_that_closes_keeps_the_answers_that_wait_for_their_turn(tmp_path: Path) -> None:
    async def then(provider: Together, bench: Bench, asks: list[asyncio.Task[Outcome]]) -> None:
        await bench.scheduler.end()
        assert bench.scheduler.cache.statistics().entries == COUNT
        await asyncio.gather(*asks, return_exceptions=True)

    assert in_a_burst(tmp_path, then).taken == COUNT
