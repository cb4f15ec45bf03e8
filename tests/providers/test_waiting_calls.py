"""Calls that wait for a connection: each ends once, in its turn, whatever servers and receivers do."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from typing import Any

import pytest
from endpoints import endpoint
from loops import on_each_loop, run_on
from open_files import eventually, open_files
from raw_server import Handler, RawServer, Visit, answer, http

from millstream.engine.call import Call
from millstream.engine.endpoint import Attempt, Response, Withdrawn
from millstream.providers.transport.endpoint import ModelEndpoint
from millstream.providers.transport.transport import Transport

CALLS_MAX = 400


class Rude:
    """A receiver that does in its callbacks whatever one may do, and begins another call at its end."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.ends = 0
        self.is_aborted = False
        self.attempt: Attempt | None = None

    def clear(self) -> float:
        assert not self.ends and not self.is_aborted
        chance = self.crowd.random.random()
        if chance < 0.04:
            raise Withdrawn
        if chance < 0.06:
            raise ValueError("clear")
        if chance < 0.10:
            self.crowd.begin()
        elif chance < 0.15:
            self.crowd.abort_any()
        return 0.005 if chance > 0.9 else 0.0

    def received(self, response: Response) -> None:
        self._end()

    def broke(self, error: Exception) -> None:
        self._end()
        if self.crowd.random.random() < 0.1:
            raise RuntimeError("broke")

    def _end(self) -> None:
        assert not self.is_aborted
        self.ends += 1
        self.crowd.live.pop(self)
        if self.crowd.random.random() < 0.1:
            self.crowd.abort_any()
        self.crowd.begin()


class Crowd:
    def __init__(self, servers: list[ModelEndpoint], seed: int) -> None:
        self.servers = servers
        self.random = random.Random(seed)
        self.all: list[Rude] = []
        self.live: dict[Rude, None] = {}

    def begin(self) -> None:
        if len(self.all) < CALLS_MAX:
            rude, server = Rude(self), self.random.choice(self.servers)
            self.all.append(rude)
            self.live[rude] = None
            rude.attempt = server.begin(server.encode(Call("sim/steady", "hi")), rude)

    def abort_any(self) -> None:
        if self.live and (rude := self.random.choice(list(self.live))).attempt is not None:
            del self.live[rude]
            rude.is_aborted = True
            rude.attempt.abort()


def serving(chance: random.Random, after_s: float, hangs_up: float, *, is_early: bool = False) -> Handler:
    async def handler(visit: Visit) -> None:
        while await (visit.some() if is_early else visit.request()):
            await asyncio.sleep(after_s * chance.random())
            await visit.send(http(answer("yes")))
            if chance.random() < hangs_up:
                return

    return handler


@on_each_loop
@pytest.mark.parametrize("most", [1, 2, 5])
def test_each_call_ends_once_and_all_room_is_back(most: int, loop: str) -> None:
    async def scenario() -> None:
        errors: list[str] = []

        def note(_: object, context: dict[str, Any]) -> None:
            errors.append(str(context.get("exception")))

        await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)  # uvloop opens a descriptor with the first
        asyncio.get_running_loop().set_exception_handler(note)
        over, chance = Transport(connections_max=most), random.Random(most)
        with socket.socket() as refusing:
            refusing.bind(("127.0.0.1", 0))
            async with (
                RawServer(serving(chance, 0.0, 0.0)) as fast,
                RawServer(serving(chance, 0.05, 0.5)) as slow,
                RawServer(serving(chance, 0.0, 1.0, is_early=True)) as early,
            ):
                urls = [fast.base_url, slow.base_url, early.base_url]
                urls.append(f"http://127.0.0.1:{refusing.getsockname()[1]}/v1")
                before = open_files()
                crowd = Crowd([endpoint(over, url) for url in urls], most)
                while len(crowd.all) < CALLS_MAX:  # all may have been aborted before the last was begun
                    crowd.begin()
                    await asyncio.sleep(0.001)
                await eventually(lambda: not crowd.live, 20)
                await over.close()
                await eventually(lambda: over.room == most and open_files() <= before, 5)
        assert not over.waiting
        assert Counter(rude.ends + rude.is_aborted for rude in crowd.all) == {1: CALLS_MAX}
        assert set(errors) <= {"broke"}

    run_on(loop, scenario(), 60)


class Line:
    """The numbers of calls in the order in which they began, were written and were answered."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.written: list[int] = []
        self.answered: list[int] = []


class Orderly:
    """A receiver in a line, which has others begin after it at the same server, one after another."""

    def __init__(self, server: ModelEndpoint, line: Line, followers: int) -> None:
        self.server, self.line, self.followers = server, line, followers
        self.number = len(line.begun)
        line.begun.append(self.number)
        server.begin(server.encode(Call("sim/steady", "hi")), self)

    def clear(self) -> float:
        self.line.written.append(self.number)
        return 0.0

    def received(self, response: Response) -> None:
        self.line.answered.append(self.number)
        if self.followers:
            Orderly(self.server, self.line, self.followers - 1)

    def broke(self, error: Exception) -> None:
        raise AssertionError(error)


@on_each_loop
def test_without_room_servers_take_turns_and_the_calls_to_each_are_written_as_they_began(loop: str) -> None:
    async def scenario() -> None:
        fast, slow = Line(), Line()
        over, chance = Transport(connections_max=1), random.Random(1)
        async with RawServer(serving(chance, 0.0, 0.0)) as one, RawServer(serving(chance, 0.01, 0.0)) as other:
            for _ in range(10):
                Orderly(endpoint(over, one.base_url), fast, 4)
                Orderly(endpoint(over, other.base_url), slow, 4)
            await eventually(lambda: min(len(fast.answered), len(slow.answered)) == 20, 20)
            assert max(len(fast.answered), len(slow.answered)) <= 25
            await eventually(lambda: len(fast.answered) + len(slow.answered) == 100, 20)
            await over.close()
        assert (fast.written, slow.written) == (fast.begun, slow.begun)

    run_on(loop, scenario())


@on_each_loop
def test_a_slow_server_gets_a_connection_for_each_call(loop: str) -> None:
    async def scenario() -> None:
        line, over, all_asked = Line(), Transport(), asyncio.Barrier(200)

        async def handler(visit: Visit) -> None:
            while await visit.request():
                await all_asked.wait()
                await visit.send(http(answer("yes")))

        async with RawServer(handler) as server:
            at = endpoint(over, server.base_url)
            for _ in range(200):
                Orderly(at, line, 1)
            await eventually(lambda: len(line.answered) == 400, 20)
            await over.close()
            assert server.connections == 200

    run_on(loop, scenario())


@on_each_loop
def test_a_receiver_that_raises_at_its_end_does_not_keep_the_transport_from_closing(loop: str) -> None:
    async def scenario() -> None:
        is_asked, over = asyncio.Event(), Transport()

        async def handler(visit: Visit) -> None:
            await visit.request()
            is_asked.set()
            await visit.hung_up()

        async with RawServer(handler) as server:
            Orderly(endpoint(over, server.base_url), Line(), 0)
            await is_asked.wait()
            await asyncio.wait_for(over.close(), 2)

    run_on(loop, scenario())


class Indifferent:
    def clear(self) -> float:
        return 0.0

    def received(self, response: Response) -> None: ...

    def broke(self, error: Exception) -> None: ...


@on_each_loop
@pytest.mark.parametrize("turns", range(24))
def test_a_connection_that_opens_as_the_transport_closes_is_closed(turns: int, loop: str) -> None:
    async def scenario() -> None:
        async def handler(visit: Visit) -> None:
            await visit.hung_up()

        async with RawServer(handler) as server:
            over, before = Transport(), open_files()
            at = endpoint(over, server.base_url)
            attempts = [at.begin(at.encode(Call("sim/steady", "hi")), Indifferent()) for _ in range(8)]
            for _ in range(turns):
                await asyncio.sleep(0)
            if turns % 2:
                for attempt in attempts:
                    attempt.abort()
            await over.close()
            await eventually(lambda: server.open == 0 and open_files() <= before, 2)

    run_on(loop, scenario())
