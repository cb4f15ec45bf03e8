"""One connection to a server, which sends a request and receives its answer.

Owns HTTP's framing, by llhttp: where an answer begins and ends, and which bytes are no HTTP or were not asked for.
aiohttp's connector makes these connections and resolves names; its own parser costs ten times as much. Knows no
protocol above HTTP.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable
from typing import ClassVar, Protocol, cast

import httptools
from aiohttp.connector import Connection
from msgspec import Struct

from .decompression import CODINGS, OTHERS, Decompressor

# The most bytes of the decoded body, and of the status line with all headers.
BODY_MAX = 16 << 20
HEAD_MAX = 128 << 10
# No header has this name: it is among the fields from the end of an answer until another message begins.
_WHOLE = b"\r\n"

# A callback that receives the pieces of a body as they arrive.
Tap = Callable[[bytes], None]


class ExchangeError(Exception):
    """Raised if no complete answer was received."""


class NeverSent(ExchangeError):
    """Raised if the connection was closed before a byte of the request was sent."""


class HungUp(ExchangeError):
    """Raised if the server closed the connection before the head of its answer was complete."""


class BrokenOff(ExchangeError):
    """Raised if an answer ends, or can't be decompressed, in the middle."""


class NoHttp(ExchangeError):
    """Raised if the answer is not HTTP."""


class AnswerTooLarge(ExchangeError):
    """Raised for an answer whose body has more than `body_max` bytes. `status` is the answer's HTTP status."""

    def __init__(self, status: int, body_max: int) -> None:
        super().__init__(f"an answer of more than {body_max >> 20} MiB, dropped there")
        self.status = status


class HttpAnswer(Struct, eq=False):
    """An answer, as far as it was received. `status`: below 0 until the head is complete. `headers`: by name as
    written; of a repeated one, the last. `first_byte_at`: when the body began, in seconds of time.perf_counter; None if
    it is empty. `broken`: why it is not complete, for callers that can use a part of it; None if it is. The rest is for
    the connection: the body so far, its length as it was sent, and the number of all other bytes."""

    status: int = -1
    headers: dict[bytes, bytes] = {}
    body: bytes = b""
    first_byte_at: float | None = None
    broken: ExchangeError | None = None
    is_whole: bool = False
    received: bytes | bytearray = b""
    packed: int = 0
    framing: int = 0
    unpacking: Decompressor | None = None


class Asker(Protocol):
    """Who sends a request over a connection; exactly one of its methods is called, once."""

    def answered(self, answer: HttpAnswer) -> None: ...

    def failed(self, error: Exception) -> None: ...


class HttpConnection(asyncio.Protocol):
    """The client's side of one connection to a server, which carries one request at a time."""

    body_max: ClassVar[int] = BODY_MAX
    # The most bytes that are no body, and how many more of them each byte of the body allows.
    framing_max: ClassVar[int] = HEAD_MAX
    framing_share: ClassVar[int] = 32
    # Whether a packed body is unpacked as it arrives.
    unpacks: ClassVar[bool] = True

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] | None = None
        # Whether no further request may be sent on it.
        self.should_close = False
        # For its pool: aiohttp's handle, which closes it, and when it was last given back, by time.monotonic.
        self.handle: Connection | None = None
        self.since = 0.0
        self._loop = loop
        self._asker: Asker | None = None
        self._tap: Tap | None = None
        self._answer = HttpAnswer()
        # The parser calls both directly: there may be thirty headers, and hardly any of them is read.
        self._fields: dict[bytes, bytes] = {}
        self.on_header = self._fields.__setitem__
        self.on_message_begin = self._fields.clear
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def __repr__(self) -> str:
        state = "closed" if not self.is_connected() else "idle" if self._asker is None else "asked"
        return f"<HttpConnection [{state}]>"

    # --- called by its users ---

    def is_connected(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def ask(self, asker: Asker, request: bytes, tap: Tap | None = None, body: bytes = b"") -> None:
        """Sends a request; the asker gets the whole answer or an ExchangeError, unless it calls `abort` before. `body`
        is the rest of a request that is too long to be copied."""
        if self.transport is None or self.transport.is_closing():
            asker.failed(NeverSent("the connection closed before anything was sent"))
            return
        self._asker, self._tap = asker, tap
        self.transport.write(request)
        if body:
            self.transport.write(body)

    def close(self) -> None:
        if self.transport is None:
            return
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # closing would wait until a server that may never read has taken the rest
        else:
            self.transport.close()

    def abort(self) -> None:
        """Closes the connection at once; the asker hears nothing more."""
        self.should_close = True
        self._asker = self._tap = None
        if self.transport is not None:
            self.transport.abort()

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio's
        self.closed = self._loop.create_future()

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        # First: closing the connector waits for it, and the asker might raise.
        if self.closed is not None and not self.closed.done():
            self.closed.set_result(None)
        self._cut(error)

    def eof_received(self) -> bool:
        self._cut(None)
        return False

    def data_received(self, data: bytes) -> None:
        if self._asker is None:
            # No request is open: these bytes, and any that follow, belong to no call.
            self.abort()
            return
        answer = self._answer
        packed = answer.packed
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            answer.broken = answer.broken or NoHttp("it goes over to another protocol")
        except httptools.HttpParserError as error:
            self.should_close = True
            if not answer.is_whole:  # else the unreadable bytes follow the answer
                answer.broken = answer.broken or NoHttp(" ".join(str(error).split())[:200])
        answer.framing += len(data) - answer.packed + packed
        if answer.framing > self.framing_max + self.framing_share * answer.packed:
            answer.broken = answer.broken or NoHttp(f"it has more than {self.framing_max >> 10} KiB that are no body")
        if answer.is_whole or answer.broken is not None:
            self._end(answer.broken)
        elif answer.status >= 0:
            self._fields.clear()  # fields after the body are no headers

    def _cut(self, error: Exception | None) -> None:
        """Handles the end of the bytes that the server sends."""
        self.should_close = True
        if self._answer.status < 0:
            self._end(HungUp(f"the server closed before it answered ({error or 'it hung up'})"))
        elif error is None and not self._is_framed():
            self._end(None)
        else:
            self._end(BrokenOff(str(error or "the connection closed")))

    def _is_framed(self) -> bool:
        """Returns whether the headers show where the answer ends, so that an earlier end means a broken one."""
        codings = self._values(b"transfer-encoding")
        return bool(self._values(b"content-length")) or any(_last_of(coding) == b"chunked" for coding in codings)

    def _values(self, name: bytes) -> list[bytes]:
        """Returns the values of a header, in lower case."""
        return [value.strip().lower() for each, value in self._answer.headers.items() if each.lower() == name]

    def _end(self, broken: ExchangeError | None) -> None:
        """Hands over the answer, or what is in its place. The status of one that broke off may be useful even without
        its body."""
        asker, answer = self._asker, self._answer
        if asker is None:
            return
        if broken is None and answer.unpacking is not None and answer.packed and not answer.unpacking.is_whole:
            broken = BrokenOff("what is compressed ends in the middle")
        if broken is not None:
            self.abort()
        elif _WHOLE not in self._fields or self.transport is None or self.transport.get_write_buffer_size():
            # Bytes of another answer follow, or the server answered before the whole request was sent: the rest of it
            # would precede the next request.
            self.should_close = True
        # Before it is handed over, since the asker may send its next request then.
        self._answer, self._asker, self._tap = HttpAnswer(), None, None
        if broken is None or isinstance(broken, BrokenOff):
            answer.body, answer.broken = bytes(answer.received), broken
            asker.answered(answer)
        else:
            asker.failed(broken)

    # --- called by the parser ---

    def on_headers_complete(self) -> None:
        answer, status = self._answer, self._parser.get_status_code()
        if answer.status >= 0 or 100 <= status < 200:
            return  # another answer, which was not asked for; an informational one ("go on", early hints)
        answer.status, answer.headers = status, self._fields.copy()
        if self.unpacks and b"content-encoding" in b" ".join(answer.headers).lower():
            for coding in self._values(b"content-encoding"):
                if coding in CODINGS:
                    answer.unpacking = Decompressor(coding)
                elif _last_of(coding) in OTHERS:
                    name = coding[:40].decode("latin-1")
                    answer.broken = BrokenOff(f"it is packed as {name}, which was not asked for")

    def on_body(self, data: bytes) -> None:
        answer = self._answer
        if answer.is_whole or answer.broken is not None:
            return
        if answer.first_byte_at is None:
            answer.first_byte_at = time.perf_counter()
        answer.packed += len(data)
        if answer.unpacking is not None:
            try:
                data = answer.unpacking.take(data, self.body_max - len(answer.received))
            except zlib.error as error:
                answer.broken = BrokenOff(str(error))
                return
        # Compressed data may go on for ever and hold nothing.
        if len(answer.received) + len(data) > self.body_max or answer.packed > 2 * self.body_max:
            answer.broken = AnswerTooLarge(answer.status, self.body_max)
            return
        if not answer.received:
            answer.received = data
        else:
            if isinstance(answer.received, bytes):
                answer.received = bytearray(answer.received)
            answer.received += data
        if self._tap is not None and answer.status == 200:
            self._tell(self._tap, data)

    def _tell(self, tap: Tap, data: bytes) -> None:
        try:
            tap(data)
        except Exception as error:  # noqa: BLE001
            # A failing listener must not cost an answer that is paid for.
            self._tap = None
            context = {"message": "what listens to an answer failed", "exception": error, "protocol": self}
            self._loop.call_exception_handler(context)

    def on_message_complete(self) -> None:
        answer = self._answer
        if answer.status >= 0 and not answer.is_whole:
            answer.is_whole = True
            self._fields[_WHOLE] = b""
            self.should_close = self.should_close or not self._parser.should_keep_alive()


def _last_of(codings: bytes) -> bytes:
    return codings.rpartition(b",")[2].strip().lower()
