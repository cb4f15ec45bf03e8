"""Sends requests to providers and reads their responses, over connections that aiohttp's connector opens.

Owns the deadline for a whole call. Connections and their pools: pools. Follows no redirect, reads no environment, knows
no protocol. API keys travel only in headers. Which fault a broken connection is: connection_faults.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, Protocol, cast

import aiohttp
from msgspec import Struct
from yarl import URL

from ...engine.endpoint import Fault, Receiver, Request, Response, SendError
from .connection_faults import fault_of
from .deadlines import Deadlines
from .http_connection import ExchangeError, HttpAnswer, HttpConnection, Tap
from .pools import LOOK_EVERY_S as LOOK_EVERY_S
from .pools import Pool
from .pools import Transport as Transport
from .rate_limit_headers import is_told_in

CONNECT_S = 30.0
# llama.cpp promises to keep a connection open and closes it after a streamed reply. For this many seconds after that
# was seen, each stream gets a connection of its own, beginning with the one that is sent again.
FICKLE_S = 60.0
_HEADERS_KEPT = frozenset({"retry-after", "retry-after-ms", "date", "location", "x-amzn-errortype", "x-request-id"})
_COPIED_MAX = 1 << 18
# What the connector and a connection raise; other errors are not the connection's.
_BROKEN = (TimeoutError, aiohttp.ClientError, ExchangeError, OSError)


class Cleaner(Protocol):
    """Strikes secrets out of what is received."""

    def cleaned(self, response: Response) -> Response:
        """Raises SendError for a response of which nothing may be kept."""
        ...

    def cleaned_fault(self, fault: Fault) -> Fault: ...


class Head(NamedTuple):
    """The pool of connections to one URL, and the start of every request to it, up to the length of the body."""

    pool: Pool
    data: bytes


class Channel:
    """The sender of requests to one provider with one API key, with its headers and `timeout_s` for a whole call."""

    def __init__(self, transport: Transport, headers: Mapping[str, str], timeout_s: float, cleaner: Cleaner) -> None:
        self.transport = transport
        self._headers = {**headers, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        self._timeout_s = timeout_s
        self._cleaner = cleaner
        self.deadlines = Deadlines(timeout_s)
        self._heads: dict[tuple[str, bool], Head] = {}
        self._hung_up_at: dict[str, float] = {}
        self._look_at = 0.0

    def begin(
        self,
        request: Request,
        receiver: Receiver,
        tap: Tap | None = None,
        headers: Coroutine[Any, Any, Mapping[str, str]] | None = None,
    ) -> Exchange:
        """Sends a request. `tap` receives the bytes of a sound answer as they arrive; `headers` makes this attempt's
        own."""
        exchange = Exchange(self, request, receiver, tap)
        if headers is None:
            exchange.start()
        else:
            exchange.start_with(headers)
        return exchange

    def response_to(self, request: Request, answer: HttpAnswer, pool: Pool, began: float) -> Response:
        """Returns the response that an answer is. Raises SendError if there is none."""
        if not pool.has_answered:
            pool.has_answered = True
            self.transport.unanswered.note_answer(pool.url)
        # A stream may have been complete before it was cut, as its own marks show; an error's status shows what it is.
        if answer.broken is not None and not request.stream and answer.status == 200:
            raise self.error_of(answer.broken, request, pool)
        first_at = answer.first_byte_at
        response = Response(
            answer.status,
            answer.body,
            request.stream,
            answer.broken is not None,
            (time.perf_counter() - began) * 1000,
            None if first_at is None else (first_at - began) * 1000,
            {} if answer.status == 200 and began < self._look_at else self._headers_of(answer, began),
        )
        return self._cleaner.cleaned(response)

    def error_of(self, error: Exception, request: Request, pool: Pool | None) -> Exception:
        """Returns what a receiver hears of an error: the fault of a broken connection, or the same error. `pool` None:
        no connection was asked for yet."""
        if pool is not None and isinstance(error, _BROKEN):
            fault = fault_of(error, self._timeout_s, pool.url)
            if not pool.has_answered:
                self.transport.unanswered.note_fault(pool.url, fault)
            if fault.kind == "disconnected" and request.stream:
                self._hung_up_at[request.url] = time.monotonic()
            error = SendError(fault)
        return SendError(self._cleaner.cleaned_fault(error.fault)) if isinstance(error, SendError) else error

    def _headers_of(self, answer: HttpAnswer, began: float) -> dict[str, str]:
        if answer.status == 200:
            self._look_at = began + self.transport.look_every_s
        return _kept(answer.headers)

    def head_of(self, request: Request) -> Head:
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
        pool = self.transport.pool(url, min(CONNECT_S, self._timeout_s / 2), is_alone=is_alone)
        return Head(pool, data + b"Content-Length: ")


class Exchange(Struct, eq=False):
    """One request under way, which is its `Attempt`: it waits for headers, for room, for a connection and to be
    cleared, whichever it must, then for the answer. `receiver` None: it is over."""

    channel: Channel
    request: Request
    receiver: Receiver | None
    tap: Tap | None
    lines: bytes = b""
    began: float = 0.0
    head: Head | None = None
    line: HttpConnection | None = None
    wait: asyncio.Task[Any] | asyncio.Handle | None = None
    is_written: bool = False

    def __repr__(self) -> str:
        if self.receiver is None:
            state = "over"
        elif self.line is not None:
            state = "written" if self.is_written else "waits to be cleared"
        elif self.wait is None:
            state = "waits for room"
        else:
            state = "waits for headers" if self.head is None else "connects"
        return f"<Exchange {self.request.url} [{state}]>"

    def abort(self) -> None:
        self._leave()

    def start_with(self, headers: Coroutine[Any, Any, Mapping[str, str]]) -> None:
        """Sends the request when its own headers are made."""
        self.wait = making = asyncio.get_running_loop().create_task(headers)
        making.add_done_callback(self._made)

    def _made(self, making: asyncio.Task[Mapping[str, str]]) -> None:
        if making.cancelled():
            return
        if (error := making.exception()) is not None:
            self.failed(cast(Exception, error))
        elif self.receiver is not None:
            self.lines = _lines(making.result())
            self.start()

    def start(self) -> None:
        """Sends the request, at once if it can."""
        self.began = time.perf_counter()
        try:
            self.head = head = self.channel.head_of(self.request)
        except Exception as error:  # noqa: BLE001 (an address that is none)
            self.failed(error)
            return
        self.line = head.pool.take()
        if self.line is not None:
            self._write()
        elif self.channel.transport.take_room(head.pool, self.take):
            self.take(None)

    def take(self, line: HttpConnection | None) -> None:
        """Takes what it has waited for; see `Take`."""
        self.line = line
        if line is not None:
            self.wait = asyncio.get_running_loop().call_soon(self._write)
        else:
            self.channel.deadlines.watch(self)
            self.channel.transport.open_in_turn(self._open)

    def _open(self) -> None:
        assert self.head is not None
        pool = self.head.pool
        if self.receiver is None:
            self.channel.transport.free_room()
        elif (line := pool.take()) is not None:  # given back meanwhile
            self.line = line
            self.channel.transport.free_room()
            self._write()
        else:
            self.wait = connecting = asyncio.get_running_loop().create_task(pool.connect())
            connecting.add_done_callback(self._connected)

    def _connected(self, connecting: asyncio.Task[HttpConnection]) -> None:
        assert self.head is not None
        if connecting.cancelled():
            self.channel.transport.free_room()
        elif (error := connecting.exception()) is not None:
            self.channel.transport.free_room()
            self.failed(cast(Exception, error))
        elif self.receiver is None:
            self.head.pool.close(connecting.result())
        else:
            self.line = connecting.result()
            self._write()

    def _write(self) -> None:
        """Writes the request when it is cleared."""
        receiver, head, line, body = self.receiver, self.head, self.line, self.request.wire
        assert receiver is not None and head is not None and line is not None
        try:
            wait_s = receiver.clear()
        except Exception as error:  # noqa: BLE001 (the receiver's own)
            if self._leave() is not None:
                receiver.broke(error)
            return
        if self.receiver is None:
            return  # aborted while it was cleared
        if wait_s > 0:
            self.wait = asyncio.get_running_loop().call_later(wait_s, self._write)
            return
        first, rest = (body, b"") if len(body) <= _COPIED_MAX else (b"", body)
        self.is_written = True
        self.channel.deadlines.watch(self)
        line.ask(self, b"%b%d\r\n%b\r\n%b" % (head.data, len(body), self.lines, first), self.tap, rest)

    def answered(self, answer: HttpAnswer) -> None:
        receiver, head, line = self.receiver, self.head, self.line
        assert receiver is not None and head is not None and line is not None
        self.receiver = None
        self.channel.deadlines.forget(self)
        # First, since the receiver may begin another.
        head.pool.give_back(line)
        try:
            response = self.channel.response_to(self.request, answer, head.pool, self.began)
        except Exception as error:  # noqa: BLE001 (the receiver decides what it means)
            receiver.broke(error)
        else:
            receiver.received(response)

    def failed(self, error: Exception) -> None:
        if (receiver := self._leave()) is not None:
            pool = None if self.head is None else self.head.pool
            receiver.broke(self.channel.error_of(error, self.request, pool))

    def _leave(self) -> Receiver | None:
        """Ends it wherever it is. Returns the receiver, which has heard nothing yet; None if it was over."""
        receiver, self.receiver = self.receiver, None
        if receiver is None:
            return None
        self.channel.deadlines.forget(self)
        self.channel.transport.waiting.pop(self.take, None)
        if self.wait is not None:
            self.wait.cancel()
        if self.line is not None and self.head is not None:
            if self.is_written:
                self.line.abort()  # bytes that still arrive belong to no call
            self.head.pool.give_back(self.line)
        return receiver


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
