"""What a run shares with other callers, what ends it from within, and what each of its calls makes."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from scripted import ListSink, ScriptedProvider, engine_over, prompts
from virtual_time import VirtualLoop, run_virtually

from millstream.engine.attempts.prices import Price
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls

M = "script/m"
BAD_REQUEST = Fault("rejected", "400", "never", 400)


async def unbroken(calls: Iterable[Call]) -> AsyncIterator[Call]:
    """An async iterator that never lets the loop go on by itself."""
    for call in calls:
        yield call


# Shared calls, and ends from within


def test_a_run_that_is_left_takes_nothing_from_those_who_wait_for_the_same_calls(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=5.0)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            results = run_calls(bench.scheduler, prompts(8))
            first = asyncio.create_task(anext(results))
            await asyncio.sleep(1.0)
            joined = asyncio.create_task(bench.scheduler.ask(Call(M, "prompt 3")))
            await asyncio.sleep(1.0)
            first.cancel()
            await asyncio.wait([first])
            assert first.cancelled() and bench.lane(M).in_flight == bench.scheduler.under_way == 1
            outcome = await joined
            assert outcome.reply is not None and outcome.reply.text == "answer to prompt 3" and outcome.cached

    run_virtually(main())
    assert len(provider.arrivals) == 8


def test_a_run_that_joins_calls_of_another_pays_nothing_and_has_them_in_its_own_sink(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: BAD_REQUEST if prompt == "prompt 5" else None)
    sinks = [ListSink(), ListSink()]

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, price=Price(1.0, 1.0)) as bench:
            kinds: list[str] = []
            bench.events.subscribe(lambda event: kinds.append(event.kind))

            async def over(sink: ListSink) -> list[Outcome]:
                return [outcome async for outcome in run_calls(bench.scheduler, prompts(20), sink)]

            for outcomes, sink in zip(await asyncio.gather(*map(over, sinks)), sinks, strict=True):
                assert len(outcomes) == 20 and {id(one) for one in outcomes} == {id(one) for one in sink.safe}
            paid = [outcome.cost for sink in sinks for outcome in sink.safe if outcome.cost]
            assert len(paid) == 19
            assert kinds.count("sent") == 20 and kinds.count("cached") == 19
            assert kinds.count("failed") == kinds.count("unsent") == 1

    run_virtually(main())
    assert len(provider.arrivals) == 20


@pytest.mark.parametrize("where", ["cached", "sent", "joined"])
def test_a_sink_that_raises_ends_its_run_alone_after_what_is_in_flight(where: str, tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: random.uniform(1, 3))

    def probe(outcome: Outcome) -> None:
        if outcome.call.input == "prompt 4":
            raise OSError("no such table")

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            if where == "cached":
                await bench.scheduler.ask(Call(M, "prompt 4"))
            other = asyncio.create_task(bench.scheduler.ask(Call(M, "prompt 4"))) if where == "joined" else None
            await asyncio.sleep(0.1)
            found, sink = list[Outcome](), ListSink(probe)
            with pytest.raises(OSError, match="no such table"):
                async for outcome in run_calls(bench.scheduler, prompts(1000), sink):
                    found.append(outcome)
            assert found == sink.safe and len(found) < 30
            assert bench.lane(M).in_flight == 0
            if other is not None:
                assert (await other).reply is not None

    run_virtually(main())


@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_no_call_is_named_when_the_calls_before_it_are_answered(is_async: bool, tmp_path: Path) -> None:
    provider = ScriptedProvider()
    mixed: list[Call] = [*prompts(5), "prompt 5", *prompts(5)]  # type: ignore[list-item]

    async def main() -> list[Outcome]:
        found: list[Outcome] = []
        async with engine_over({M: provider}, tmp_path) as bench:
            with pytest.raises(TypeError, match="got a str"):
                async for outcome in run_calls(bench.scheduler, unbroken(mixed) if is_async else mixed):
                    found.append(outcome)
        return found

    assert len(run_virtually(main())) == len(provider.arrivals) == 5


@pytest.mark.parametrize("is_async", [False, True])
def test_the_calls_of_a_lane_are_sent_in_their_order(is_async: bool, tmp_path: Path) -> None:
    lanes = [Lane("script/a", concurrency=1), Lane("script/b", concurrency=3)]
    providers = {lane.model: ScriptedProvider(latency_s=lambda: random.uniform(0.1, 2)) for lane in lanes}

    async def main() -> None:
        async with engine_over(providers, tmp_path, *lanes) as bench:
            calls = iter([Call(list(providers)[number % 2], f"prompt {number}") for number in range(400)])
            async for _ in run_calls(bench.scheduler, unbroken(calls) if is_async else calls):
                pass

    run_virtually(main())
    for provider in providers.values():
        sent = [int(prompt.split()[1]) for _, prompt in provider.arrivals]
        assert len(sent) == 200 and sent == sorted(sent)


def test_the_iterator_of_a_run_is_read_in_its_consumers_context_whoever_began_its_calls(tmp_path: Path) -> None:
    whose = ContextVar("whose", default="nobody's")
    read: set[str] = set()

    def calls() -> Iterator[Call]:
        for call in prompts(50):
            read.add(whose.get())
            yield call

    async def main() -> None:
        async with engine_over({M: ScriptedProvider()}, tmp_path, Lane(M, concurrency=2)) as bench:

            async def ask_all() -> None:
                whose.set("another's")
                for call in prompts(50):
                    await bench.scheduler.ask(call)

            other = asyncio.create_task(ask_all())
            await asyncio.sleep(0.05)
            whose.set("the consumer's")
            async for _ in run_calls(bench.scheduler, calls()):
                pass
            await other

    run_virtually(main())
    assert read == {"the consumer's"}


# What a call makes


class CountingLoop(VirtualLoop):
    """Counts the futures and tasks that are made."""

    futures = tasks = 0

    def create_future(self) -> asyncio.Future[Any]:
        self.futures += 1
        return super().create_future()

    def create_task(self, *args: Any, **named: Any) -> asyncio.Task[Any]:
        self.tasks += 1
        return super().create_task(*args, **named)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cached_call_makes_no_task_and_no_future(is_async: bool, tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        async with engine_over({M: ScriptedProvider()}, tmp_path) as bench:
            for _ in range(2):
                loop.futures = loop.tasks = 0
                calls = unbroken(prompts(2000)) if is_async else prompts(2000)
                async for outcome in run_calls(bench.scheduler, calls):
                    cached = outcome.cached
        assert cached and loop.tasks == is_async and loop.futures <= 50

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(main())


def test_what_a_run_is_done_with_does_not_wait_for_the_garbage_collector(tmp_path: Path) -> None:
    async def main() -> int:
        async with engine_over({M: ScriptedProvider()}, tmp_path) as bench:
            async for _ in run_calls(bench.scheduler, prompts(100)):
                pass
            gc.collect()
            gc.disable()
            try:
                async for _ in run_calls(bench.scheduler, (Call(M, f"another {number}") for number in range(500))):
                    pass
                return gc.collect()
            finally:
                gc.enable()

    assert run_virtually(main()) < 500
