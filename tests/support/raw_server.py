"""A server that sends exactly the bytes it is told to, and counts what it was sent and who hung up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

Handler = Callable[["Visit"], Awaitable[None]]


def http(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """A whole HTTP response; `length` is what its Content-Length says."""
    declared = len(body) if length is None else length
    lines = (f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {declared}", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answer(text: str) -> bytes:
    """The body of a chat completion."""
    return b'{"choices":[{"message":{"content":"' + text.encode() + b'"},"finish_reason":"stop"}]}'


class Visit:
    """One connection as the server sees it."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.writer = writer
        self._reader = reader

    async def request(self) -> bytes | None:
        """The next request, head and body; None where the client hung up instead."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            return head + await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def some(self) -> bytes:
        """What has come of a request by now; waits for its first bytes."""
        return await self._reader.read(65_536)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hung_up(self) -> None:
        """Return when the client has closed the connection."""
        try:
            while await self._reader.read(65_536):
                pass
        except ConnectionError:
            pass


class RawServer:
    """`handler` has one connection at a time; it is closed when the handler returns.

    async with RawServer(handler) as server:
        ...  # requests to server.base_url
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.open = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._visit, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        task = asyncio.create_task(self._serve(Visit(self.connections, reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, visit: Visit) -> None:
        try:
            await self._handler(visit)
        except ConnectionError:
            pass  # the client hung up first
        finally:
            self.open -= 1
            visit.writer.transport.abort() if visit.writer.transport.is_closing() else visit.writer.close()
