"""How bytes reach a provider and come back: aiohttp, one session for all endpoints of an engine.

Owns connections, the deadline for a whole call, size limits, and what a broken connection means. Follows
no redirect, reads no environment, knows no protocol. Keys travel only in headers.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Mapping

import aiohttp

from ..engine.endpoint import Fault, Request, Response, SendError
from .connections import StrictConnector

BODY_MAX = 16 << 20
CONNECT_S = 30.0
# Below the five seconds after which common servers close an idle connection.
KEEPALIVE_S = 4.0
# llama.cpp closes after a streamed reply and promises not to: where that was seen, streams get a connection of
# their own for so long, the one sent again first of all.
FICKLE_S = 60.0
_HEADERS_KEPT = ("retry-after", "retry-after-ms", "date", "location", "x-request-id")
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


class Transport:
    """Connections of one engine. Made lazily, since a session belongs to a running loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._hung_up_at: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Transport [{'open' if self._session is not None else 'closed'}]>"

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, request: Request, headers: Mapping[str, str], timeout_s: float) -> Response:
        """Send and read to the end. Raises SendError where no response came whole."""
        session = self._session or self._open()
        began = time.perf_counter()
        # Shorter than the whole, so that a call that was never sent is told from one that was not answered.
        connect_s = min(CONNECT_S, timeout_s / 2)
        is_answered = False
        try:
            async with session.post(
                request.url,
                data=request.wire,
                headers=self._alone_if_hung_up(request, headers),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=connect_s),
            ) as answer:
                is_answered = True
                return await self._read(answer, request, began)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            fault = _fault_of(error, timeout_s, is_answered=is_answered)
            if fault.kind == "disconnected" and request.stream:
                self._hung_up_at[request.url] = time.monotonic()
            raise SendError(fault) from error

    def _alone_if_hung_up(self, request: Request, headers: Mapping[str, str]) -> Mapping[str, str]:
        if request.stream and time.monotonic() - self._hung_up_at.get(request.url, float("-inf")) < FICKLE_S:
            return {**headers, "Connection": "close"}
        return headers

    async def _read(self, answer: aiohttp.ClientResponse, request: Request, began: float) -> Response:
        chunks: list[bytes] = []
        size = 0
        first_byte_ms: float | None = None
        is_cut = False
        try:
            async for chunk in answer.content.iter_any():
                if first_byte_ms is None:
                    first_byte_ms = (time.perf_counter() - began) * 1000
                size += len(chunk)
                if size > BODY_MAX:
                    answer.close()
                    detail = f"an answer of more than {BODY_MAX >> 20} MiB, dropped there"
                    raise SendError(Fault("too_large", detail, "never", answer.status, is_billed_maybe=True))
                chunks.append(chunk)
        except (aiohttp.ClientPayloadError, aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            # A stream may have said all it had to say before it was cut; its own marks tell. So does an
            # error's status.
            if not request.stream and answer.status == 200:
                raise
            is_cut = True
        headers = {} if answer.status == 200 else _kept(answer.headers)
        elapsed_ms = (time.perf_counter() - began) * 1000
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return Response(answer.status, body, request.stream, is_cut, elapsed_ms, first_byte_ms, headers)

    def _open(self) -> aiohttp.ClientSession:
        connector = StrictConnector(keepalive_s=KEEPALIVE_S)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in _HEADERS_KEPT if name in headers}


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
    if isinstance(error, aiohttp.ClientResponseError):
        return Fault("incomplete", f"the answer is no HTTP ({said})", "retry", is_billed_maybe=True)
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
