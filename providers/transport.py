"""How bytes reach a provider and come back: aiohttp's connections and its parser.

Owns connections, the deadline for a whole call, size limits, and what a broken connection means. Follows
no redirect, reads no environment, knows no protocol. Keys travel only in headers.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from yarl import URL

from ..engine.endpoint import Fault, Request, Response, SendError
from .connections import StrictConnector
from .deadlines import Deadlines
from .limits import is_told_in

BODY_MAX = 16 << 20
CONNECT_S = 30.0
# Below the five seconds after which common servers close an idle connection.
KEEPALIVE_S = 4.0
# llama.cpp closes after a streamed reply and promises not to: where that was seen, streams get a connection of
# their own for so long, the one sent again first of all.
FICKLE_S = 60.0
# How often a sound answer's headers are looked at for what they tell of quotas: a look costs a hundredth of a call.
LOOK_EVERY_S = 0.1
_HEADERS_KEPT = frozenset({"retry-after", "retry-after-ms", "date", "location", "x-amzn-errortype", "x-request-id"})
_NO_HEADERS: Mapping[str, str] = {}
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
# Told the pieces of a body as they come.
Tap = Callable[[bytes], None]


class Transport:
    """Connections of one engine, shared by all its channels. Made lazily, since they belong to a running loop."""

    def __init__(self) -> None:
        self._connector: StrictConnector | None = None
        self._pools: list[Pool] = []

    def __repr__(self) -> str:
        idle = sum(pool.idle for pool in self._pools)
        return f"<Transport [{f'{idle} idle' if self._connector is not None else 'closed'}]>"

    @property
    def connector(self) -> StrictConnector:
        if self._connector is None:
            self._connector = StrictConnector()
        return self._connector

    def pool(self, request: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout) -> Pool:
        pool = Pool(self.connector, request, timeout)
        self._pools.append(pool)
        return pool

    async def close(self) -> None:
        for pool in self._pools:
            pool.close()
        self._pools.clear()
        if self._connector is not None:
            await self._connector.close()
            self._connector = None


class Pool:
    """Connections to one address that wait for their next call. Kept here, since taking one from aiohttp's connector
    and giving it back costs as much as parsing an answer."""

    def __init__(
        self, connector: StrictConnector, request: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout
    ) -> None:
        self._connector = connector
        self._request = request
        self._timeout = timeout
        self._idle: deque[tuple[Connection, float]] = deque()

    @property
    def idle(self) -> int:
        """Connections that wait, as far as nobody is known to have ended them."""
        return sum(
            connection.protocol is not None and connection.protocol.is_connected() for connection, _ in self._idle
        )

    async def take(self) -> Connection:
        fresh_since = time.monotonic() - KEEPALIVE_S
        while self._idle:
            connection, since = self._idle.popleft()
            protocol = connection.protocol
            if since > fresh_since and protocol is not None and protocol.is_connected() and not protocol.should_close:
                return connection
            connection.close()
        try:
            return await self._connector.connect(self._request, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {self._request.url.origin()}") from error

    def give_back(self, connection: Connection) -> None:
        if connection.protocol is None or connection.protocol.should_close:
            connection.close()
        else:
            self._idle.append((connection, time.monotonic()))

    def close(self) -> None:
        while self._idle:
            self._idle.popleft()[0].close()


class Head(NamedTuple):
    """What is the same for every request to one URL: its connections, and the bytes up to the body's length."""

    pool: Pool
    data: bytes


class Channel:
    """The way to one provider with one key: its headers, and the deadline for a whole call."""

    def __init__(self, transport: Transport, headers: Mapping[str, str], timeout_s: float) -> None:
        self._transport = transport
        self._headers = {**headers, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        self._timeout_s = timeout_s
        self._deadlines = Deadlines(timeout_s)
        self._heads: dict[tuple[str, bool], Head] = {}
        self._pools: dict[tuple[URL, bool], Pool] = {}
        self._hung_up_at: dict[str, float] = {}
        self._look_at = 0.0

    async def send(
        self, request: Request, headers: Mapping[str, str] = _NO_HEADERS, tap: Tap | None = None
    ) -> Response:
        """Send and read to the end. `headers` are this attempt's own; `tap` is told a sound answer's bytes as they
        come. Raises SendError where no response came whole."""
        progress = _Progress(tap)
        try:
            return await self._deadlines.within(self._exchange(request, headers, progress))
        except (TimeoutError, aiohttp.ClientError, HttpProcessingError, OSError) as error:
            fault = _fault_of(error, self._timeout_s, is_answered=progress.is_answered)
            if fault.kind == "disconnected" and request.stream:
                self._hung_up_at[request.url] = time.monotonic()
            raise SendError(fault) from error

    async def _exchange(self, request: Request, headers: Mapping[str, str], progress: _Progress) -> Response:
        # aiohttp's connections and parser without its session: that layer costs twice what these two do.
        began = time.perf_counter()
        head = self._head_of(request)
        connection = await head.pool.take()
        try:
            protocol = connection.protocol
            if protocol is None or protocol.transport is None or protocol.transport.is_closing():
                raise aiohttp.ClientConnectionResetError("the connection closed before anything was sent")
            protocol.set_response_params(read_until_eof=True)
            own = _lines(headers) if headers else b""
            protocol.transport.write(b"%b%d\r\n%b\r\n%b" % (head.data, len(request.wire), own, request.wire))
            message, payload = await protocol.read()
            while 100 <= message.code < 200:
                message, payload = await protocol.read()
            progress.is_answered = True
            tap = progress.tap if message.code == 200 else None
            response = await _read(message, payload, request, began, self._headers_of(message, began), tap)
        except BaseException:
            # Closed, not given back: what is still to come on it belongs to nobody.
            connection.close()
            raise
        if response.is_cut:
            connection.close()
        else:
            head.pool.give_back(connection)
        return response

    def _headers_of(self, message: RawResponseMessage, began: float) -> dict[str, str]:
        if message.code == 200:
            if began < self._look_at:
                return {}
            self._look_at = began + LOOK_EVERY_S
        return _kept(message.headers)

    def _head_of(self, request: Request) -> Head:
        is_alone = False
        if request.stream and self._hung_up_at:
            is_alone = time.monotonic() - self._hung_up_at.get(request.url, float("-inf")) < FICKLE_S
        if request.method == "GET":
            return self._build_head(request, is_alone=is_alone)  # what is asked stands in its URL: none comes twice
        head = self._heads.get((request.url, is_alone))
        if head is None:
            head = self._heads[request.url, is_alone] = self._build_head(request, is_alone=is_alone)
        return head

    def _build_head(self, request: Request, *, is_alone: bool) -> Head:
        # Taken as it is written: what was signed must be what is sent.
        url = URL(request.url, encoded=request.url.isascii())
        headers = {**self._headers, "Connection": "close"} if is_alone else self._headers
        lines = [f"{request.method} {url.raw_path_qs} HTTP/1.1", f"Host: {url.host_port_subcomponent}"]
        data = "\r\n".join(lines).encode() + b"\r\n" + _lines(headers)
        return Head(self._pool_of(url, headers, is_alone=is_alone), data + b"Content-Length: ")

    def _pool_of(self, url: URL, headers: Mapping[str, str], *, is_alone: bool) -> Pool:
        """One for each origin, whatever the paths."""
        origin = url.origin()
        pool = self._pools.get((origin, is_alone))
        if pool is None:
            # Shorter than the whole, so that a call that was never sent is told from one that was not answered.
            connect_s = min(CONNECT_S, self._timeout_s / 2)
            request = aiohttp.ClientRequest("POST", url, headers=headers, loop=asyncio.get_running_loop())
            pool = self._transport.pool(request, aiohttp.ClientTimeout(total=None, sock_connect=connect_s))
            self._pools[origin, is_alone] = pool
        return pool


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()


class _Progress:
    """How far an exchange came before it broke, and who wants to know of it."""

    def __init__(self, tap: Tap | None) -> None:
        self.is_answered = False
        self.tap = tap


async def _read(
    message: RawResponseMessage,
    payload: aiohttp.StreamReader,
    request: Request,
    began: float,
    headers: dict[str, str],
    tap: Tap | None,
) -> Response:
    chunks: list[bytes] = []
    size = 0
    first_byte_ms: float | None = None
    is_cut = False
    try:
        while chunk := await payload.readany():
            if first_byte_ms is None:
                first_byte_ms = (time.perf_counter() - began) * 1000
            size += len(chunk)
            if size > BODY_MAX:
                detail = f"an answer of more than {BODY_MAX >> 20} MiB, dropped there"
                raise SendError(Fault("too_large", detail, "never", message.code, is_billed_maybe=True))
            chunks.append(chunk)
            if tap is not None:
                tap(chunk)
            if payload.at_eof():
                break
    except (aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        # A stream may have said all it had to say before it was cut; its own marks tell. So does an
        # error's status.
        if not request.stream and message.code == 200:
            raise
        is_cut = True
    elapsed_ms = (time.perf_counter() - began) * 1000
    body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    return Response(message.code, body, request.stream, is_cut, elapsed_ms, first_byte_ms, headers)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Those that mean something, by their names in lower case; where one comes twice, the first."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        name = name.lower()
        if name in _HEADERS_KEPT or is_told_in(name):
            found.setdefault(name, value)
    return found


def _fault_of(error: BaseException, timeout_s: float, *, is_answered: bool) -> Fault:
    """What a broken exchange means: what was certainly never sent is given back."""
    said = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        if _can_open_no_file():
            return _out_of_files(said)
        return Fault("dns", said, "retry", quota="refund")
    if isinstance(error, OSError) and error.errno in _OUT_OF_FILES:
        return _out_of_files(said)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
        return Fault("connect", said, "retry", quota="refund")
    if isinstance(error, TimeoutError):
        return Fault("timeout", f"no whole answer within {timeout_s:g} s", "retry", is_billed_maybe=True)
    if isinstance(error, aiohttp.ClientConnectionResetError):
        return Fault("disconnected", said, "retry", quota="refund", is_immediate=True)
    if is_answered:
        return Fault("incomplete", f"the answer broke off ({said})", "retry", is_billed_maybe=True)
    if isinstance(error, HttpProcessingError):
        return Fault("incomplete", f"the answer is no HTTP ({error.message})", "retry", is_billed_maybe=True)
    detail = f"the server closed before it answered ({said})"
    return Fault("disconnected", detail, "retry", is_billed_maybe=True, is_immediate=True)


def _out_of_files(said: str) -> Fault:
    return Fault("connect", f"out of file descriptors ({said})", "wait", quota="refund", retry_after_s=1.0)


def _can_open_no_file() -> bool:
    """The resolver doesn't say when that is why it found nothing."""
    try:
        socket.socket().close()
    except OSError as error:
        return error.errno in _OUT_OF_FILES
    return False
