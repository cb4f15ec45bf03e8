"""Sends requests to providers and reads their responses, over connections that aiohttp's connector opens.

Owns connections and their pools, and the deadline for a whole call. Follows no redirect, reads no environment, knows
no protocol. API keys travel only in headers. Which fault a broken connection is: connection_faults.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, cast

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from ...engine.endpoint import Request, Response, SendError, await_clearance
from .connection_faults import fault_of, silent_address
from .deadlines import Deadlines
from .http_connection import ExchangeError, HttpAnswer, HttpConnection, Tap
from .rate_limit_headers import is_told_in
from .unanswered import UnansweredAddresses

CONNECT_S = 30.0
# An address that has never answered is named after so many seconds without a connection.
SILENT_S = 4.0
# Below the five seconds after which common servers close an idle connection.
KEEPALIVE_S = 4.0
# llama.cpp promises to keep a connection open and closes it after a streamed reply. For this many seconds after that
# was seen, each stream gets a connection of its own, beginning with the one that is sent again.
FICKLE_S = 60.0
# The seconds between two answers with status 200 whose headers are read for quotas: reading costs a hundredth of a
# call.
LOOK_EVERY_S = 0.1
_HEADERS_KEPT = frozenset({"retry-after", "retry-after-ms", "date", "location", "x-amzn-errortype", "x-request-id"})
_COPIED_MAX = 1 << 18
# Connections at once: below the ports that a machine has for one server's address.
CONNECTIONS_MAX = 16_384
_NO_HEADERS: Mapping[str, str] = {}


class LineConnector(aiohttp.TCPConnector):
    """A connector that makes connections and keeps none: its caller pools or closes them."""

    def __init__(self) -> None:
        # Only lanes decide how many calls are in flight: the connector must not queue as well.
        super().__init__(limit=0, ttl_dns_cache=60)
        self._factory = functools.partial(HttpConnection, self._loop)  # type: ignore[assignment, arg-type]


class Transport:
    """The pools of connections of one engine, shared by all its channels. Its connector is made with the first call,
    since it belongs to a running loop. The headers of sound answers, which hardly change, are read once in
    `look_every_s` seconds. `patience_s`: how long calls to an address without answers are repeated (None: not).
    `connections_max`: how many connections may be open at once."""

    def __init__(
        self,
        look_every_s: float = LOOK_EVERY_S,
        patience_s: float | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self.look_every_s = look_every_s
        self.unanswered = UnansweredAddresses(patience_s)
        self._connector: LineConnector | None = None
        self._pools: dict[tuple[URL, bool, float], Pool] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._room = connections_max
        # Calls that wait for a connection: an idle one of their pool, or None, which is the room for a new one.
        self._waiting: deque[tuple[Pool, asyncio.Future[PooledConnection | None]]] = deque()

    def __repr__(self) -> str:
        idle = sum(pool.idle for pool in self._pools.values())
        return f"<Transport [{f'{idle} idle' if self._connector is not None else 'closed'}]>"

    @property
    def connector(self) -> LineConnector:
        if self._connector is None:
            self._connector = LineConnector()
        return self._connector

    def channel(self, headers: Mapping[str, str], timeout_s: float) -> Channel:
        return Channel(self, headers, timeout_s)

    def pool(self, url: URL, connect_s: float, *, is_alone: bool) -> Pool:
        """Returns the pool of a URL's origin, which all channels share: many models of one server need no connection
        each. Requests with a connection of their own (`is_alone`) have another."""
        key = url.origin(), is_alone, connect_s
        pool = self._pools.get(key)
        if pool is None:
            request = aiohttp.ClientRequest("POST", url, loop=asyncio.get_running_loop())
            pool = Pool(self, request, aiohttp.ClientTimeout(total=None, connect=connect_s))
            self._pools[key] = pool
        return pool

    async def room_for(self, pool: Pool) -> PooledConnection | None:
        """Waits for room for one more connection and takes it; or returns a connection of the pool that has become
        idle meanwhile."""
        if (
            not self._room
            and (other := next((each for each in self._pools.values() if each.has_idle), None)) is not None
        ):
            other.close_oldest()
        if self._room:
            self._room -= 1
            return None
        waiting: asyncio.Future[PooledConnection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((pool, waiting))
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                held = waiting.result()
                self.free_room() if held is None else pool.give_back(held)
            raise

    def free_room(self) -> None:
        """Gives the room of a closed connection to the first call that waits."""
        if (first := self._first_waiting()) is None:
            self._room += 1
        else:
            self._waiting.popleft()
            first[1].set_result(None)

    def hand_over(self, held: PooledConnection, pool: Pool) -> bool:
        """Gives an idle connection to the first call that waits, or its room to one that needs another server.
        Returns whether any waits."""
        first = self._first_waiting()
        if first is None:
            return False
        if first[0] is pool:
            self._waiting.popleft()
            first[1].set_result(held)
        else:
            held.close()
        return True

    def _first_waiting(self) -> tuple[Pool, asyncio.Future[PooledConnection | None]] | None:
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()
        return self._waiting[0] if self._waiting else None

    def sweep_later(self) -> None:
        """Closes idle connections when they are too old, so that an idle server keeps no descriptors."""
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._close_old)

    def _close_old(self) -> None:
        self._sweep = None
        for pool in self._pools.values():
            pool.close_old()
        if any(pool.has_idle for pool in self._pools.values()):
            self.sweep_later()

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
        if self._connector is not None:
            await self._connector.close()
            self._connector = None


class PooledConnection:
    """A connection, with aiohttp's handle that closes it. `since`: when it was last given back, by time.monotonic."""

    __slots__ = ("_connection", "_transport", "line", "since")

    def __init__(self, line: HttpConnection, connection: Connection, transport: Transport) -> None:
        self.line = line
        self._connection = connection
        self._transport = transport
        self.since = 0.0

    def drop(self, asked: asyncio.Future[HttpAnswer]) -> None:
        """Closes the connection at once instead of giving it back: bytes that still arrive belong to no call."""
        self.line.abort()
        self.close()
        if asked.done() and not asked.cancelled():
            asked.exception()  # a caller cancelled at this moment never reads it

    def close(self) -> None:
        self._connection.close()
        self._transport.free_room()


class Pool:
    """Idle connections to one address. Kept here, since taking one from aiohttp's connector and giving it back costs as
    much as parsing an answer."""

    def __init__(self, transport: Transport, request: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout) -> None:
        self._transport = transport
        self._connector = transport.connector
        self._request = request
        self._timeout = timeout
        # A plain attribute, since it is read once a call.
        self.has_answered = False
        self._idle: deque[PooledConnection] = deque()

    @property
    def url(self) -> URL:
        """The URL of the first request, whose origin all of them share."""
        return self._request.url

    @property
    def idle(self) -> int:
        """The number of waiting connections that are not known to be closed."""
        return sum(held.line.is_connected() for held in self._idle)

    @property
    def has_idle(self) -> bool:
        """Whether a connection waits, though it may be closed."""
        return bool(self._idle)

    def take(self) -> PooledConnection | None:
        """Returns an idle connection that can be used, None if there is none; closes those that are too old."""
        idle = self._idle
        if idle:
            fresh_since = time.monotonic() - KEEPALIVE_S
            while idle:
                held = idle.popleft()
                if held.since > fresh_since and held.line.is_free():
                    return held
                held.close()
        return None

    async def connect(self) -> PooledConnection:
        """Opens and returns a new connection, for which there is room."""
        silent = None
        if not self.has_answered:
            loop, note = asyncio.get_running_loop(), self._transport.unanswered.note_fault
            silent = loop.call_later(SILENT_S, note, self.url, silent_address(self.url, SILENT_S))
        try:
            connection = await self._connector.connect(self._request, [], self._timeout)
        except BaseException as error:
            self._transport.free_room()
            if isinstance(error, TimeoutError):
                raise aiohttp.ConnectionTimeoutError(f"no connection to {self._request.url.origin()}") from error
            raise
        finally:
            if silent is not None:
                silent.cancel()
        return PooledConnection(cast(HttpConnection, connection.protocol), connection, self._transport)

    def give_back(self, held: PooledConnection) -> None:
        if held.line.should_close:
            held.close()
        elif not self._transport.hand_over(held, self):
            held.since = time.monotonic()
            self._idle.append(held)
            self._transport.sweep_later()

    def close_old(self) -> None:
        """Closes the idle connections that are too old to be used again."""
        fresh_since = time.monotonic() - KEEPALIVE_S
        while self._idle and self._idle[0].since <= fresh_since:
            self.close_oldest()

    def close_oldest(self) -> None:
        self._idle.popleft().close()

    def close(self) -> None:
        while self._idle:
            self.close_oldest()


class Head(NamedTuple):
    """The pool of connections to one URL, and the start of every request to it, up to the length of the body."""

    pool: Pool
    data: bytes


class Channel:
    """The sender of requests to one provider with one API key, with its headers and `timeout_s` for a whole call."""

    def __init__(self, transport: Transport, headers: Mapping[str, str], timeout_s: float) -> None:
        self._transport = transport
        self.unanswered = transport.unanswered
        self._headers = {**headers, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        self._timeout_s = timeout_s
        self._deadlines = Deadlines(timeout_s)
        self._heads: dict[tuple[str, bool], Head] = {}
        self._hung_up_at: dict[str, float] = {}
        self._look_at = 0.0

    async def send(
        self, request: Request, headers: Mapping[str, str] = _NO_HEADERS, tap: Tap | None = None
    ) -> Response:
        """Sends a request and reads the whole response. `headers` are this attempt's own; `tap` receives the bytes of a
        sound answer as they arrive. Raises SendError if no complete response arrives."""
        began = time.perf_counter()
        head = self._head_of(request)
        body = request.wire
        # Sent in one piece with its head, unless the body would take long to copy.
        first, rest = (body, b"") if len(body) <= _COPIED_MAX else (b"", body)
        wire = b"%b%d\r\n%b\r\n%b" % (head.data, len(body), _lines(headers) if headers else b"", first)
        try:
            held = head.pool.take() or await self._transport.room_for(head.pool)
            if held is None:
                held, answer = await self._over_new_line(head.pool, request, wire, tap, rest)
            else:
                await _await_clearance(held, head.pool, request)
                asked = held.line.ask(wire, tap, rest)
                self._deadlines.watch(asked)
                try:
                    answer = await asked
                except BaseException:
                    held.drop(asked)
                    raise
                finally:
                    self._deadlines.forget(asked)
            head.pool.give_back(held)
            if not head.pool.has_answered:
                head.pool.has_answered = True
                self.unanswered.note_answer(head.pool.url)
            # A stream may have been complete before it was cut, as its own marks show; an error's status shows what it
            # is.
            if answer.broken is not None and not request.stream and answer.status == 200:
                raise answer.broken
        except (TimeoutError, aiohttp.ClientError, ExchangeError, OSError) as error:
            fault = fault_of(error, self._timeout_s, head.pool.url)
            if not head.pool.has_answered:
                self.unanswered.note_fault(head.pool.url, fault)
            if fault.kind == "disconnected" and request.stream:
                self._hung_up_at[request.url] = time.monotonic()
            raise SendError(fault) from error
        first_at = answer.first_byte_at
        return Response(
            answer.status,
            answer.body,
            request.stream,
            answer.broken is not None,
            (time.perf_counter() - began) * 1000,
            None if first_at is None else (first_at - began) * 1000,
            {} if answer.status == 200 and began < self._look_at else self._headers_of(answer, began),
        )

    async def _over_new_line(
        self, pool: Pool, request: Request, wire: bytes, tap: Tap | None, rest: bytes
    ) -> tuple[PooledConnection, HttpAnswer]:
        async with asyncio.timeout(self._timeout_s):
            held = await pool.connect()
            await _await_clearance(held, pool, request)
            asked = held.line.ask(wire, tap, rest)
            try:
                return held, await asked
            except BaseException:
                held.drop(asked)
                raise

    def _headers_of(self, answer: HttpAnswer, began: float) -> dict[str, str]:
        if answer.status == 200:
            self._look_at = began + self._transport.look_every_s
        return _kept(answer.headers)

    def _head_of(self, request: Request) -> Head:
        is_alone = False
        if request.stream and self._hung_up_at:
            is_alone = time.monotonic() - self._hung_up_at.get(request.url, float("-inf")) < FICKLE_S
        if request.method == "GET":
            return self._build_head(request, is_alone=is_alone)  # the URL holds the query: none is repeated
        head = self._heads.get((request.url, is_alone))
        if head is None:
            head = self._heads[request.url, is_alone] = self._build_head(request, is_alone=is_alone)
        return head

    def _build_head(self, request: Request, *, is_alone: bool) -> Head:
        # The URL is not rewritten: a signature covers exactly what is sent.
        url = URL(request.url, encoded=request.url.isascii())
        headers = {**self._headers, "Connection": "close"} if is_alone else self._headers
        lines = [f"{request.method} {url.raw_path_qs} HTTP/1.1", f"Host: {url.host_port_subcomponent}"]
        data = "\r\n".join(lines).encode() + b"\r\n" + _lines(headers)
        # A shorter time to connect than the timeout of the call, so that a call that was never sent differs from one
        # without an answer.
        pool = self._transport.pool(url, min(CONNECT_S, self._timeout_s / 2), is_alone=is_alone)
        return Head(pool, data + b"Content-Length: ")


async def _await_clearance(held: PooledConnection, pool: Pool, request: Request) -> None:
    try:
        await await_clearance(request)
    except BaseException:
        pool.give_back(held)  # nothing was written to it
        raise


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()


def _kept(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """Returns the headers that are used later, with names in lower case."""
    found: dict[str, str] = {}
    for name_bytes, value in headers.items():
        name = name_bytes.decode("latin-1").lower()
        if name in _HEADERS_KEPT or is_told_in(name):
            found.setdefault(name, value.decode("utf-8", "surrogateescape"))
    return found
