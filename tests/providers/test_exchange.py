"""One attempt without an engine: it hears one end or, aborted, none, and gives back room and connection once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from endpoints import endpoint
from loops import on_each_loop, run_on
from msgspec import structs
from open_files import eventually
from raw_server import RawServer, Visit, answer, http

from millstream.engine.call import Call
from millstream.engine.endpoint import Attempt, Request, Response, SendError, Withdrawn
from millstream.providers.transport.endpoint import ModelEndpoint
from millstream.providers.transport.transport import Transport

CALL = Call("sim/steady", "hi")


class Heard:
    """A receiver that notes what it hears; `at_clear`, `at_end` run within its methods."""

    def __init__(
        self, at_clear: Callable[[], float] = lambda: 0.0, at_end: Callable[[], object] = lambda: None
    ) -> None:
        self.clear = at_clear
        self.at_end = at_end
        self.ends: list[Response | Exception] = []
        self.attempt: Attempt | None = None

    def begin(self, at: ModelEndpoint, request: Request) -> Heard:
        self.attempt = at.begin(request, self)
        return self

    def abort(self) -> None:
        assert self.attempt is not None
        self.attempt.abort()

    @property
    def state(self) -> str:
        found = re.search(r"\[(.*)\]", repr(self.attempt))
        assert found is not None
        return found[1]

    def received(self, response: Response) -> None:
        self.ends.append(response)
        self.at_end()

    def broke(self, error: Exception) -> None:
        self.ends.append(error)
        self.at_end()

    async def status(self) -> int:
        """The status of the response, which is all that is heard."""
        await eventually(lambda: bool(self.ends), 5)
        await asyncio.sleep(0.01)
        (end,) = self.ends
        assert isinstance(end, Response), end
        return end.status


class Over:
    """An endpoint over a transport with room for `most` connections."""

    def __init__(self, base_url: str, most: int = 1, timeout_s: float = 5.0) -> None:
        self.transport = Transport(connections_max=most)
        self.at = endpoint(self.transport, base_url, timeout_s=timeout_s)
        self.request = self.at.encode(CALL)

    def begin(self, heard: Heard | None = None) -> Heard:
        return (heard or Heard()).begin(self.at, self.request)

    async def room_is_for_one(self) -> None:
        """Checks that one call, and no more than one, can be under way."""
        first, second = self.begin(), self.begin()
        assert second.state == "waits for a connection"
        assert [await first.status(), await second.status()] == [200, 200]
        assert first.state == second.state == "over"


async def answering(visit: Visit) -> None:
    while await visit.request() is not None:
        await asyncio.sleep(0.01)
        await visit.send(http(answer("A")))


class Counting(asyncio.SelectorEventLoop):
    """Counts its tasks and futures."""

    made = 0

    def create_task(self, *args: Any, **settings: Any) -> Any:
        self.made += 1
        return super().create_task(*args, **settings)

    def create_future(self) -> Any:
        self.made += 1
        return super().create_future()


def test_over_an_idle_connection_it_is_written_at_once_and_makes_no_task_and_no_future() -> None:
    """The server is a protocol, which makes none either."""

    class Server(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.write(http(answer("A")))

    async def scenario(loop: Counting) -> int:
        server = await loop.create_server(Server, "127.0.0.1", 0)
        over = Over(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        await over.begin().status()
        ended, left, made = asyncio.Event(), 100, loop.made

        def again() -> None:
            nonlocal left, made
            left -= 1
            if left:
                assert over.begin(Heard(at_end=again)).state == "written"
            else:
                made = loop.made - made
                ended.set()

        over.begin(Heard(at_end=again))
        await ended.wait()
        await over.transport.close()
        server.close()
        return made - 1  # waiting for the event took a future

    with asyncio.Runner(loop_factory=Counting) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Counting)
        assert runner.run(scenario(loop)) == 0


# --- aborted ---


@on_each_loop
@pytest.mark.parametrize("state", ["waits for room", "connects", "waits to be cleared", "written", "in the body"])
def test_aborted_anywhere_it_hears_nothing_and_frees_its_room_once(state: str, loop: str) -> None:
    is_held = True

    async def handler(visit: Visit) -> None:
        while await visit.request() is not None:
            if is_held and state == "in the body":
                await visit.send(http(answer("A"), length=1_000))
            if is_held:
                await visit.hung_up()
            await asyncio.sleep(0.01)
            await visit.send(http(answer("A")))

    async def scenario() -> None:
        nonlocal is_held
        troubles: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
        async with RawServer(handler) as server:
            over = Over(server.base_url)
            first = over.begin() if state == "waits for room" else None
            left = Heard(lambda: 0.2 if state == "waits to be cleared" else 0.0)
            if state == "connects":
                # A server without TLS says nothing to a handshake, of which it waits for more.
                left.begin(
                    secret := endpoint(over.transport, f"https://localhost:{server.port}/v1"), secret.encode(CALL)
                )
            else:
                over.begin(left)
            await asyncio.sleep(0.1)
            states = {"waits for room": "waits for a connection", "connects": "waits for a connection"}
            assert left.state == {**states, "in the body": "written"}.get(state, state)
            left.abort()
            left.abort()
            assert left.state == "over"
            if first is not None:
                first.abort()
                await asyncio.sleep(0.1)
                assert server.connections == 1
            if state != "waits to be cleared":  # then nothing is written, and the connection may serve another
                await eventually(lambda: server.open == 0, 1)
            is_held = False
            await over.room_is_for_one()
            await asyncio.sleep(0.2)
            assert not left.ends and not troubles
            await over.transport.close()
            await eventually(lambda: server.open == 0, 1)

    run_on(loop, scenario())


@on_each_loop
@pytest.mark.parametrize("moment", ["cleared", "heard", "received", "broke"])
def test_a_receiver_may_abort_its_own_attempt_within_each_callback(moment: str, loop: str) -> None:
    requests = 0

    async def handler(visit: Visit) -> None:
        nonlocal requests
        while await visit.request() is not None:
            requests += 1
            if moment == "broke" and requests == 1:
                return
            await visit.send(SAID if moment == "heard" and requests == 1 else http(answer("A")))

    async def scenario() -> None:
        async with RawServer(handler) as server:
            over = Over(server.base_url)
            heard, pieces = Heard(), 0

            def hear(piece: str | None) -> None:
                nonlocal pieces
                pieces += 1
                heard.abort()

            if moment == "heard":
                call = Call("sim/steady", "hi", stream=True)
                heard.begin(over.at, structs.replace(over.at.encode(call), hear=hear))
            else:
                if moment == "cleared":
                    heard.clear = lambda: heard.abort() or 0.0  # type: ignore[func-returns-value]
                else:
                    heard.at_end = heard.abort
                over.begin(heard)
            await asyncio.sleep(0.1)
            assert heard.state == "over"
            assert len(heard.ends) == (1 if moment in ("received", "broke") else 0)
            assert requests == (0 if moment == "cleared" else 1)
            assert pieces == (1 if moment == "heard" else 0)
            await over.room_is_for_one()
            assert server.connections == (1 if moment in ("cleared", "received") else 2)
            await over.transport.close()

    run_on(loop, scenario())


EVENT = b'data: {"choices":[{"delta":{"content":"some words"}}]}\n\n'
# Many chunks in one segment.
SAID = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%b\r\n" % (len(EVENT), EVENT) * 9


@on_each_loop
def test_one_that_is_aborted_by_another_in_the_same_turn_hears_nothing(loop: str) -> None:
    async def silent(visit: Visit) -> None:
        await visit.hung_up()

    async def scenario() -> None:
        async with RawServer(silent) as server:
            over = Over(server.base_url, most=3, timeout_s=0.3)
            three = [Heard(), Heard(), Heard()]

            def abort_others() -> None:
                for each in three:
                    each.abort()

            # They have one deadline: it is over for all of them in one turn.
            for each in three:
                each.at_end = abort_others
                over.begin(each)
            await asyncio.sleep(0.6)
            (error,) = (end for each in three for end in each.ends)
            assert isinstance(error, SendError) and error.fault.kind == "timeout"
            await eventually(lambda: server.open == 0, 1)
            await over.transport.close()

    run_on(loop, scenario())


# --- one end ---


@on_each_loop
def test_an_answer_and_a_hangup_in_one_turn_are_one_end(loop: str) -> None:
    async def once(visit: Visit) -> None:
        await visit.request()
        visit.writer.write(http(answer("A")))

    async def scenario() -> None:
        async with RawServer(once) as server:
            over = Over(server.base_url)
            for _ in range(20):
                assert await over.begin().status() == 200
            await over.transport.close()

    run_on(loop, scenario())


@on_each_loop
def test_an_answer_before_the_request_is_out_is_taken_and_ends_its_connection(loop: str) -> None:
    async def hasty(visit: Visit) -> None:
        await visit.some()
        await visit.send(http(answer("A")))
        await visit.hung_up()

    async def scenario() -> None:
        async with RawServer(hasty) as server:
            over = Over(server.base_url)
            long = over.at.encode(Call("sim/steady", "x" * (12 << 20)))
            assert await Heard().begin(over.at, long).status() == 200
            await eventually(lambda: server.open == 0, 5)
            assert await over.begin().status() == 200
            assert server.connections == 2
            await over.transport.close()

    run_on(loop, scenario())


@on_each_loop
def test_a_connection_that_takes_too_long_frees_its_room_and_is_told_once(loop: str) -> None:
    async def scenario() -> None:
        async with RawServer(answering) as plain:
            over = Over(plain.base_url)
            # A server without TLS says nothing to a handshake, of which it waits for more.
            secret = endpoint(over.transport, f"https://localhost:{plain.port}/v1", timeout_s=0.4)
            heard = Heard().begin(secret, secret.encode(CALL))
            await asyncio.sleep(0.1)
            assert heard.state == "waits for a connection"
            await eventually(lambda: bool(heard.ends), 2)
            (error,) = heard.ends
            assert isinstance(error, SendError) and error.fault.kind == "connect"
            await over.room_is_for_one()
            await over.transport.close()

    run_on(loop, scenario())


# --- cleared ---


@on_each_loop
def test_it_is_written_when_it_is_cleared_and_not_before(loop: str) -> None:
    async def scenario() -> None:
        async with RawServer(answering) as server:
            over = Over(server.base_url)
            clock = asyncio.get_running_loop().time
            asked: list[float] = []

            def clear() -> float:
                asked.append(clock())
                return 0.2 if len(asked) < 3 else 0.0

            assert await over.begin(Heard(clear)).status() == 200
            assert len(asked) == 3
            assert all(later - earlier >= 0.19 for earlier, later in pairwise(asked))
            await over.transport.close()

    run_on(loop, scenario())


@on_each_loop
def test_a_deadline_before_it_is_cleared_is_told_once_and_the_connection_serves_another(loop: str) -> None:
    async def scenario() -> None:
        async with RawServer(answering) as server:
            over = Over(server.base_url, timeout_s=0.3)
            heard = over.begin(Heard(lambda: 60.0))
            await eventually(lambda: bool(heard.ends), 2)
            (error,) = heard.ends
            assert isinstance(error, SendError) and error.fault.kind == "timeout"
            await over.room_is_for_one()
            assert server.connections == 1
            await over.transport.close()

    run_on(loop, scenario())


@on_each_loop
def test_thousands_that_wait_and_are_withdrawn_pass_the_one_connection_on(loop: str) -> None:
    def withdraw() -> float:
        raise Withdrawn

    async def scenario() -> None:
        async with RawServer(answering) as server:
            over = Over(server.base_url)
            first = over.begin()
            waiting = [over.begin(Heard(withdraw)) for _ in range(3_000)]
            last = over.begin()
            assert {each.state for each in waiting} == {"waits for a connection"}
            assert [await first.status(), await last.status()] == [200, 200]
            assert all([type(end) for end in each.ends] == [Withdrawn] for each in waiting)
            assert server.connections == 1
            await over.transport.close()

    run_on(loop, scenario())
