"""An answer that is written at once: its head and its body in one piece, as they stand.

aiohttp makes a table of headers for every response, and a writer that looks up how to send it; here both are known.
Owns the bytes of a head. Which headers there are: answers.
"""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import HttpVersion10, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Whole(web.StreamResponse):
    """`fields`: the headers beside Content-Length, Date and Connection."""

    def __init__(self, status: int, fields: dict[str, str], body: bytes) -> None:
        super().__init__(status=status)
        self.fields = fields
        self.body = body
        self._is_written = False

    @property
    def prepared(self) -> bool:
        return self._is_written

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        if self._is_written:
            return None
        self._is_written = True
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        writer = request._payload_writer
        body = b"" if request.method == "HEAD" else self.body
        await writer.write_eof(self._head(request) + body)
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """It is written."""

    def _head(self, request: web.BaseRequest) -> bytes:
        status, is_new = self.status, request.version >= HttpVersion11
        lines = [f"HTTP/{'1.1' if is_new else '1.0'} {status} {_PHRASES.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in self.fields.items()]
        lines += [f"Content-Length: {len(self.body)}", f"Date: {rfc822_formatted_time()}"]
        if not self._keep_alive and is_new:
            lines.append("Connection: close")
        elif self._keep_alive and request.version == HttpVersion10:
            lines.append("Connection: keep-alive")
        return "\r\n".join([*lines, "\r\n"]).encode()
