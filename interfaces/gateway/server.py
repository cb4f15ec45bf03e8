"""The socket of a gateway: connections, what came on them that is no request, and the end.

Owns listening and draining. What a request gets: handling. aiohttp's server reads and writes HTTP; its own words for
mistakes are replaced by ours.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, LineTooLong
from aiohttp.web_protocol import RequestHandler
from msgspec import structs

from ...engine.fault import LocalFault
from ...wiring.files import connections_max
from ..dialects.dialect import Problem
from ..output import note
from .answers import refusal
from .bodies import PACKED_OTHERWISE
from .guard import Rules
from .handling import DIALECTS, Handling
from .paths import CHAT

# A connection on which nothing comes is closed after so long, one that never brought a whole head too.
IDLE_S = 75.0
# One whose client takes nothing of what waits for it is closed after so long: a person may look at something else.
TAKING_S = 120.0
_BACKLOG = 1_024
_LOOK_EVERY_S = 0.02


class _Connection(RequestHandler):
    """Says in our words what aiohttp would say in its own, and logs nothing: a defect is one line on stderr."""

    __slots__ = ("is_finishing",)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.is_finishing = False

    @property
    def is_writing(self) -> bool:
        """Something of an answer has not left this process."""
        return self.is_finishing or (self.transport is not None and self.transport.get_write_buffer_size() > 0)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        self.is_finishing = True
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.is_finishing = False

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        if status >= 500:
            note(f"millstream serve: a defect, please report it: {type(exc).__name__}: {exc}")
        if request.writer.output_size > 0:
            raise ConnectionError("the answer had begun")
        said = "the gateway failed at this request" if status >= 500 else "this is no HTTP request that can be read"
        if isinstance(exc, LineTooLong):
            said = "a line of the request's head is too long: cut the path or the header"
        elif isinstance(exc, ContentEncodingError):
            status, said = 415, PACKED_OTHERWISE
        made = refusal(Problem(status, "local_fault" if status >= 500 else "invalid", said), DIALECTS[CHAT], CHAT, "")
        made.force_close()
        return made


class _Connections(web.Server):
    """How many are open, and for how long a client may take nothing."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.open = 0
        self.taking_s = TAKING_S

    @property
    def is_writing(self) -> bool:
        return any(isinstance(one, _Connection) and one.is_writing for one in self.connections)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.open += 1
        # The system tells of a client that is gone, or that stands still; writing would wait for it for ever.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            taken_by = transport.get_extra_info("socket")
            taken_by.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self.taking_s * 1_000))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.open -= 1


class _NoRoom(asyncio.Protocol):
    """One connection too many: closed at once, so that those there are can be answered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class Listener:
    """A socket that listens while it is entered. `port` 0: any free one."""

    def __init__(self, handling: Handling, host: str, port: int, rules: Rules) -> None:
        self._handling = handling
        self._host = host
        self._asked_port = port
        self._rules = rules
        self._server: asyncio.Server | None = None
        self._web: _Connections | None = None
        self.port = port
        self.connections_max = connections_max()

    @property
    def connections(self) -> _Connections:
        assert self._web is not None
        return self._web

    async def __aenter__(self) -> Listener:
        loop = asyncio.get_running_loop()
        silent = logging.Logger("millstream.gateway")
        silent.addHandler(logging.NullHandler())
        served = self._web = _Connections(self._handling.handle, handler_cancellation=True, access_log=None)

        def connected() -> asyncio.Protocol:
            if served.open >= self.connections_max:
                return _NoRoom()
            return _Connection(served, loop=loop, access_log=None, logger=silent, keepalive_timeout=IDLE_S)

        try:
            self._server = await loop.create_server(connected, self._host, self._asked_port, backlog=_BACKLOG)
        except OSError as error:
            raise LocalFault(
                f"{self._host}:{self._asked_port} can't be listened on ({error.strerror or error}): give another "
                f"--port or --host, or stop what listens there"
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        self._handling.rules = structs.replace(self._rules, port=self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        """What is under way is cut off."""
        assert self._server is not None and self._web is not None
        self._server.close()
        await self._handling.asking.close()
        await self._web.shutdown(1.0)

    async def drain(self) -> None:
        """Take no new connection, and wait until all that is under way is answered, and the answers have left."""
        assert self._server is not None
        self._handling.is_draining = True
        self._server.close()
        await self._handling.is_idle.wait()
        while self.connections.is_writing:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(_LOOK_EVERY_S)
