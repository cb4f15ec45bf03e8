"""One connection over a real socket, whatever answers its requests: order, bounds on what is held, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from gateways import until

from millstream.interfaces.gateway.request_handler import failed_request
from millstream.interfaces.http.http_connection import (
    WAITING_BYTES_MAX,
    WAITING_MAX,
    Connection,
    Connections,
)
from millstream.interfaces.http.http_request import HttpRequest
from millstream.interfaces.http.http_response import HttpResponse

Begin = Callable[[HttpRequest], "HttpResponse | Slow"]
Answering = Callable[[Connection], Awaitable[HttpResponse | None]]
GET = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
MANY = 1_000
PIECE = b"x" * (1 << 20)


class Slow:
    """A request that is answered by `answering`. Counts how often it ended."""

    def __init__(self, answering: Answering) -> None:
        self.whole: HttpResponse | None = None
        self.told: Callable[[], None] | None = None
        self.is_begun = False
        self.has_started = False
        self.ended = 0
        self._answering = answering

    def finish(self) -> HttpResponse | None:
        return self.whole

    async def answer(self, back: Connection) -> HttpResponse | None:
        self.has_started = True
        return await self._answering(back)

    def end(self) -> None:
        self.ended += 1


class Begun(Slow):
    """One that goes on by itself."""

    def __init__(self, whole: HttpResponse | None) -> None:
        super().__init__(for_ever)
        self.is_begun = True
        self._comes = whole

    def finish(self) -> HttpResponse | None:
        if self._comes is None:
            raise ZeroDivisionError("a defect")
        return self._comes


async def for_ever(_: Connection) -> HttpResponse | None:
    await asyncio.Event().wait()
    return None


@asynccontextmanager
async def served(begin: Begin) -> AsyncIterator[tuple[Connections, asyncio.StreamReader, asyncio.StreamWriter]]:
    """One client's connection to requests that `begin` answers."""
    loop, connections = asyncio.get_running_loop(), Connections(begin, failed_request)
    server = await loop.create_server(lambda: Connection(connections, loop), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        await until(lambda: connections.open == 1)
        yield connections, reader, writer
    finally:
        writer.close()
        server.close()
        await connections.cut()
        assert connections.open == 0


def run(scenario: Awaitable[None]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(scenario, 30)

    asyncio.run(whole())


def said(body: bytes) -> HttpResponse:
    return HttpResponse(200, "Server: here\r\n", body)


async def body_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]))


def test_requests_that_come_at_once_are_answered_one_by_one_in_their_order() -> None:
    async def scenario() -> None:
        begun: list[str] = []
        goes_on = asyncio.Event()

        async def first(_: Connection) -> HttpResponse:
            await goes_on.wait()
            return said(b"/0")

        def begin(request: HttpRequest) -> HttpResponse | Slow:
            begun.append(request.seen.target)
            return Slow(first) if request.seen.target == "/0" else said(request.seen.target.encode())

        async with served(begin) as (_, reader, writer):
            writer.write(b"".join(GET % number for number in range(5)))
            await until(lambda: bool(begun))
            await asyncio.sleep(0.05)
            assert begun == ["/0"]
            goes_on.set()
            assert [await body_of(reader) for _ in range(5)] == [b"/%d" % number for number in range(5)]

    run(scenario())


@pytest.mark.parametrize("size", [0, 200_000])
def test_who_sends_more_than_is_answered_has_to_wait(size: int) -> None:
    """And all of it is answered in the end."""

    async def scenario() -> None:
        goes_on = asyncio.Event()

        def begin(request: HttpRequest) -> Slow:
            async def sized(_: Connection) -> HttpResponse:
                await goes_on.wait()
                await request.body.whole()
                return said(b"%d" % len(request.body.data))

            return Slow(sized)

        async with served(begin) as (connections, reader, writer):
            one = b"POST / HTTP/1.1\r\nContent-Length: %d\r\nX-Long: %b\r\n\r\n" % (size, b"y" * 8_000) + b"x" * size
            many = MANY if size == 0 else 100
            writer.write(one * many)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await writer.drain()
            (connection,) = connections
            waiting = int(repr(connection).partition("Waiting: ")[2].rstrip("]>"))
            # What had been read in the piece that was one too many is kept.
            assert 0 < waiting <= WAITING_MAX + 300_000 // len(one) + 1
            assert waiting * size <= WAITING_BYTES_MAX + 600_000
            goes_on.set()
            assert [await body_of(reader) for _ in range(many)] == [b"%d" % size] * many

    run(scenario())


def test_a_stream_goes_no_faster_than_it_is_taken() -> None:
    async def scenario() -> None:
        written = 0

        async def stream(back: Connection) -> None:
            nonlocal written
            await back.begin("", PIECE)
            for _ in range(63):
                await back.write(PIECE)
                written += 1
            back.end()

        work = Slow(stream)
        async with served(lambda _: work) as (connections, reader, writer):
            writer.write(GET % 1)
            await until(lambda: written > 0)
            await asyncio.sleep(0.3)
            assert written < 40 and connections.is_writing
            await reader.readuntil(b"\r\n\r\n")
            taken = 0
            while size := int(await reader.readline(), 16):
                taken += len(await reader.readexactly(size))
                await reader.readline()
            assert taken == 64 * len(PIECE)
            await until(lambda: work.ended == 1)

    run(scenario())


def test_an_answer_that_nobody_takes_keeps_the_next_one_from_being_made() -> None:
    async def scenario() -> None:
        begun = 0

        def begin(_: HttpRequest) -> HttpResponse:
            nonlocal begun
            begun += 1
            return said(PIECE * 8)

        async with served(begin) as (_, reader, writer):
            writer.write(GET % 1 * 50)
            await until(lambda: begun > 0)
            await asyncio.sleep(0.2)
            assert begun < 5
            for _ in range(50):
                assert len(await body_of(reader)) == 8 * len(PIECE)

    run(scenario())


@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_client_that_leaves_ends_what_it_asked_for_and_all_that_waits_behind(is_half: bool, is_begun: bool) -> None:
    async def scenario() -> None:
        works: list[Slow] = []

        def begin(_: HttpRequest) -> Slow:
            works.append(Begun(said(b"")) if is_begun else Slow(for_ever))
            return works[-1]

        async with served(begin) as (connections, _, writer):
            writer.write(GET % 1 * 3)
            await until(lambda: bool(works))
            if is_half:
                writer.write_eof()
            else:
                writer.close()
            await until(lambda: connections.open == 0)
            await until(lambda: works[0].ended == 1)
            assert len(works) == 1

    run(scenario())


def test_one_that_leaves_in_the_instant_when_it_asks_is_ended_too() -> None:
    async def scenario() -> None:
        work, reached = Slow(for_ever), list[Connections]()

        def begin(_: HttpRequest) -> Slow:
            # Before the answer's first step.
            for connection in reached[0]:
                connection.abort()
            return work

        async with served(begin) as (connections, _, writer):
            reached.append(connections)
            writer.write(GET % 1)
            await until(lambda: work.ended == 1)
            assert not work.has_started

    run(scenario())


def test_what_goes_on_by_itself_is_answered_when_it_is_told_and_the_next_one_begins() -> None:
    async def scenario() -> None:
        works: list[Slow] = []

        def begin(request: HttpRequest) -> Slow:
            works.append(Begun(said(request.seen.target.encode())))
            return works[-1]

        async with served(begin) as (_, reader, writer):
            writer.write(GET % 1 + GET % 2)
            for number in range(2):
                await until(lambda number=number: len(works) == number + 1)  # type: ignore[misc]
                told = works[number].told
                assert told is not None
                told()
                assert await body_of(reader) == b"/%d" % (number + 1)
                await until(lambda number=number: works[number].ended == 1)  # type: ignore[misc]

    run(scenario())


async def broken(_: Connection) -> HttpResponse | None:
    raise ZeroDivisionError("a defect")


def begins_broken(_: HttpRequest) -> HttpResponse | Slow:
    raise ZeroDivisionError("a defect")


def told_broken(_: HttpRequest) -> Slow:
    work = Begun(None)
    asyncio.get_running_loop().call_soon(lambda: work.told is not None and work.told())
    return work


DEFECTS: dict[str, Begin] = {"at once": begins_broken, "later": lambda _: Slow(broken), "when told": told_broken}


@pytest.mark.parametrize("when", DEFECTS)
def test_a_defect_is_one_line_here_and_an_answer_there(when: str, capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with served(DEFECTS[when]) as (_, reader, writer):
            writer.write(GET % 1 * 2)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 500 ") and b"the gateway failed at this request" in answer
            assert answer.count(b"HTTP/1.1") == 1 and b"Connection: close\r\n" in answer

    run(scenario())
    error = capfd.readouterr().err
    assert error == "millstream serve: a defect, please report it: ZeroDivisionError: a defect\n"


def test_a_stream_that_breaks_off_never_looks_whole(capfd: pytest.CaptureFixture[str]) -> None:
    async def stream(back: Connection) -> HttpResponse | None:
        await back.begin("", b"some of it")
        raise ZeroDivisionError("a defect")

    async def scenario() -> None:
        async with served(lambda _: Slow(stream)) as (_, reader, writer):
            writer.write(GET % 1)
            with suppress(ConnectionError):
                assert b"0\r\n\r\n" not in await reader.read()

    run(scenario())
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: ", GET % 1], ids=["nothing", "half a head", "a request"])
def test_a_connection_on_which_nothing_whole_comes_is_closed(sent: bytes) -> None:
    async def scenario() -> None:
        loop, connections = asyncio.get_running_loop(), Connections(lambda _: said(b""), failed_request)
        connections.idle_s = 0.3
        server = await loop.create_server(lambda: Connection(connections, loop), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            writer.write(sent)
            if sent == GET % 1:
                assert await body_of(reader) == b""

            async def drip() -> None:
                # A byte now and then is no reason to stay.
                while sent.endswith(b"X: "):
                    writer.write(b"T")
                    await asyncio.sleep(0.05)

            dripping = asyncio.create_task(drip())
            began = loop.time()
            with suppress(ConnectionError):
                assert await reader.read() == b""
            assert loop.time() - began > 0.2
            dripping.cancel()
            writer.close()
            await until(lambda: connections.open == 0)

    run(scenario())


def test_one_that_waits_for_its_answer_is_not_idle() -> None:
    async def late(_: Connection) -> HttpResponse:
        await asyncio.sleep(0.5)
        return said(b"late")

    async def scenario() -> None:
        loop, connections = asyncio.get_running_loop(), Connections(lambda _: Slow(late), failed_request)
        connections.idle_s = 0.1
        server = await loop.create_server(lambda: Connection(connections, loop), "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            writer.write(GET % 1)
            assert await body_of(reader) == b"late" and await reader.read() == b""
            writer.close()
            await until(lambda: connections.open == 0)

    run(scenario())
