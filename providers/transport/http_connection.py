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
from typing import NamedTuple, Protocol, cast

import httptools

from .decompression import CODINGS, OTHERS, Decompressor

# The most bytes of the decoded body, and of the status line with all headers.
BODY_MAX = 16 << 20
HEAD_MAX = 128 << 10
# The most bytes of the body before decompression: compressed data may go on for ever and hold nothing.
_PACKED_MAX = 2 * BODY_MAX
# The most bytes of framing around a chunk for each byte in it.
_FRAME_MAX = 32

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
    """Raised for an answer of more than BODY_MAX bytes. `status` is the answer's HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"an answer of more than {BODY_MAX >> 20} MiB, dropped there")
        self.status = status


class HttpAnswer(NamedTuple):
    """A received answer. `headers`: by name as written; of a repeated one, the last. `broken`: why the body is not
    complete, for callers that can use a part of it; None if it is. `first_byte_at`: when the body began, in seconds
    of time.perf_counter; None if it is empty."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    first_byte_at: float | None
    broken: ExchangeError | None = None


class Asker(Protocol):
    """Who sends a request over a connection; exactly one of its methods is called, once."""

    def answered(self, answer: HttpAnswer) -> None: ...

    def failed(self, error: Exception) -> None: ...


class HttpConnection(asyncio.Protocol):
    """The client's side of one connection to a provider, which carries one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] | None = None
        # Whether no further request may be sent on it.
        self.should_close = False
        self._loop = loop
        self._asker: Asker | None = None
        # The parser fills it directly: there may be thirty headers, and hardly any of them is read.
        self._heads: dict[bytes, bytes] = {}
        self.on_header = self._heads.__setitem__
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._tap: Tap | None = None
        self._begin()

    def __repr__(self) -> str:
        state = "closed" if not self.is_connected() else "idle" if self._asker is None else "asked"
        return f"<HttpConnection [{state}]>"

    def _begin(self) -> None:
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._beside = 0  # bytes outside of the body
        self._taken = 0  # and bytes in it
        self._body: bytes | bytearray = b""
        self._first_byte_at: float | None = None
        self._unpacking: Decompressor | None = None
        self._fault: ExchangeError | None = None
        self._is_interim = self._has_head = self._is_whole = False
        self._heads.clear()

    # --- called by its users ---

    def is_connected(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def is_free(self) -> bool:
        """Returns whether a request may be sent on the connection."""
        return not self.should_close and self.transport is not None and not self.transport.is_closing()

    def ask(self, asker: Asker, request: bytes, tap: Tap | None = None, body: bytes = b"") -> None:
        """Sends a request; the asker gets the whole answer or an ExchangeError, unless it calls `abort` before. `body`
        is the rest of a request that is too long to be copied."""
        if self.transport is None or self.transport.is_closing():
            asker.failed(NeverSent("the connection closed before anything was sent"))
            return
        self._asker = asker
        self._tap = tap
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
        """Closes the connection at once; whoever asked hears nothing more."""
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
        self.should_close = True
        self._ended(error)
        if self.closed is not None and not self.closed.done():
            self.closed.set_result(None)

    def eof_received(self) -> bool:
        self.should_close = True
        self._ended(None)
        return False

    def data_received(self, data: bytes) -> None:
        if self._asker is None:
            # No request is open: these bytes, and any that follow, belong to no call.
            self.abort()
            return
        taken = self._taken
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = self._fault or NoHttp("it goes over to another protocol")
        except httptools.HttpParserError as error:
            self.should_close = True
            if not self._is_whole:  # else the unreadable bytes came after the answer
                self._fault = self._fault or NoHttp(" ".join(str(error).split())[:200])
        if taken == self._taken:
            self._beside += len(data)
            if self._beside > HEAD_MAX + _FRAME_MAX * taken:
                self._fault = self._fault or NoHttp(f"it has more than {HEAD_MAX >> 10} KiB that are no body")
        if self._fault is not None:
            self._fail(self._fault)
        elif self._is_whole:
            self._finish(None)
        elif self._has_head:
            self._heads.clear()  # fields after the body are no headers

    def _ended(self, error: Exception | None) -> None:
        """Handles the end of the bytes that the server sends."""
        if self._asker is None:
            return
        if not self._has_head:
            self._fail(HungUp(f"the server closed before it answered ({error or 'it hung up'})"))
        elif error is None and not self._is_framed():
            self._finish(None)
        else:
            self._finish(BrokenOff(str(error or "the connection closed")))

    def _is_framed(self) -> bool:
        """Returns whether the headers show where the answer ends, so that an earlier end means a broken one."""
        for name, value in self._headers.items():
            match name.lower():
                case b"content-length":
                    return True
                case b"transfer-encoding" if _last_of(value) == b"chunked":
                    return True
        return False

    def _finish(self, broken: ExchangeError | None) -> None:
        if (asker := self._asker) is None:
            return
        unpacking = self._unpacking
        if broken is None and unpacking is not None and self._taken and not unpacking.is_whole:
            broken = BrokenOff("what is compressed ends in the middle")
        answer = HttpAnswer(self._status, self._headers, bytes(self._body), self._first_byte_at, broken)
        if not self._is_whole or self.transport is None or self.transport.get_write_buffer_size():
            # The server answered before the whole request was sent: the rest of it would precede the next request.
            self.should_close = True
        self._begin()
        # Last, since the asker may send its next request here.
        self._asker = self._tap = None
        asker.answered(answer)

    def _fail(self, error: ExchangeError) -> None:
        self.should_close = True
        if isinstance(error, BrokenOff):
            self._finish(error)  # its status may be useful even without its body
        asker = self._asker
        self.abort()
        if asker is not None:
            asker.failed(error)

    # --- called by the parser ---

    def on_message_begin(self) -> None:
        if self._is_whole:
            self.should_close = True  # another answer, which was not asked for

    def on_headers_complete(self) -> None:
        if self._is_whole:
            return
        self._status = self._parser.get_status_code()
        self._is_interim = 100 <= self._status < 200
        if self._is_interim:
            return
        self._has_head = True
        self._headers = self._heads.copy()
        if b"content-encoding" in b" ".join(self._headers).lower():
            for name, value in self._headers.items():
                if name.lower() == b"content-encoding":
                    self._unpack(value.strip().lower())

    def _unpack(self, coding: bytes) -> None:
        if coding in CODINGS:
            self._unpacking = Decompressor(coding)
        elif _last_of(coding) in OTHERS:
            told = coding[:40].decode("latin-1")
            self._fault = BrokenOff(f"it is packed as {told}, which was not asked for")

    def on_body(self, data: bytes) -> None:
        if self._is_whole or self._fault is not None:
            return
        if self._first_byte_at is None:
            self._first_byte_at = time.perf_counter()
        self._taken += len(data)
        if self._unpacking is not None:
            try:
                data = self._unpacking.take(data, BODY_MAX - len(self._body))
            except zlib.error as error:
                self._fault = BrokenOff(str(error))
                return
        if len(self._body) + len(data) > BODY_MAX or self._taken > _PACKED_MAX:
            self._fault = AnswerTooLarge(self._status)
            return
        if not self._body:
            self._body = data
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += data
        if self._tap is not None and self._status == 200:
            self._tell(self._tap, data)

    def _tell(self, tap: Tap, data: bytes) -> None:
        try:
            tap(data)
        except Exception as error:  # noqa: BLE001
            # A failing listener must not cost an answer that is paid for.
            self._tap = None
            said = {"message": "what listens to an answer failed", "exception": error, "protocol": self}
            self._loop.call_exception_handler(said)

    def on_message_complete(self) -> None:
        if self._is_interim:
            # An informational answer ("go on", early hints) is not the answer yet.
            self._is_interim = False
            self._heads.clear()
            return
        if not self._is_whole:
            self._is_whole = True
            self.should_close = self.should_close or not self._parser.should_keep_alive()


def _last_of(codings: bytes) -> bytes:
    return codings.rpartition(b",")[2].strip().lower()
