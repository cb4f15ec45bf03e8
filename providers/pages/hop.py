"""One hop to a page: a GET over a connection of its own, whose answer is read to its end or to the limits.

Owns the request's headers and the limits of an answer. Follows no redirect and decodes no content; the endpoint decides
what an error means.
"""

from __future__ import annotations

import re
from email.utils import formatdate, parsedate_to_datetime
from typing import NamedTuple

import aiohttp
from aiohttp import StreamReader
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage

from ...engine.endpoint import Cleared
from ..transport.endpoint import USER_AGENT as NAME_AND_VERSION
from .connections import OnePage, PageConnections
from .page import CONTENT_ENCODING, CONTENT_TYPE, LOCATION
from .urls import WebUrl

BODY_MAX = 5 << 20
# The most bytes of an answer: a whole body, its head and the framing of its chunks.
_WIRE_MAX = BODY_MAX + (1 << 20)
USER_AGENT = f"{NAME_AND_VERSION} (reads pages for evaluations of language models; obeys robots.txt)"
ROBOT_NAME = NAME_AND_VERSION.partition("/")[0]

_LINE_MAX = 16_384
_FIELD_MAX = 32_768
_FIELDS_MAX = 200
# Surrogates, as which the parser represents bytes that are no UTF-8. They can't be stored as they are.
_STRAY = re.compile("[\udc80-\udcff]")
_KEPT = (CONTENT_TYPE, CONTENT_ENCODING, LOCATION, "retry-after", "date")
_HEADERS = (
    f"User-Agent: {USER_AGENT}\r\n"
    "Accept: text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.9,*/*;q=0.5\r\n"
    "Accept-Language: en,*;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate\r\n"
    "Connection: close\r\n\r\n"
)


class PageTooLarge(Exception):
    """Raised for a page whose body has more than BODY_MAX bytes as received, or whose whole answer is larger than
    `_WIRE_MAX`."""


class Hop(NamedTuple):
    """A response on the way to a page: its status, its body as received, and its headers that are in `_KEPT`, by names
    in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class HopProgress:
    """How far a hop got: whether it was connected, and the status, None before one is received."""

    is_connected = False
    status: int | None = None


async def fetch(connections: PageConnections, url: WebUrl, progress: HopProgress, cleared: Cleared) -> Hop:
    """Requests a URL, when it is cleared, and returns the answer. Raises Withdrawn, PageRefusal,
    PageTooLarge, OSError, and the exceptions of aiohttp's parser and reader."""
    protocol = await connections.open(url, _WIRE_MAX)
    try:
        progress.is_connected = True
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=False,
            max_line_size=_LINE_MAX,
            max_field_size=_FIELD_MAX,
            max_headers=_FIELDS_MAX,
        )
        await cleared()
        message, payload = await _ask(protocol, url)
        progress.status = message.code
        body = await _read(payload, message)
    except (aiohttp.ClientError, HttpProcessingError, OSError):
        if protocol.is_over:
            raise PageTooLarge from None
        raise
    finally:
        # The connection is not used again, and closing it politely would only take time.
        if protocol.transport is not None:
            protocol.transport.abort()
    headers = {}
    for name in _KEPT:
        if values := message.headers.getall(name, ()):
            value = ", ".join(values) if name == CONTENT_ENCODING else values[0]
            headers[name] = _STRAY.sub(_escaped if name == LOCATION else "\ufffd", value)
    if "retry-after" in headers and not _is_time(headers.get("date", "")):
        # A pause until a date is measured by our own clock if the host sends no date of its own.
        headers["date"] = formatdate(usegmt=True)
    return Hop(message.code, headers, body)


def _is_time(date: str) -> bool:
    try:
        return parsedate_to_datetime(date).tzinfo is not None
    except (ValueError, TypeError, OverflowError):
        return False


def _escaped(stray: re.Match[str]) -> str:
    """Returns a byte of an address percent-encoded, as browsers send it."""
    return f"%{ord(stray[0]) - 0xDC00:02X}"


async def _ask(protocol: OnePage, url: WebUrl) -> tuple[RawResponseMessage, StreamReader]:
    transport = protocol.transport
    if transport is None:
        raise ConnectionResetError("the connection closed before anything was sent")
    transport.write(f"GET {url.target} HTTP/1.1\r\nHost: {url.authority}\r\n{_HEADERS}".encode("ascii"))
    message, payload = await protocol.read()
    while 100 <= message.code < 200 and message.code != 101:
        message, payload = await protocol.read()
    return message, payload


async def _read(payload: StreamReader, message: RawResponseMessage) -> bytes:
    length = message.headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and len(length) < 19 and int(length) > BODY_MAX:
        raise PageTooLarge
    chunks: list[bytes] = []
    size = 0
    while chunk := await payload.readany():
        size += len(chunk)
        if size > BODY_MAX:
            raise PageTooLarge
        chunks.append(chunk)
        if payload.at_eof():
            break
    return b"".join(chunks)
