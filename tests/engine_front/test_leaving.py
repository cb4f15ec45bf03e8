"""A caller that leaves, wherever its call is: it is free at once, its money is settled, and nothing stays behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from chat_server import (
    MODEL,
    PRICE,
    QUICK,
    Asked,
    ChatServer,
    Step,
    held,
    settings_for,
    sound_and_closed,
    status,
    until,
)
from loops import run_on
from msgspec import structs
from raw_server import RawServer, Visit

import millstream as ms

FIRST, CALL, OTHER, NEXT = (ms.Call(MODEL, prompt, max_tokens=20) for prompt in ("first", "call", "other", "next"))
LANE = ms.Lane(MODEL, concurrency=1)
# More than the buffers of a connection hold.
LARGE = ms.Call(MODEL, "large " * 2_500_000, max_tokens=20)
# Back-off until somebody leaves.
PATIENT = structs.replace(QUICK, wait_min_s=30.0, wait_max_s=30.0, patience_s=60.0)


class Station:
    """Where a call is when its caller leaves. `is_billed`: whether it counts as maybe billed; None: it may, as it was
    about to be written."""

    call = CALL
    is_billed: bool | None = False
    policy = QUICK

    def __init__(self) -> None:
        self.release = asyncio.Event()

    def step(self, asked: Asked) -> Step | None:
        """What the server does with the call, or with another one that stands in its way."""
        return held(self.release)

    @asynccontextmanager
    async def around(self, engine: ms.Engine, server: ChatServer) -> AsyncIterator[None]:
        """What else goes on until the caller has left."""
        yield

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        """Waits until the call has got there."""
        await until(lambda: server.counts()[str(self.call.input)] == 1)


class Beginning(Station):
    """Nothing of it has run, or in a run its worker."""

    is_billed = None

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        pass


class LookUp(Station):
    """It has been looked for in the store, a turn of the loop ago."""

    is_billed = None

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await asyncio.sleep(0)


class Quota(Station):
    """Another call has the lane's only place."""

    @asynccontextmanager
    async def around(self, engine: ms.Engine, server: ChatServer) -> AsyncIterator[None]:
        other = asyncio.create_task(engine.ask(OTHER))
        await until(lambda: server.in_flight == 1)
        yield
        assert (engine.statistics().in_flight, engine.statistics().lanes[0].queued) == (1, 0)
        self.release.set()
        assert (await other).status == "ok"

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await until(lambda: engine.statistics().lanes[0].queued == 1)


class Lease(Station):
    """Another engine on the same cache sends the same call."""

    @asynccontextmanager
    async def around(self, engine: ms.Engine, server: ChatServer) -> AsyncIterator[None]:
        assert engine.settings.cache is not None
        async with ms.Engine(settings=settings_for(server.base_url, engine.settings.cache, LANE)) as elsewhere:
            other = asyncio.create_task(elsewhere.ask(CALL))
            await until(lambda: server.in_flight == 1)
            yield
            assert server.counts()["call"] == 1
            self.release.set()
            assert not (await other).cached

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await asyncio.sleep(0.05)
        assert (engine.statistics().in_flight, engine.statistics().reserved) == (0, 0.0)


class Written(Station):
    """The server does not read what it is sent."""

    call = LARGE
    is_billed = True

    @asynccontextmanager
    async def around(self, engine: ms.Engine, server: ChatServer) -> AsyncIterator[None]:
        server.ear.clear()
        yield
        server.ear.set()

    def step(self, asked: Asked) -> Step | None:
        return sound_and_closed

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await until(lambda: engine.statistics().in_flight == 1)
        await asyncio.sleep(0.1)


class Headers(Station):
    """Nothing of the answer has come."""

    is_billed = True


class Body(Station):
    """Half of the answer has come."""

    is_billed = True

    def step(self, asked: Asked) -> Step | None:
        return held(self.release, sent=150)

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await super().reached(engine, server)
        await asyncio.sleep(0.02)


class BackOff(Station):
    """It failed and waits for its repeat."""

    policy = PATIENT

    def step(self, asked: Asked) -> Step | None:
        return None if self.release.is_set() else status(500)

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await super().reached(engine, server)
        await until(lambda: engine.statistics().in_flight == 0)


class Store(Station):
    """Its answer has come, and its price is known; it may or may not be in the store by now."""

    is_billed = True

    def step(self, asked: Asked) -> Step | None:
        return None

    @asynccontextmanager
    async def around(self, engine: ms.Engine, server: ChatServer) -> AsyncIterator[None]:
        paid = self.paid = asyncio.Event()
        end = engine.events.subscribe(lambda event: paid.set() if event.kind == "spent" else None)
        yield
        end()

    async def reached(self, engine: ms.Engine, server: ChatServer) -> None:
        await self.paid.wait()


STATIONS = (Beginning, LookUp, Quota, Lease, Written, Headers, Body, BackOff, Store)


class Asking:
    """`ask` in a task that is cancelled. `loop`: the ways are tried in both loops, by turns."""

    loop = "asyncio"

    def __init__(self, engine: ms.Engine, call: ms.Call) -> None:
        self.engine = engine
        self.call = call

    async def prepare(self) -> None:
        """Everything but the call."""

    def begin(self) -> None:
        self.task = asyncio.create_task(self.work())

    async def work(self) -> None:
        await self.engine.ask(self.call)

    async def leave(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class CancelledRun(Asking):
    """`run` in a task that is cancelled."""

    loop = "uvloop"

    async def work(self) -> None:
        async for _ in self.engine.run([self.call]):
            pass


class ClosedRun(Asking):
    """`run` that is closed after its first outcome."""

    outcomes: AsyncGenerator[ms.Outcome, None] | None

    async def prepare(self) -> None:
        self.may_go = asyncio.Event()
        self.outcomes = self.engine.run(self.calls())
        assert (await anext(self.outcomes)).call == FIRST

    async def calls(self) -> AsyncIterator[ms.Call]:
        yield FIRST
        await self.may_go.wait()
        yield self.call

    def begin(self) -> None:
        self.may_go.set()

    async def leave(self) -> None:
        assert self.outcomes is not None
        await self.outcomes.aclose()


class LeftRun(ClosedRun):
    """`run` whose loop ends with `break`, so that nobody closes it."""

    loop = "uvloop"

    async def leave(self) -> None:
        self.outcomes = None
        await asyncio.sleep(0.05)


WAYS = (Asking, CancelledRun, ClosedRun, LeftRun)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("station", STATIONS)
def test_who_leaves_is_free_and_leaves_nothing(station: type[Station], way: type[Asking], tmp_path: Path) -> None:
    async def main() -> None:
        at, tasks = station(), asyncio.all_tasks()
        kept = str(at.call.input), "other"
        async with ChatServer(lambda asked: at.step(asked) if asked.prompt in kept else sound_and_closed) as server:
            made = settings_for(server.base_url, tmp_path, LANE, policy=at.policy, prices={MODEL: PRICE}, max_cost=1e8)
            async with ms.Engine(settings=made) as engine:
                caller = way(engine, at.call)
                await caller.prepare()
                async with at.around(engine, server):
                    spent, reserved = engine.statistics().spent, engine.statistics().reserved
                    caller.begin()
                    await at.reached(engine, server)
                    await caller.leave()
                    left = engine.statistics()
                    assert left.reserved == reserved and [lane.queued for lane in left.lanes] in ([], [0])
                    assert at.is_billed is None or (left.spent > spent) == at.is_billed
                await until(lambda: server.in_flight == 0, within_s=1.0)
                assert engine.statistics().in_flight == 0
                assert (await asyncio.wait_for(engine.ask(NEXT), 5)).status == "ok"
                at.release.set()
                again = await asyncio.wait_for(engine.ask(structs.replace(at.call)), 5)
                assert again.status == "ok"
                assert again.cached == (station in (Lease, Store))
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks

    run_on(way.loop, main())


@pytest.mark.parametrize("way", [Asking, CancelledRun])
def test_who_leaves_while_connecting_is_free(way: type[Asking], tmp_path: Path) -> None:
    """The server never begins its part of TLS."""
    gone: list[int] = []

    async def silent(visit: Visit) -> None:
        await visit.hung_up()
        gone.append(visit.number)

    async def main() -> None:
        async with RawServer(silent) as server:
            address = server.base_url.replace("http:", "https:")
            made = settings_for(address, tmp_path, LANE, prices={MODEL: PRICE}, max_cost=1e8)
            async with ms.Engine(settings=made) as engine:
                for number in (1, 2):
                    caller = way(engine, CALL)
                    caller.begin()
                    while server.connections < number:  # noqa: ASYNC110
                        await asyncio.sleep(0.002)
                    await asyncio.sleep(0.02)
                    assert engine.statistics().in_flight == 1
                    await caller.leave()
                    left = engine.statistics()
                    assert (left.in_flight, left.reserved) == (0, 0.0)
                    while len(gone) < number:  # noqa: ASYNC110
                        await asyncio.sleep(0.002)

    run_on(way.loop, main(), within_s=10)
