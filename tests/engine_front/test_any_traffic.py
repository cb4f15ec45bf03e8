"""Runs and asks drawn from a seed, before a server that fails by chance, in virtual time: what must hold in any case.

One seed again: MILLSTREAM_TRAFFIC with its number.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from random import Random

import pytest
from chat_server import COST, MODEL, PRICE, Asked, ChatServer, Step, cut, held, settings_for, sound, status, text_to
from virtual_time import run_with_sockets

import millstream as ms

ONE = os.environ.get("MILLSTREAM_TRAFFIC")
SEEDS = [int(ONE)] if ONE else range(10)
FAULTS: tuple[Step, ...] = (
    status(500),
    status(503),
    status(504),
    status(422),
    status(429, "busy"),
    status(429, "busy", "retry-after-ms: 2500"),
    cut(0),
    cut(60),
    cut(-1),
    held(asyncio.Event()),
)


class Rows:
    """A sink, with the tags of what was flushed."""

    fault: ms.LocalFault | None = None

    def __init__(self) -> None:
        self.taken: list[object] = []
        self.safe: set[object] = set()

    def write(self, outcome: ms.Outcome) -> None:
        self.taken.append(outcome.call.tag)

    def flush(self) -> None:
        self.safe.update(self.taken)


class Traffic:
    """Some minutes of runs and asks. Callers leave only calls that nobody else asks for."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.lane = ms.Lane(
            MODEL,
            concurrency=self.chance.choice([1, 3, 16]),
            rpm=self.chance.choice([None, 60, 300]),
            timeout_s=30.0,
        )
        self.share = self.chance.choice([0.0, 0.1, 0.4])
        self.seen: list[ms.Outcome] = []
        self.wanted = 0
        self.engine: ms.Engine | None = None
        self.peak = 0

    def step(self, asked: Asked) -> Step | None:
        fault = self.chance.choice(FAULTS) if self.chance.random() < self.share else None
        latency_s = self.chance.uniform(0.0, 2.0)
        # The server sees late that a client has left, so it can't count how many calls are out.
        assert self.engine is not None
        self.peak = max(self.peak, self.engine.statistics().in_flight)

        async def late(asked: Asked) -> bool:
            await asyncio.sleep(latency_s)
            return await (fault or sound)(asked)

        return late

    async def calls(self, prompts: list[str]) -> AsyncIterator[ms.Call]:
        for number, prompt in enumerate(prompts):
            if self.chance.random() < 0.1:
                await asyncio.sleep(self.chance.uniform(0.0, 5.0))
            yield ms.Call(MODEL, prompt, max_tokens=20, tag=number)

    async def whole_run(self, engine: ms.Engine) -> None:
        """A run to its end, over prompts that others ask for too."""
        sink, prompts = Rows(), [f"shared {self.chance.randrange(30)}" for _ in range(30)]
        self.wanted += len(prompts)
        tags = []
        async for outcome in engine.run(self.calls(prompts), sink):
            assert outcome.call.tag in sink.safe
            tags.append(outcome.call.tag)
            self.seen.append(outcome)
            if self.chance.random() < 0.1:
                await asyncio.sleep(self.chance.uniform(0.0, 5.0))
        assert sorted(tags) == [*range(len(prompts))] and Counter(sink.taken) == Counter(tags)

    async def left_run(self, engine: ms.Engine) -> None:
        """A run that is closed after some outcomes."""
        name, most = self.chance.random(), self.chance.randrange(1, 8)
        prompts = [f"left {name} {number}" for number in range(20)]
        async with aclosing(engine.run(self.calls(prompts))) as outcomes:
            async for outcome in outcomes:
                self.seen.append(outcome)
                self.wanted += 1
                most -= 1
                if not most:
                    return

    async def asks(self, engine: ms.Engine) -> None:
        """Ten calls, of which some are cancelled."""

        async def ask(number: int) -> None:
            is_left = self.chance.random() < 0.4
            prompt = f"own {self.chance.random()}" if is_left else f"shared {self.chance.randrange(30)}"
            await asyncio.sleep(self.chance.uniform(0.0, 20.0))
            task = asyncio.create_task(engine.ask(ms.Call(MODEL, prompt, max_tokens=20, tag=number)))
            if is_left:
                await asyncio.sleep(self.chance.uniform(0.0, 4.0))
                task.cancel()
            with suppress(asyncio.CancelledError):
                outcome = await task
                assert outcome.call.tag == number
                self.seen.append(outcome)
                self.wanted += 1
                return
            assert is_left, "a caller that nobody cancelled was"

        await asyncio.gather(*map(ask, range(10)))

    def check(self, server: ChatServer, statistics: ms.Statistics) -> None:
        assert (statistics.in_flight, statistics.reserved, statistics.lanes[0].queued) == (0, 0.0, 0)
        assert len(self.seen) == self.wanted
        assert 1 <= self.peak <= self.lane.in_flight_most
        times = [asked.at for asked in server.asked]
        worst = max(sum(at <= other < at + 60.0 for other in times) for at in times)
        assert self.lane.rpm is None or worst <= self.lane.rpm
        answered, sent = Counter[str](), Counter[str]()
        for outcome in self.seen:
            assert (outcome.reply is None) != (outcome.failure is None)
            prompt = str(outcome.call.input)
            sent[prompt] += outcome.attempts
            if outcome.reply is not None:
                assert outcome.reply.text == text_to(prompt)
                answered[prompt] += not outcome.cached
            assert outcome.maybe_billed <= 3 and outcome.attempts <= 60
        # An answer is paid for once, and what an outcome says of its attempts is what the server saw.
        assert not answered or max(answered.values()) == 1
        for prompt, count in sent.items():
            assert prompt.startswith("own") or server.counts()[prompt] == count
        paid = sum(outcome.cost or 0.0 for outcome in self.seen)
        assert paid == pytest.approx(COST * sum(answered.values())) and statistics.spent >= paid - 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_comes_each_call_ends_once_and_nothing_is_left(seed: int, tmp_path: Path) -> None:
    traffic = Traffic(seed)

    async def main() -> None:
        tasks = asyncio.all_tasks()
        async with ChatServer(traffic.step) as server:
            made = settings_for(
                server.base_url, tmp_path, traffic.lane, policy=ms.RetryPolicy(), prices={MODEL: PRICE}, max_cost=1e7
            )
            async with ms.Engine(settings=made) as engine:
                traffic.engine = engine
                kinds: list[Callable[[ms.Engine], Awaitable[None]]] = [
                    traffic.whole_run,
                    traffic.whole_run,
                    traffic.left_run,
                    traffic.asks,
                ]
                await asyncio.gather(*(kind(engine) for kind in kinds))
                traffic.check(server, engine.statistics())
            # What was answered is stored.
            prompts = {str(outcome.call.input) for outcome in traffic.seen if outcome.reply is not None}
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path, mode="strict")) as engine:
                again = [outcome async for outcome in engine.run(ms.Call(MODEL, p, max_tokens=20) for p in prompts)]
            assert all(outcome.cached for outcome in again) and len(again) == len(prompts)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks

    try:
        run_with_sockets(main())
    except BaseException as error:
        error.add_note(f"the same again: MILLSTREAM_TRAFFIC={seed}")
        raise
