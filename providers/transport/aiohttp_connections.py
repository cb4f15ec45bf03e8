"""A strict connection of aiohttp's: bytes after the end of an answer are dropped, and the connection is closed.

Otherwise a body that is longer than declared would spoil its own answer, or become the answer to the next call. Knows
HTTP's framing and no protocol above it.
"""

from __future__ import annotations

import re

from aiohttp.client_proto import ResponseHandler

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)


class OneAnswer(ResponseHandler):
    """One connection. aiohttp's parser drops a whole answer if stray bytes arrive in the same segment as its head, and
    keeps bytes after an answer for the next call; here neither kind of bytes reaches the parser."""

    _is_before_head = True

    def set_response_params(self, **params: object) -> None:
        self._is_before_head = True
        super().set_response_params(**params)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        if self._is_before_head and data:
            # An informational answer ("go on", early hints) is not the answer yet.
            self._is_before_head = _is_interim(data)
            end = _end_of_answer(data)
            if end is not None and len(data) > end:
                self.force_close()
                data = data[:end]
        elif data and self._payload is not None and self._payload.is_eof():
            # No call may be using it any more: a pool checks a connection only when it is given back.
            self.force_close()
            if self.transport is not None:
                self.transport.close()
            return
        super().data_received(data)


def _is_interim(data: bytes) -> bool:
    """Returns whether the bytes are exactly the head of an informational answer."""
    return data[:7] == b"HTTP/1." and data[9:10] == b"1" and data.find(b"\r\n\r\n") == len(data) - 4


def _end_of_answer(data: bytes) -> int | None:
    """Returns the length in bytes of the answer that begins here; None if its head is incomplete or has no length."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return None
    lengths = _LENGTH.findall(data, 0, head + 2)
    if len(lengths) != 1 or _CHUNKED.search(data, 0, head + 2):
        return None
    return head + 4 + int(lengths[0])
