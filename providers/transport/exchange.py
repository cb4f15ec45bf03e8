"""Sends requests to providers and reads their responses, over connections that aiohttp's connector opens.

Owns the deadline for a whole call. Connections and their pools: transport. Follows no redirect, reads no environment,
knows no protocol. API keys travel only in headers. Which fault a broken connection is: connection_faults.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import aiohttp
from msgspec import Struct
from yarl import URL

from ...engine.endpoint import Receiver, Request, Response, SendError
from ..credentials.authorizer import Authorizer
from ..llm.protocol import AnswerListener
from .connection_faults import fault_of
from .deadlines import Deadlines
from .http_connection import ExchangeError, HttpAnswer, HttpConnection, Tap
from .rate_limit_headers import is_quota_name
from .secrets import SPELLED_OUT, Secrets
from .text_listener import TextListener
from .transport import Pool, Transport

CONNECT_S = 30.0
# llama.cpp promises to keep a connection open and closes it after a streamed reply. For this many seconds after that
# was seen, each stream gets a connection of its own, beginning with the one that is sent again.
FICKLE_S = 60.0
_HEADERS_KEPT = frozenset({"retry-after", "retry-after-ms", "date", "location", "x-amzn-errortype", "x-request-id"})
_COPIED_MAX = 1 << 18
# What the connector and a connection raise; other errors are not the connection's.
_BROKEN = (TimeoutError, aiohttp.ClientError, ExchangeError, OSError)


class Channel:
    """The sender of requests to one provider with one set of credentials, with its headers and `timeout_s` for a whole
    call. `secrets` are struck out of all that is received. `listen` makes a listener to a streamed answer; None: the
    protocol has none."""

    def __init__(
        self,
        transport: Transport,
        headers: Mapping[str, str],
        timeout_s: float,
        authorizer: Authorizer,
        secrets: Secrets,
        listen: Callable[[], AnswerListener] | None,
    ) -> None:
        self.transport = transport
        self.authorizer = authorizer
        self.secrets = secrets
        self.deadlines = Deadlines(timeout_s)
        # By URL: the pool of its connections, and the start of every request to it, up to the length of the body.
        self._heads: dict[str, tuple[Pool, bytes]] = {}
        # Before this time the headers of sound answers are not read again.
        self.look_at = 0.0
        self._headers = {**headers, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        self._timeout_s = timeout_s
        self._listen = listen
        self._is_fixed = authorizer.fixed is not None
        self._hung_up_at: dict[str, float] = {}

    def begin(self, request: Request, receiver: Receiver) -> Exchange:
        pool, head = self._heads.get(request.url) or self._head_of(request)
        tap = None
        if request.hear is not None and request.stream and self._listen is not None:
            tap = TextListener(self._listen(), self.secrets, request.hear).take
        exchange = Exchange(self, request, receiver, tap, pool, head)
        if self._is_fixed:
            exchange.start()
        else:
            exchange.wait = making = asyncio.get_running_loop().create_task(self._own_lines(request))
            making.add_done_callback(exchange.made)
        return exchange

    def _head_of(self, request: Request) -> tuple[Pool, bytes]:
        """Returns the head of a request, and keeps it for others to the same URL; a GET's holds the query, which none
        repeats."""
        is_fickle = time.monotonic() - self._hung_up_at.get(request.url, float("-inf")) < FICKLE_S
        is_alone = is_fickle and request.stream
        # The URL is not rewritten: a signature covers exactly what is sent.
        url = URL(request.url, encoded=request.url.isascii())
        headers = {**self._headers, "Connection": "close"} if is_alone else self._headers
        lines = f"{request.method} {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
        # A shorter time to connect than the timeout of the call, so that a call that was never sent differs from one
        # without an answer.
        pool = self.transport.pool(url, min(CONNECT_S, self._timeout_s / 2), is_alone=is_alone)
        head = pool, lines.encode() + _lines(headers) + b"Content-Length: "
        if request.method != "GET" and not is_fickle:
            self._heads[request.url] = head
        return head

    async def _own_lines(self, request: Request) -> bytes:
        try:
            return _lines(await self.authorizer.headers(request))
        finally:
            self.secrets.learn(self.authorizer.secrets)

    def headers_of(self, answer: HttpAnswer, began: float) -> dict[str, str]:
        """Returns the headers that are used later, with names in lower case."""
        if answer.status == 200:
            self.look_at = began + self.transport.look_every_s
        kept: dict[str, str] = {}
        for name_bytes, value in answer.headers.items():
            name = name_bytes.decode("latin-1").lower()
            if name in _HEADERS_KEPT or is_quota_name(name):
                kept.setdefault(name, self.secrets.struck_text(value.decode("utf-8", "surrogateescape")))
        return kept

    def fault_of(self, error: Exception, request: Request, pool: Pool) -> Exception:
        """Returns the fault of a broken connection; any other error as it is."""
        if not isinstance(error, _BROKEN):
            return error
        fault = fault_of(error, self._timeout_s, pool.url)
        if not pool.has_answered:
            self.transport.unanswered.note_fault(pool.url, fault)
        if fault.kind == "disconnected" and request.stream:
            self._hung_up_at[request.url] = time.monotonic()
            self._heads.pop(request.url, None)
        return SendError(fault)


class Exchange(Struct, eq=False):
    """One request under way, which is its `Attempt`: it waits for headers of its own, for a connection and to be
    cleared, whichever it must, then for the answer. `receiver` None: it is over. `began` 0: it waits for headers."""

    channel: Channel
    request: Request
    receiver: Receiver | None
    tap: Tap | None
    pool: Pool
    head: bytes
    lines: bytes = b""
    began: float = 0.0
    line: HttpConnection | None = None
    wait: asyncio.Task[Any] | asyncio.Handle | None = None
    is_written: bool = False

    def __repr__(self) -> str:
        if self.receiver is None:
            state = "over"
        elif self.line is not None:
            state = "written" if self.is_written else "waits to be cleared"
        else:
            state = "waits for a connection" if self.began else "waits for headers"
        return f"<Exchange {self.request.url} [{state}]>"

    def abort(self) -> None:
        self._leave()

    def made(self, making: asyncio.Task[bytes]) -> None:
        """Goes on with the headers of its own."""
        self.wait = None
        if making.cancelled():
            return
        if (error := making.exception()) is not None:
            self.failed(cast(Exception, error))
        elif self.receiver is not None:
            self.lines = making.result()
            self.start()

    def start(self) -> None:
        """Sends the request, at once if it can."""
        self.began = time.perf_counter()
        self.line = self.pool.take_first()
        if self.line is not None:
            self._write()
        else:
            self.pool.wait(self)

    def take(self, line: HttpConnection) -> None:
        """Sends the request over the connection that it has waited for."""
        self.line = line
        self._write()

    def _write(self) -> None:
        """Writes the request when it is cleared."""
        self.wait = None  # no cycle is left, which would wait for the garbage collector
        receiver, line, body = self.receiver, self.line, self.request.wire
        assert receiver is not None and line is not None
        if line.since and ((wire := line.transport) is None or wire.is_closing()):
            # A connection that was used before has closed while this waited for its turn or to be cleared.
            self.line = None
            self.pool.close(line)
            self.start()
            return
        self.channel.deadlines.watch(self)
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
        line.ask(self, b"%b%d\r\n%b\r\n%b" % (self.head, len(body), self.lines, first), self.tap, rest)

    def answered(self, answer: HttpAnswer) -> None:
        channel, request, receiver, pool, line = self.channel, self.request, self.receiver, self.pool, self.line
        assert receiver is not None and line is not None
        self.receiver = None
        channel.deadlines.pop(self, None)
        # First, since the receiver may begin another.
        pool.give_back(line)
        try:
            if not pool.has_answered:
                pool.has_answered = True
                channel.transport.unanswered.note_answer(pool.url)
            status, first_at, began = answer.status, answer.first_byte_at, self.began
            # A stream may have been complete before it was cut, as its own marks show; an error's status shows what it
            # is.
            if answer.broken is not None and not request.stream and status == 200:
                raise channel.fault_of(answer.broken, request, pool)
            if status == 401:
                channel.authorizer.refused()
            body = channel.secrets.struck(answer.body)
            if request.stream and body is not answer.body and channel.secrets.are_spelled_in(body):
                # The secret was whole in one event, and in pieces in others with the same text.
                raise SendError(SPELLED_OUT)
            response = Response(
                status,
                body,
                request.stream,
                answer.broken is not None,
                (time.perf_counter() - began) * 1000,
                None if first_at is None else (first_at - began) * 1000,
                {} if status == 200 and began < channel.look_at else channel.headers_of(answer, began),
            )
        except Exception as error:  # noqa: BLE001 (the receiver decides what it means)
            self._tell(receiver, error)
        else:
            receiver.received(response)

    def failed(self, error: Exception) -> None:
        if (receiver := self._leave()) is not None:
            # An error before was no connection's.
            self._tell(receiver, self.channel.fault_of(error, self.request, self.pool) if self.began else error)

    def _tell(self, receiver: Receiver, error: Exception) -> None:
        if isinstance(error, SendError):
            error = SendError(self.channel.secrets.struck_fault(error.fault))
        receiver.broke(error)

    def _leave(self) -> Receiver | None:
        """Ends it wherever it is. Returns the receiver, which has heard nothing yet; None if it was over."""
        receiver, self.receiver = self.receiver, None
        if receiver is None:
            return None
        self.channel.deadlines.pop(self, None)
        self.pool.leave(self)
        if self.wait is not None:
            self.wait.cancel()
        if self.line is not None:
            if self.is_written:
                self.line.abort()  # bytes that still arrive belong to no call
            self.pool.give_back(self.line)
        return receiver


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()
