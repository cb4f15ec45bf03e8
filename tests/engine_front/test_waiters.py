"""Several callers that wait for one call: it is sent once, goes on for whoever is left, and ends with the last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from chat_server import COST, MODEL, PRICE, Asked, ChatServer, held, settings_for, status, text_to, until

import millstream as ms

LANE = ms.Lane(MODEL, concurrency=1)


def call(tag: object = None) -> ms.Call:
    return ms.Call(MODEL, "same", max_tokens=20, tag=tag)


async def asked(engine: ms.Engine, tag: object) -> ms.Outcome:
    return await engine.ask(call(tag))


async def run(engine: ms.Engine, tag: object) -> ms.Outcome:
    (outcome,) = [outcome async for outcome in engine.run([call(tag)])]
    return outcome


WAYS = (asked, run)
Way = Callable[[ms.Engine, object], Awaitable[ms.Outcome]]


class Waiting:
    """An engine whose server holds the answer to the one call until `release` is set."""

    def __init__(self, engine: ms.Engine, server: ChatServer, release: asyncio.Event) -> None:
        self.engine = engine
        self.server = server
        self.release = release

    async def began(self, way: Way, tag: object) -> asyncio.Task[ms.Outcome]:
        """A caller that waits."""
        task = asyncio.ensure_future(way(self.engine, tag))
        await until(lambda: self.server.in_flight == 1)
        # So many turns of the loop let a second one join.
        for _ in range(10):
            await asyncio.sleep(0)
        return task

    @property
    def spent(self) -> float:
        return self.engine.statistics().spent


async def left(task: asyncio.Task[ms.Outcome]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def scenario(folder: Path, check: Callable[[Waiting], Awaitable[None]]) -> None:
    async def main() -> None:
        release, tasks = asyncio.Event(), asyncio.all_tasks()
        async with ChatServer(lambda asked: None if asked.prompt == "next" else held(release)) as server:
            made = settings_for(server.base_url, folder, LANE, prices={MODEL: PRICE}, max_cost=1e6)
            async with ms.Engine(settings=made) as engine:
                await check(Waiting(engine, server, release))
                statistics = engine.statistics()
                assert (statistics.in_flight, statistics.lanes[0].queued, statistics.reserved) == (0, 0, 0.0)
                after = await asyncio.wait_for(engine.ask(ms.Call(MODEL, "next", max_tokens=20)), 5)
                assert after.status == "ok"
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("leaver", [0, 1])
def test_of_two_that_wait_one_leaves_and_the_other_gets_the_answer(
    first: Way, second: Way, leaver: int, tmp_path: Path
) -> None:
    async def check(at: Waiting) -> None:
        tasks = [await at.began(first, 0), await at.began(second, 1)]
        await left(tasks[leaver])
        assert at.server.lost == []
        at.release.set()
        outcome = await tasks[1 - leaver]
        assert outcome.reply is not None and outcome.reply.text == text_to("same")
        # Who joined has an answer that another began, whether that one stayed or not.
        assert (outcome.call.tag, outcome.cached, outcome.cost) == ((1, True, 0.0) if leaver == 0 else (0, False, COST))
        assert at.server.counts() == {"same": 1} and at.spent == COST

    scenario(tmp_path, check)


@pytest.mark.parametrize("way", WAYS)
def test_when_all_leave_the_connection_is_closed_and_one_attempt_may_have_been_billed(way: Way, tmp_path: Path) -> None:
    async def check(at: Waiting) -> None:
        tasks = [await at.began(way, number) for number in range(4)]
        reserved = at.engine.statistics().reserved
        await asyncio.gather(*map(left, tasks))
        await until(lambda: at.server.lost == ["same"], within_s=1.0)
        assert at.spent == reserved > COST
        # Neither a lease is left: another engine on the same cache need not wait for anybody.
        at.release.set()
        assert at.engine.settings.cache is not None
        async with ms.Engine(settings=settings_for(at.server.base_url, at.engine.settings.cache)) as elsewhere:
            outcome = await asyncio.wait_for(elsewhere.ask(call()), 2)
        assert (outcome.status, outcome.cached, outcome.attempts) == ("ok", False, 1)
        assert at.server.counts() == {"same": 2}

    scenario(tmp_path, check)


@pytest.mark.parametrize("count", [2, 100])
def test_each_has_the_answer_as_its_own_and_one_of_them_pays(count: int, tmp_path: Path) -> None:
    async def check(at: Waiting) -> None:
        tasks = [await at.began(WAYS[number % 2], number) for number in range(count)]
        at.release.set()
        outcomes = await asyncio.gather(*tasks)
        assert [outcome.call.tag for outcome in outcomes] == list(range(count))
        assert [(outcome.cached, outcome.attempts, outcome.cost) for outcome in outcomes] == [
            (False, 1, COST),
            *[(True, 0, 0.0)] * (count - 1),
        ]
        assert len({outcome.key for outcome in outcomes}) == 1 and at.server.counts() == {"same": 1}

    scenario(tmp_path, check)


def test_a_failure_is_given_to_all_and_kept_for_nobody(tmp_path: Path) -> None:
    async def check(at: Waiting) -> None:
        entered = asyncio.Event()

        async def refused(request: object) -> bool:
            await entered.wait()
            return await status(422, "no such thing")(request)  # type: ignore[arg-type]

        at.server.script = lambda asked: refused if asked.number == 1 and asked.prompt == "same" else None
        tasks = [await at.began(way, number) for number, way in enumerate(WAYS)]
        entered.set()
        failures = [(await task).failure for task in tasks]
        assert all(failure is not None and failure.status == 422 for failure in failures)
        assert (await at.engine.ask(call())).status == "ok" and at.server.counts() == {"same": 2}

    scenario(tmp_path, check)


def test_a_sink_has_what_its_own_run_took_even_if_another_began_the_call(tmp_path: Path) -> None:
    class Rows:
        fault: ms.LocalFault | None = None

        def __init__(self) -> None:
            self.tags: list[object] = []

        def write(self, outcome: ms.Outcome) -> None:
            self.tags.append(outcome.call.tag)

        def flush(self) -> None:
            pass

    async def check(at: Waiting) -> None:
        rows = [Rows() for _ in range(3)]

        async def written(number: int) -> ms.Outcome:
            (outcome,) = [outcome async for outcome in at.engine.run([call(number)], rows[number])]
            assert rows[number].tags == [number]
            return outcome

        tasks = [await at.began(lambda engine, tag: written(int(str(tag))), number) for number in range(3)]
        # A sink of a caller that left has nothing, though its call is answered for the others.
        await left(tasks[0])
        at.release.set()
        assert {(await task).status for task in tasks[1:]} == {"ok"}
        assert [sink.tags for sink in rows] == [[], [1], [2]]

    scenario(tmp_path, check)


def test_a_call_joins_the_same_request_of_another_lane_and_goes_on_alone_when_that_stops(tmp_path: Path) -> None:
    """Two accounts at one provider: the same question is one call, until the key of the first one is refused."""
    entered = asyncio.Event()

    async def refused(asked: Asked) -> bool:
        await entered.wait()
        return await status(401)(asked)

    async def main() -> None:
        async with ChatServer(lambda asked: refused if asked.key == "sk-one-0123456789" else None) as server:
            providers = {name: ms.Provider(server.base_url, name.upper(), identity="lab") for name in ("one", "two")}
            keys = {name.upper(): f"sk-{name}-0123456789" for name in providers}
            made = settings_for(server.base_url, tmp_path, providers=providers, environment=keys)
            async with ms.Engine(settings=made) as engine:
                first = asyncio.create_task(engine.ask(ms.Call("one/m", "same")))
                await until(lambda: server.in_flight == 1)
                second = asyncio.create_task(engine.ask(ms.Call("two/m", "same")))
                await asyncio.sleep(0.02)
                assert len(server.asked) == 1
                entered.set()
                with pytest.raises(ms.Stopped) as stopped:
                    await first
                assert [stop.lane for stop in stopped.value.stops] == ["one/m"]
                outcome = await second
                assert (outcome.status, outcome.cached, outcome.attempts) == ("ok", False, 1)
            assert [asked.key for asked in server.asked] == [keys["ONE"], keys["ONE"], keys["TWO"]]

    asyncio.run(asyncio.wait_for(main(), 20))
