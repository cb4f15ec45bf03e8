"""The listening socket, all open connections, and their end.

Owns the bound on connections, draining and closing. What happens on a connection: http_connection. The function that
answers a request is passed in.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

from ....engine.fault import LocalFault
from ....wiring.file_limits import connections_max
from .body_memory import BodyMemory
from .http_connection import Connection
from .http_request import HttpRequest, PendingAnswer
from .http_response import HttpResponse

# Seconds after which an idle connection is closed, also one that never sent a whole head.
IDLE_S = 75.0
# Seconds after which a connection is closed whose client takes no data: a person may look at something else meanwhile.
TAKING_S = 120.0
_BACKLOG = 1_024
_LOOK_EVERY_S = 0.02
# Seconds that requests get to end when they are cut off.
_CUT_S = 1.0


class Connections:
    """All open connections of a gateway, and what they share. `begin` answers a request; `failed` returns the answer to
    one at which the gateway itself failed."""

    def __init__(
        self,
        begin: Callable[[HttpRequest], HttpResponse | PendingAnswer],
        failed: Callable[[BaseException], HttpResponse],
    ) -> None:
        self.begin = begin
        self.failed = failed
        self.idle_s = IDLE_S
        self.taking_s = TAKING_S
        self.room = BodyMemory()
        self._open: set[Connection] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __repr__(self) -> str:
        return f"<Connections [{self.open} open]>"

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._open))

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def is_writing(self) -> bool:
        return any(connection.is_writing for connection in self._open)

    def opened(self, connection: Connection) -> None:
        self._open.add(connection)
        self._is_empty.clear()

    def closed(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open:
            self._is_empty.set()

    async def cut(self) -> None:
        """Closes all connections, whatever is under way, and waits for their end for at most two seconds."""
        tasks = [connection.task for connection in self._open if connection.task is not None]
        for connection in self:
            connection.abort()
        if tasks:
            await asyncio.wait(tasks, timeout=_CUT_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CUT_S):
                await self._is_empty.wait()


class _NoRoom(asyncio.Protocol):
    """A connection beyond the bound: closed at once, so that the others can be answered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class HttpServer:
    """A socket that listens while it is entered. `port` 0: any free one. `begin` answers a request, `failed` returns
    the answer if that raised; `drained` waits until no request is under way, and lets no new one begin."""

    def __init__(
        self,
        begin: Callable[[HttpRequest], HttpResponse | PendingAnswer],
        failed: Callable[[BaseException], HttpResponse],
        drained: Callable[[], Awaitable[None]],
        host: str,
        port: int,
    ) -> None:
        self._drained = drained
        self._host = host
        self._asked_port = port
        self._server: asyncio.Server | None = None
        self.port = port
        self.connections = Connections(begin, failed)
        self.connections_max = connections_max()

    async def __aenter__(self) -> HttpServer:
        loop = asyncio.get_running_loop()

        def connected() -> asyncio.Protocol:
            if self.connections.open >= self.connections_max:
                return _NoRoom()
            return Connection(self.connections, loop)

        try:
            self._server = await loop.create_server(connected, self._host, self._asked_port, backlog=_BACKLOG)
        except OSError as error:
            raise LocalFault(
                f"{self._host}:{self._asked_port} can't be listened on ({error.strerror or error}): give another "
                f"--port or --host, or stop what listens there"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the socket and cuts off all requests under way."""
        assert self._server is not None
        self._server.close()
        await self.connections.cut()

    async def drain(self) -> None:
        """Accepts no new connection, and waits until all requests under way are answered and their answers sent."""
        assert self._server is not None
        self._server.close()
        await self._drained()
        while self.connections.is_writing:  # noqa: ASYNC110 (no event reports it)
            await asyncio.sleep(_LOOK_EVERY_S)
