"""Opens connections to the hosts of pages. Every address is checked where its socket is made, and no socket is made
elsewhere: only public addresses are connected to, whatever a name resolves to and however an address is written.

Reads no environment, so it uses no proxy. Keeps no connection: the next request to a host would be too late for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import aiohappyeyeballs

from ...engine.fault import LocalFault
from ..transport.http_connection import AnswerTooLarge, HttpAnswer, HttpConnection
from .addresses import is_public
from .guard import ConnectionTarget, Guard
from .own_network import has_route, lack_of
from .urls import WebUrl

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
"""One answer of `getaddrinfo`."""
Resolve = Callable[[str, int], Awaitable[Sequence[AddressInfo]]]
NewSocket = Callable[[int, int, int], socket.socket]

# A name whose servers are silent occupies a thread for some ten seconds: with this many, other names rarely wait for
# it.
_RESOLVERS = 32
_NEXT_ADDRESS_S = 0.25


class PageConnection(HttpConnection):
    """A connection to a page's host, for one request, whose `answer` it has itself. Bodies stay as they are sent: a
    worker unpacks them. Chunks may have endless extensions, and endless lines may precede an answer: all that is no
    body is limited to a mebibyte."""

    body_max = 5 << 20
    framing_max = 1 << 20
    framing_share = 0
    unpacks = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.answer: asyncio.Future[HttpAnswer] = loop.create_future()

    def answered(self, answer: HttpAnswer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def failed(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if any(length.isdigit() and int(length[:19]) > self.body_max for length in self._values(b"content-length")):
            self._answer.broken = AnswerTooLarge(self._answer.status, self.body_max)


class NotPublic(OSError):
    """Raised for a host that resolves to an address that is not public."""


class PageConnections:
    """The opener of connections to pages' hosts. By default `resolve`, `new_socket` and `has_route` are the
    system's."""

    def __init__(
        self,
        guard: Guard,
        *,
        resolve: Resolve | None = None,
        new_socket: NewSocket = socket.socket,
        has_route: Callable[[], bool] = has_route,
    ) -> None:
        self._guard = guard
        self._resolve = resolve or self._ask_system
        self._new_socket = new_socket
        self._has_route = has_route
        self._resolvers: ThreadPoolExecutor | None = None
        self._trust: asyncio.Future[ssl.SSLContext] | None = None

    def __repr__(self) -> str:
        return f"<PageConnections {self._guard}>"

    async def own_lack(self, error: BaseException) -> str:
        """Returns in words what our network lacks if that is why a host could not be reached, else an empty text."""
        return await lack_of(error, self._resolve, self._has_route)

    def check(self, url: WebUrl) -> ConnectionTarget:
        """Returns where to connect for a URL; raises PageRefusal if it may not be requested."""
        return self._guard.way_to(url)

    async def open(self, url: WebUrl) -> PageConnection:
        """Opens and returns a connection; the caller must abort it. Raises PageRefusal or OSError."""
        way = self.check(url)
        context = await self._trusted() if url.scheme == "https" else None
        infos = [_info_of(way)] if way.is_literal else await self._resolve(way.host, way.port)
        if not infos:
            raise socket.gaierror(socket.EAI_NONAME, f"{way.host} has no address")
        opened = await self._connect(infos, url, is_free=way.is_free)
        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.create_connection(
                lambda: PageConnection(loop),
                sock=opened,
                ssl=context,
                server_hostname=url.host if context else None,
            )
        except BaseException:
            opened.close()
            raise
        return protocol

    async def _connect(self, infos: Sequence[AddressInfo], url: WebUrl, *, is_free: bool) -> socket.socket:
        refused: list[NotPublic] = []

        def make_socket(info: AddressInfo) -> socket.socket:
            family, kind, protocol, _, address = info
            if not (is_free or is_public(str(address[0]))):
                refused.append(NotPublic(f"{url.host} leads to {address[0]}, which is not a public address"))
                raise refused[-1]
            return self._new_socket(family, kind, protocol)

        try:
            return await aiohappyeyeballs.start_connection(
                infos, happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1, socket_factory=make_socket
            )
        except (OSError, RuntimeError):
            # Several errors are combined into one without a kind.
            if refused and len(refused) == len(infos):
                raise refused[0] from None
            raise

    def close(self) -> None:
        if self._resolvers is not None:
            self._resolvers.shutdown(wait=False, cancel_futures=True)
            self._resolvers = None
        self._trust = None

    async def _ask_system(self, host: str, port: int) -> Sequence[AddressInfo]:
        if self._resolvers is None:
            # Not the loop's own threads, which are few and which other work waits for.
            self._resolvers = ThreadPoolExecutor(_RESOLVERS, "millstream-names")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._resolvers, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        )

    async def _trusted(self) -> ssl.SSLContext:
        if self._trust is None:
            # Reading the system's certificates takes tens of milliseconds, for which the loop must not be blocked.
            self._trust = asyncio.get_running_loop().run_in_executor(None, _trusted_by_system)
        return await asyncio.shield(self._trust)


def _trusted_by_system() -> ssl.SSLContext:
    context = ssl.create_default_context()
    require_authorities(context, ssl.get_default_verify_paths().capath)
    context.set_alpn_protocols(["http/1.1"])
    return context


def require_authorities(context: ssl.SSLContext, folder: str | None) -> None:
    """Raises LocalFault if this machine has no certificates of authorities. Those in `folder` are loaded on demand, so
    a file in it is enough."""
    if context.cert_store_stats()["x509_ca"]:
        return
    if folder is None or not os.path.isdir(folder) or not os.listdir(folder):
        raise LocalFault(
            "this machine has no certificates of authorities, so that no https page can be read: install "
            "ca-certificates, or name a file of them in SSL_CERT_FILE"
        )


def _info_of(way: ConnectionTarget) -> AddressInfo:
    if ":" in way.host:
        return (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (way.host, way.port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (way.host, way.port))
