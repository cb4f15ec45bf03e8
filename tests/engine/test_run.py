"""One run over many calls: lanes that share an iterator, the order of writes, every way to end, and its memory."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from scripted import ListSink, ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import LocalFault, Stopped
from millstream.engine.lane import Lane
from millstream.engine.run import LOOK_AHEAD, OUTLET_SIZE, run_calls
from millstream.engine.store.cache import Cache

M = "script/m"
SERVER_ERROR = Fault("server_error", "500", "retry", 500)
EMPTY_ACCOUNT = Fault("rate_limited", "insufficient_quota", "stop", 429)


# One iterator, several lanes


def mixed(count: int, *models: str) -> Iterator[Call]:
    return (Call(models[number % len(models)], f"prompt {number}") for number in range(count))


def test_a_slow_lane_blocks_another_only_at_the_look_ahead(tmp_path: Path) -> None:
    slow, quick = ScriptedProvider(latency_s=1000.0), ScriptedProvider(latency_s=0.01)

    async def main() -> None:
        lanes = (Lane("script/slow", concurrency=2), Lane("script/quick", concurrency=4))
        async with engine_over({"script/slow": slow, "script/quick": quick}, tmp_path, *lanes) as bench:
            async for _ in run_calls(bench.scheduler, mixed(2000, "script/slow", "script/quick")):
                if asyncio.get_running_loop().time() > 900:
                    break

    run_virtually(main())
    early = [at for at, _ in quick.arrivals if at < 900]
    assert LOOK_AHEAD <= len(early) <= LOOK_AHEAD + 8


def test_a_stopped_lane_does_not_block_another(tmp_path: Path) -> None:
    dead, quick = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT), ScriptedProvider(latency_s=0.01)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/dead": dead, "script/quick": quick}, tmp_path) as bench:
            with pytest.raises(Stopped, match="insufficient_quota") as stopped:
                async for outcome in run_calls(bench.scheduler, mixed(4000, "script/dead", "script/quick")):
                    found.append(outcome)
            assert [stop.lane for stop in stopped.value.stops] == ["script/dead"]

    run_virtually(main())
    assert len(found) == 2000 and all(outcome.call.model == "script/quick" for outcome in found)
    assert len(dead.arrivals) <= 8


def test_the_calls_of_one_lane_are_found_behind_those_of_another_that_stopped_at_once(tmp_path: Path) -> None:
    dead, quick = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT), ScriptedProvider()
    found: list[Outcome] = []

    async def main() -> None:
        calls = [*prompts(20_000, "script/dead"), *prompts(500, "script/quick")]
        ways: list[Iterable[Call] | AsyncIterable[Call]] = [calls, slowly(iter(calls), 0.0)]
        for number, given in enumerate(ways):
            async with engine_over({"script/dead": dead, "script/quick": quick}, tmp_path / str(number)) as bench:
                with pytest.raises(Stopped) as stopped:
                    async for outcome in run_calls(bench.scheduler, given):
                        found.append(outcome)
                assert [stop.lane for stop in stopped.value.stops] == ["script/dead"]

    run_virtually(main())
    assert len(found) == 1000 and all(outcome.reply is not None for outcome in found)


def test_an_endless_iterator_of_a_stopped_lane_ends_the_run_too(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT)
    call = Call(M, "a")

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=2)) as bench:
            with pytest.raises(Stopped):
                async for _ in run_calls(bench.scheduler, iter(lambda: call, None)):
                    pass

    run_virtually(main())


async def slowly(calls: Iterator[Call], pause_s: float = 0.01) -> AsyncIterator[Call]:
    for call in calls:
        await asyncio.sleep(pause_s)
        yield call


async def unbroken(calls: Iterable[Call]) -> AsyncIterator[Call]:
    """An async iterator that never lets the loop go on by itself."""
    for call in calls:
        yield call


@pytest.mark.timeout(60)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("lives", ["nobody", "another"])
def test_endless_calls_of_a_stopped_lane_never_hold_up_the_loop(tmp_path: Path, lives: str, is_async: bool) -> None:
    dead, quick = ScriptedProvider(lambda prompt, at: EMPTY_ACCOUNT, latency_s=0.01), ScriptedProvider()
    first = [Call("script/quick", "first")] if lives == "another" else []
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async def main() -> None:
        heart = asyncio.create_task(beat())
        async with engine_over({"script/dead": dead, "script/quick": quick}, tmp_path) as bench:
            calls = itertools.chain(first, (Call("script/dead", f"prompt {number}") for number in itertools.count()))
            with contextlib.suppress(TimeoutError, Stopped):
                async with asyncio.timeout(1.0):
                    async for _ in run_calls(bench.scheduler, unbroken(calls) if is_async else calls):
                        pass
        heart.cancel()

    asyncio.run(main())
    # A loop that is held up beats once or never; a busy machine takes some of its hundred beats.
    assert beats >= 8, "the loop stood still"


def test_an_async_iterable_is_read_lazily_by_all_lanes(tmp_path: Path) -> None:
    providers = {"script/a": ScriptedProvider(latency_s=0.5), "script/b": ScriptedProvider(latency_s=0.01)}

    async def main() -> list[Outcome]:
        async with engine_over(providers, tmp_path) as bench:
            results = run_calls(bench.scheduler, slowly(mixed(500, "script/a", "script/b", "script/b")))
            return [outcome async for outcome in results]

    found = run_virtually(main())
    assert sorted(int(str(o.call.input).split()[1]) for o in found) == list(range(500))


def test_no_calls_are_a_finished_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with engine_over({M: ScriptedProvider()}, tmp_path) as bench:
            assert [outcome async for outcome in run_calls(bench.scheduler, [])] == []
            assert [outcome async for outcome in run_calls(bench.scheduler, slowly(iter([])))] == []

    run_virtually(main())


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("after", [0, 1, 30])
def test_an_iterator_that_raises_ends_the_run_with_its_error_and_loses_nothing_that_was_sent(
    after: int, is_async: bool, tmp_path: Path
) -> None:
    provider = ScriptedProvider(latency_s=5.0)
    found: list[Outcome] = []
    sink = ListSink()

    def broken() -> Iterator[Call]:
        yield from prompts(after)
        raise RuntimeError("the caller's own mistake")

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=64)) as bench:
            calls = slowly(broken()) if is_async else broken()
            with pytest.raises(RuntimeError, match="the caller's own mistake"):
                async for outcome in run_calls(bench.scheduler, calls, sink):
                    found.append(outcome)
            assert bench.lane(M).in_flight == provider.in_flight == 0

    run_virtually(main())
    assert len(found) == len(sink.safe) == len(provider.arrivals) == after


def test_a_consumer_that_stops_early_leaves_nothing_in_flight(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: random.uniform(0.1, 20))

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=6000, concurrency=50)) as bench:
            results = run_calls(bench.scheduler, prompts(10**9))
            async for _ in results:
                break
            await results.aclose()
            assert bench.lane(M).in_flight == provider.in_flight == 0
            assert len(asyncio.all_tasks()) == 1
            sends = len(provider.arrivals)
            await asyncio.sleep(100)
            assert len(provider.arrivals) == sends

    run_virtually(main())


def test_a_slow_consumer_bounds_how_far_the_iterator_is_read(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.01)
    read = 0

    def counted() -> Iterator[Call]:
        nonlocal read
        for call in prompts(100_000):
            read += 1
            yield call

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=16)) as bench:
            results = run_calls(bench.scheduler, counted())
            for taken in range(1, 4):
                await anext(results)
                await asyncio.sleep(1000)
                assert read <= taken * (OUTLET_SIZE + 16 + 1)
            await results.aclose()

    run_virtually(main())
    assert read > OUTLET_SIZE


def test_a_fast_consumer_sees_each_outcome_as_it_comes(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: 1.0)

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            seen = 0
            async for _ in run_calls(bench.scheduler, prompts(20)):
                seen += 1
                assert asyncio.get_running_loop().time() == pytest.approx(seen, abs=0.1)

    run_virtually(main())


# Order, ends


def test_an_answer_is_committed_then_written_then_its_slot_is_freed_then_seen(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    written: list[tuple[bool, int]] = []

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1)) as bench:
            committed = Cache(tmp_path)  # sees commits alone, not what the other cache still holds

            def probe(outcome: Outcome) -> None:
                is_committed = committed.get(bytes.fromhex(outcome.key)) is not None
                written.append((is_committed, bench.lane(M).in_flight))

            sink = ListSink(probe)
            async for outcome in run_calls(bench.scheduler, prompts(30), sink):
                assert outcome in sink.safe
            committed.close()

    run_virtually(main())
    assert written == [(True, 1)] * 30


def test_cached_outcomes_are_safe_before_a_slow_consumer_sees_them(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    # Every seventh is new: who brings it in goes on with stored ones while the consumer is still looking.
    calls = [Call(M, f"prompt {number if number % 7 == 0 else number % 300}", tag=number) for number in range(3000)]

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            async for _ in run_calls(bench.scheduler, calls[:300]):
                pass
            sink = ListSink()
            seen = 0
            async for outcome in run_calls(bench.scheduler, calls, sink):
                assert any(outcome is one for one in sink.safe)
                seen += 1
                await asyncio.sleep(0.01)
            assert seen == 3000

    run_virtually(main())


def test_a_sink_that_is_full_stops_sending_and_keeps_what_was_in_flight(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=lambda: random.uniform(1, 3))
    found: list[Outcome] = []
    sink = ListSink()

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=20)) as bench:
            with pytest.raises(LocalFault, match="disk full"):
                async for outcome in run_calls(bench.scheduler, prompts(10_000), sink):
                    found.append(outcome)
                    if len(found) == 50:
                        sink.fault = LocalFault("disk full")

    run_virtually(main())
    assert len(found) == len(sink.safe) == len(provider.arrivals) <= 50 + 20 + 20


def test_an_interruption_drains_what_is_in_flight_and_leaves_the_rest_pending(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=5.0)
    found: list[Outcome] = []

    async def main() -> float:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=10)) as bench:
            asyncio.get_running_loop().call_later(7, bench.scheduler.halt, "interrupted", "SIGINT")
            with pytest.raises(Stopped) as stopped:
                async for outcome in run_calls(bench.scheduler, prompts(1000)):
                    found.append(outcome)
            assert [stop.reason for stop in stopped.value.stops] == ["interrupted"]
            with pytest.raises(Stopped):
                async for _ in run_calls(bench.scheduler, prompts(1)):
                    pass
            return asyncio.get_running_loop().time()

    assert run_virtually(main()) < 10.5
    assert len(found) == len(provider.arrivals) == 20


def test_an_interruption_after_the_last_call_was_sent_leaves_nothing_pending(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=5.0)

    async def main() -> list[Outcome]:
        # The lane is full, so the iterator's end has not been read.
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=10)) as bench:
            asyncio.get_running_loop().call_later(2, bench.scheduler.halt, "interrupted", "SIGINT")
            return [outcome async for outcome in run_calls(bench.scheduler, prompts(10))]

    assert len(run_virtually(main())) == 10


@pytest.mark.parametrize("first", [0, 3])
def test_an_interruption_does_not_wait_for_a_source_that_is_silent(first: int, tmp_path: Path) -> None:
    async def silent() -> AsyncIterator[Call]:
        for call in prompts(first):
            yield call
        await asyncio.Event().wait()

    async def main() -> int:
        async with engine_over({M: ScriptedProvider()}, tmp_path) as bench:
            asyncio.get_running_loop().call_later(5, bench.scheduler.halt, "interrupted", "SIGINT")
            found = 0
            with pytest.raises(Stopped, match="SIGINT"):
                async for _ in run_calls(bench.scheduler, silent()):
                    found += 1
            return found

    assert run_virtually(main()) == first


def test_backing_off_calls_are_pending_after_an_interruption(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: SERVER_ERROR)

    async def main() -> tuple[int, float]:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=8)) as bench:
            asyncio.get_running_loop().call_later(0.5, bench.scheduler.halt, "interrupted", "SIGINT")
            found = 0
            with pytest.raises(Stopped):
                async for _ in run_calls(bench.scheduler, prompts(100)):
                    found += 1
            return found, asyncio.get_running_loop().time()

    found, ended = run_virtually(main())
    assert found == 0
    assert ended == pytest.approx(0.5, abs=0.2)


# Memory


class Lean(ScriptedProvider):
    """Answers at once and remembers nothing."""

    async def send(self, request: Request, cleared: Cleared) -> Response:
        await asyncio.sleep(0)
        return Response(200, b"ok")


def anonymous_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


@pytest.mark.long
def test_a_hundred_thousand_calls_need_no_more_memory_than_ten_thousand(tmp_path: Path) -> None:
    marks: list[int] = []

    async def main() -> None:
        async with engine_over({M: Lean()}, tmp_path, Lane(M, concurrency=256)) as bench:
            count = 0
            async for _ in run_calls(bench.scheduler, prompts(100_000)):
                count += 1
                if count % 10_000 == 0:
                    marks.append(anonymous_kib())

    asyncio.run(main())
    assert len(marks) == 10
    assert marks[-1] <= marks[0] * 1.1
