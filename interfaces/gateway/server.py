"""The socket of a gateway: who may still connect, all connections there are, and the end.

Owns listening and draining. What happens on a connection: connection. What a request gets: handling.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from msgspec import structs

from ...engine.fault import LocalFault
from ...wiring.files import connections_max
from ..dialects.dialect import Problem
from ..output import note
from .answers import refusal
from .connection import Connection
from .guard import Rules
from .handling import Handling
from .paths import CHAT
from .reading import DIALECTS
from .request import Request, Work
from .room import Room
from .whole import Whole

# A connection on which nothing comes is closed after so long, one that never brought a whole head too.
IDLE_S = 75.0
# One whose client takes nothing of what waits for it is closed after so long: a person may look at something else.
TAKING_S = 120.0
_BACKLOG = 1_024
_LOOK_EVERY_S = 0.02
# What is cut off gets so long to end.
_CUT_S = 1.0


class Connections:
    """All that are open, and what they have in common."""

    def __init__(self, begin: Callable[[Request], Whole | Work]) -> None:
        self.begin = begin
        self.idle_s = IDLE_S
        self.taking_s = TAKING_S
        self.room = Room()
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

    @staticmethod
    def failed(error: BaseException) -> Whole:
        """A defect is one line on stderr, and told the client in our words."""
        note(f"millstream serve: a defect, please report it: {type(error).__name__}: {error}")
        problem = Problem(500, "local_fault", "the gateway failed at this request")
        return structs.replace(refusal(problem, DIALECTS[CHAT], CHAT, ""), is_last=True)

    async def cut(self) -> None:
        """All of them, whatever is under way."""
        tasks = [connection.task for connection in self._open if connection.task is not None]
        for connection in self:
            connection.abort()
        if tasks:
            await asyncio.wait(tasks, timeout=_CUT_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CUT_S):
                await self._is_empty.wait()


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
        self.port = port
        self.connections = Connections(handling.begin)
        self.connections_max = connections_max()

    async def __aenter__(self) -> Listener:
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
        self._handling.rules = structs.replace(self._rules, port=self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        """What is under way is cut off."""
        assert self._server is not None
        self._server.close()
        await self._handling.close()
        await self.connections.cut()

    async def drain(self) -> None:
        """Take no new connection, and wait until all that is under way is answered, and the answers have left."""
        assert self._server is not None
        self._handling.is_draining = True
        self._server.close()
        await self._handling.is_idle.wait()
        while self.connections.is_writing:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(_LOOK_EVERY_S)
