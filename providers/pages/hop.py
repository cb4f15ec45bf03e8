"""One hop to a page: a GET over a connection of its own, whose answer is read to its end or to the limits.

Owns the request's headers and the limits of an answer. Follows no redirect and decodes no content; the endpoint decides
what an error means.
"""

from __future__ import annotations

import re
from email.utils import formatdate, parsedate_to_datetime

from ...engine.endpoint import Cleared
from ..transport.endpoint import USER_AGENT as NAME_AND_VERSION
from ..transport.http_connection import HttpAnswer
from .connections import PageConnections
from .page import CONTENT_ENCODING, CONTENT_TYPE, LOCATION
from .urls import WebUrl

USER_AGENT = f"{NAME_AND_VERSION} (reads pages for evaluations of language models; obeys robots.txt)"
ROBOT_NAME = NAME_AND_VERSION.partition("/")[0]

# Surrogates, as which bytes that are no UTF-8 are read. They can't be stored as they are.
_STRAY = re.compile("[\udc80-\udcff]")
_KEPT = (CONTENT_TYPE, CONTENT_ENCODING, LOCATION, "retry-after", "date")
_HEADERS = (
    f"User-Agent: {USER_AGENT}\r\n"
    "Accept: text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.9,*/*;q=0.5\r\n"
    "Accept-Language: en,*;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate\r\n"
    "Connection: close\r\n\r\n"
)


async def fetch(connections: PageConnections, url: WebUrl, cleared: Cleared) -> HttpAnswer:
    """Requests a URL, when it is cleared, and returns the answer, which may have broken off. Raises Withdrawn,
    PageRefusal, OSError and ExchangeError."""
    connection = await connections.open(url)
    try:
        await cleared()
        connection.ask(connection, f"GET {url.target} HTTP/1.1\r\nHost: {url.authority}\r\n{_HEADERS}".encode("ascii"))
        return await connection.answer
    finally:
        # The connection is not used again, and closing it politely would only take time.
        connection.abort()


def headers_of(answer: HttpAnswer) -> dict[str, str]:
    """Returns the headers of an answer that are in `_KEPT`, by names in lower case."""
    headers: dict[str, str] = {}
    for name_bytes, value in answer.headers.items():
        if (name := name_bytes.decode("latin-1").lower()) in _KEPT:
            stray = _escaped if name == LOCATION else "\ufffd"
            headers[name] = _STRAY.sub(stray, value.decode("utf-8", "surrogateescape"))
    if "retry-after" in headers and not _is_time(headers.get("date", "")):
        # A pause until a date is measured by our own clock if the host sends no date of its own.
        headers["date"] = formatdate(usegmt=True)
    return headers


def _is_time(date: str) -> bool:
    try:
        return parsedate_to_datetime(date).tzinfo is not None
    except (ValueError, TypeError, OverflowError):
        return False


def _escaped(stray: re.Match[str]) -> str:
    """Returns a byte of an address percent-encoded, as browsers send it."""
    return f"%{ord(stray[0]) - 0xDC00:02X}"
