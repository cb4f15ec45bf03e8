"""One run over many calls: lanes that share an iterator, the order of writes, every way to end, and its memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls

M = "script/m"
EMPTY_ACCOUNT = Fault("rate_limited", "insufficient_quota", "stop", 429)


# One iterator, several lanes


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


# Order, ends


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


# Memory


class Lean(ScriptedProvider):
    """Answers at once and remembers nothing."""

    async def send(self, request: Request, cleared: Cleared) -> Response:
        await asyncio.sleep(0)
        return Response(200, b"ok")


def anonymous_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


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
