"""The listening socket, and its end.

Owns the bound on connections, draining and closing. What happens on a connection: http_connection. The function that
answers a request is passed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...engine.fault import LocalFault
from ...wiring.file_limits import connections_max
from .http_connection import Connection, Connections, PendingAnswer
from .http_request import HttpRequest
from .http_response import HttpResponse

_BACKLOG = 1_024
_LOOK_EVERY_S = 0.02


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
