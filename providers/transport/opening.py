"""Opens connections: to the first address of a server that accepts one, encrypted where they have to be.

Reads no environment, so it uses no proxy. Knows no HTTP, and keeps no connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TypeVar

import aiohappyeyeballs

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
"""One answer of `getaddrinfo`."""
# The next address is tried beside one that has not answered for so long, and a name is looked up again so much later.
_NEXT_ADDRESS_S = 0.25
_KEPT_S = 60.0

_P = TypeVar("_P", bound=asyncio.Protocol)


class ConnectTimeout(TimeoutError):
    """Raised if no connection was opened in time."""


async def opened(
    make: Callable[[], _P],
    infos: Sequence[AddressInfo],
    context: ssl.SSLContext | None,
    host: str,
    make_socket: Callable[[AddressInfo], socket.socket] | None = None,
) -> _P:
    """Opens a connection to one of a host's addresses and returns its protocol, which `make` makes. With a context it
    is encrypted. Raises OSError, or RuntimeError in its place (uvloop)."""
    wire = await aiohappyeyeballs.start_connection(
        infos, happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1, socket_factory=make_socket
    )
    try:
        name = host.rstrip(".") if context else None
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(make, sock=wire, ssl=context, server_hostname=name))[1]
    except BaseException:
        wire.close()
        raise


def literal_info(host: str, port: int) -> AddressInfo | None:
    """Returns the address that is written as a host; None for a name."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        return None
    family, address = (socket.AF_INET6, (host, port, 0, 0)) if ":" in host else (socket.AF_INET, (host, port))
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address


class Addresses:
    """The addresses of one server, looked up once a minute for all who ask."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._literal = literal_info(host, port)
        self._infos: asyncio.Task[Sequence[AddressInfo]] | None = None
        self._until = 0.0
        self._turn = 0

    async def take(self) -> Sequence[AddressInfo]:
        """Returns all addresses, each time another one first: each may be a machine of its own. Raises OSError."""
        if self._literal is not None:
            return [self._literal]
        infos, now = self._infos, asyncio.get_running_loop().time()
        if infos is None or (infos.done() and (now > self._until or infos.cancelled() or infos.exception())):
            infos = self._infos = asyncio.create_task(self._look_up())
            self._until = now + _KEPT_S
        every = await asyncio.shield(infos)
        first = self._turn % len(every)
        self._turn += 1
        return [*every[first:], *every[:first]]

    async def _look_up(self) -> Sequence[AddressInfo]:
        # Without addresses of a kind that this machine lacks.
        only, kind, protocol = socket.AI_ADDRCONFIG, socket.SOCK_STREAM, socket.IPPROTO_TCP
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(self._host, self._port, type=kind, proto=protocol, flags=only)

    async def close(self) -> None:
        if self._infos is not None:
            self._infos.cancel()
            await asyncio.gather(self._infos, return_exceptions=True)


class Trust:
    """The authorities that this machine trusts. They are read in a thread at first use, since that takes tens of
    milliseconds."""

    def __init__(self) -> None:
        self._context: asyncio.Future[ssl.SSLContext] | None = None

    async def context(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = asyncio.get_running_loop().run_in_executor(None, _context_of_system)
        return await asyncio.shield(self._context)


def _context_of_system() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
