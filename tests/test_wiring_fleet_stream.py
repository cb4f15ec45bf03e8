"""The connection of batches: what arrives, who is let in, and how its end is told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from certificates import make_certificate

from millstream.engine.fleet.batches import WorkerDied
from millstream.wiring import fleet_stream
from millstream.wiring.fleet_stream import FrameStream, serve

HOST, SECRET = "127.0.0.1", b"s" * 32
Work = Callable[[FrameStream], Awaitable[None]]


@asynccontextmanager
async def connected(work: Work) -> AsyncIterator[FrameStream]:
    server = await serve(HOST, SECRET, work)
    stream = await FrameStream.open(HOST, port_of(server), SECRET)
    try:
        yield stream
    finally:
        await ended(server, stream)


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


async def ended(server: asyncio.Server, stream: FrameStream | None = None) -> None:
    """Ends both; the server hears of it in the next turns of the loop."""
    if stream is not None:
        stream.lose(ConnectionError("over"))
    server.close()
    await asyncio.sleep(0.05)


async def reverse(stream: FrameStream) -> None:
    while True:
        stream.send((await stream.receive())[::-1])


async def never(stream: FrameStream) -> None:
    await stream.receive()
    await stream.receive()


def test_frames_of_any_size_come_back() -> None:
    async def main() -> None:
        async with connected(reverse) as stream:
            for size in (0, 1, 65_536, 40_000_000):
                stream.send(data := os.urandom(size))
                assert await stream.receive() == data[::-1]

    asyncio.run(main())


def test_either_end_may_send_when_it_likes_and_frames_keep_their_order() -> None:
    async def main() -> None:
        async def count(stream: FrameStream) -> None:
            for number in range(100):
                stream.send(b"%d" % number)
            await reverse(stream)

        async with connected(count) as stream:
            for number in range(100):
                stream.send(b"%d." % number)
            assert [await stream.receive() for _ in range(100)] == [b"%d" % number for number in range(100)]
            assert [await stream.receive() for _ in range(100)] == [(b"%d." % number)[::-1] for number in range(100)]

    asyncio.run(main())


def test_who_does_not_know_the_secret_is_heard_by_neither_end() -> None:
    async def main() -> list[bytes]:
        heard: list[bytes] = []

        async def hear(stream: FrameStream) -> None:
            heard.append(b"")
            heard.append(await stream.receive())

        server = await serve(HOST, SECRET, hear)
        port = port_of(server)
        with pytest.raises(ConnectionError):
            await FrameStream.open(HOST, port, b"t" * 32)
        reader, writer = await asyncio.open_connection(HOST, port)
        # A proof that is the other end's own, sent back, and a frame behind it.
        writer.write(await reader.readexactly(32))
        writer.write(await reader.readexactly(32) + b"\0" + (4).to_bytes(8, "big") + b"frame"[:4])
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        await ended(server)
        return heard

    assert asyncio.run(main()) == []


def test_a_server_that_does_not_know_the_secret_is_not_believed() -> None:
    async def main() -> None:
        server = await serve(HOST, b"t" * 32, reverse)
        with pytest.raises(ConnectionError, match=r"secret|at once"):
            await FrameStream.open(HOST, port_of(server), SECRET)
        await ended(server)

    asyncio.run(main())


def test_an_end_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_stream, "_PROOF_S", 0.1)

    async def main() -> None:
        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async with await asyncio.start_server(hold, HOST, 0) as silent:
            with pytest.raises(TimeoutError):
                await FrameStream.open(HOST, silent.sockets[0].getsockname()[1], SECRET)
        server = await serve(HOST, SECRET, reverse)
        reader, writer = await asyncio.open_connection(HOST, port_of(server))
        await reader.readexactly(32)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        await ended(server)

    asyncio.run(main())


def test_a_fault_of_a_worker_is_raised_at_the_driver() -> None:
    async def main() -> None:
        async def fail(stream: FrameStream) -> None:
            stream.send(bytes([1 // len(await stream.receive())]))

        async with connected(fail) as stream:
            stream.send(b"")
            with pytest.raises(ConnectionError, match="ZeroDivisionError"):
                await stream.receive()

    asyncio.run(main())


def test_a_cut_in_the_middle_of_a_frame_ends_what_waits() -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await fleet_stream._prove(reader, writer, SECRET, b"worker", b"driver")
            await reader.readexactly(9 + 1)
            writer.write(b"\0" + (100).to_bytes(8, "big") + b"half")
            writer.close()

        async with await asyncio.start_server(serve, HOST, 0) as server:
            stream = await FrameStream.open(HOST, server.sockets[0].getsockname()[1], SECRET)
            for _ in range(2):
                stream.send(b"a")
                with pytest.raises(ConnectionError, match="its connection has ended"):
                    await stream.receive()
            stream.lose(ConnectionError("over"))

    asyncio.run(main())


def test_what_the_cluster_says_of_a_death_ends_what_waits_and_all_later() -> None:
    async def main() -> None:
        async with connected(never) as stream:
            asyncio.get_running_loop().call_later(0.05, stream.lose, WorkerDied("its machine is gone"))
            for _ in range(2):
                stream.send(b"a")
                with pytest.raises(WorkerDied, match="its machine is gone"):
                    await asyncio.wait_for(stream.receive(), 5)

    asyncio.run(main())


def test_a_cluster_that_encrypts_has_its_batches_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = make_certificate(tmp_path)
    for name, value in (("SERVER_CERT", certificate), ("SERVER_KEY", key), ("CA_CERT", certificate)):
        monkeypatch.setenv(f"RAY_TLS_{name}", value)
    monkeypatch.setenv("RAY_USE_TLS", "1")

    async def main() -> None:
        server = await serve(HOST, SECRET, reverse)
        stream = await FrameStream.open(HOST, port_of(server), SECRET)
        stream.send(b"ab")
        assert await stream.receive() == b"ba"
        monkeypatch.setenv("RAY_USE_TLS", "0")
        with pytest.raises((OSError, EOFError)):
            await FrameStream.open(HOST, port_of(server), SECRET)
        await ended(server, stream)

    asyncio.run(main())
