"""The bytes of an answer: its head, and its body if that is known.

Owns the headers about the connection and the body's length. The other headers: response_headers.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from msgspec import Struct

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class HttpResponse(Struct, frozen=True):
    """An answer that is written at once. `fields`: lines of its head, each with its line end, beside Content-Length,
    Date and Connection; `is_last`: nothing more is read from this client."""

    status: int
    fields: str
    body: bytes
    is_last: bool = False

    def data(self, *, is_new: bool, closes: bool, is_head: bool) -> bytes:
        """Returns the bytes of the answer. `is_new`: in HTTP/1.1, else 1.0; `closes`: the connection ends after it;
        `is_head`: without the body."""
        head = _head(self.status, f"{self.fields}Content-Length: {len(self.body)}\r\n", is_new, closes)
        return head if is_head else head + self.body


def stream_head(fields: str, *, is_new: bool, closes: bool) -> bytes:
    """Returns the head of a stream: in chunks with HTTP/1.1 (`is_new`), else up to the connection's end."""
    return _head(200, f"{fields}Transfer-Encoding: chunked\r\n" if is_new else fields, is_new, closes)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, fields: str, is_new: bool, closes: bool) -> bytes:
    # Without a Connection header HTTP's default is meant.
    if is_new:
        version, connection = "1.1", "Connection: close\r\n" if closes else ""
    else:
        version, connection = "1.0", "" if closes else "Connection: keep-alive\r\n"
    line = f"HTTP/{version} {status} {_PHRASES.get(status, '')}"
    return f"{line}\r\n{fields}Date: {_date(int(time.time()))}\r\n{connection}\r\n".encode()


@lru_cache(1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
