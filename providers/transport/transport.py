"""Sends requests to providers and reads their responses, over connections that aiohttp's connector opens.

Owns the deadline for a whole call. Connections and their pools: pools. Follows no redirect, reads no environment, knows
no protocol. API keys travel only in headers. Which fault a broken connection is: connection_faults.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from typing import NamedTuple

import aiohttp
from yarl import URL

from ...engine.endpoint import Request, Response, SendError, await_clearance
from .connection_faults import fault_of
from .deadlines import Deadlines
from .http_connection import ExchangeError, HttpAnswer, Tap
from .pools import ConnectionPools, Pool, PooledConnection
from .rate_limit_headers import is_told_in
from .unanswered import UnansweredAddresses

CONNECT_S = 30.0
# llama.cpp promises to keep a connection open and closes it after a streamed reply. For this many seconds after that
# was seen, each stream gets a connection of its own, beginning with the one that is sent again.
FICKLE_S = 60.0
# The seconds between two answers with status 200 whose headers are read for quotas: reading costs a hundredth of a
# call.
LOOK_EVERY_S = 0.1
_HEADERS_KEPT = frozenset({"retry-after", "retry-after-ms", "date", "location", "x-amzn-errortype", "x-request-id"})
_COPIED_MAX = 1 << 18
_NO_HEADERS: Mapping[str, str] = {}


class Transport:
    """What all channels of one engine share: its connections, and the addresses that have never answered. The headers
    of sound answers, which hardly change, are read once in `look_every_s` seconds. `patience_s`: how long calls to an
    address without answers are repeated (None: not). `connections_max`: how many connections may be open at once."""

    def __init__(
        self,
        look_every_s: float = LOOK_EVERY_S,
        patience_s: float | None = None,
        connections_max: int = 1 << 14,
    ) -> None:
        self.look_every_s = look_every_s
        self.unanswered = UnansweredAddresses(patience_s)
        self.pools = ConnectionPools(self.unanswered, connections_max)

    def __repr__(self) -> str:
        return f"<Transport {self.pools}>"

    def channel(self, headers: Mapping[str, str], timeout_s: float) -> Channel:
        return Channel(self, headers, timeout_s)

    async def close(self) -> None:
        await self.pools.close()


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
            held = head.pool.take() or await self._transport.pools.room_for(head.pool)
            if held is None:
                held, answer = await self._over_new_line(head.pool, request, wire, tap, rest)
            else:
                if (wait := _clear(held, head.pool, request)) is not None:
                    await _await_clearance(wait, held, head.pool, request)
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
            if (wait := _clear(held, pool, request)) is not None:
                await _await_clearance(wait, held, pool, request)
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
        pool = self._transport.pools.pool(url, min(CONNECT_S, self._timeout_s / 2), is_alone=is_alone)
        return Head(pool, data + b"Content-Length: ")


def _clear(held: PooledConnection, pool: Pool, request: Request) -> Awaitable[object] | None:
    """Returns None if the request may be written now, which it nearly always may; else what to await."""
    try:
        return None if request.clear is None else request.clear()
    except BaseException:
        pool.give_back(held)  # nothing was written to it
        raise


async def _await_clearance(wait: Awaitable[object], held: PooledConnection, pool: Pool, request: Request) -> None:
    try:
        await wait
        await await_clearance(request)
    except BaseException:
        pool.give_back(held)
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
