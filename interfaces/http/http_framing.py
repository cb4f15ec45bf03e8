"""Splits the bytes of a connection into requests: where each begins and ends, and what is none.

Owns HTTP's framing by llhttp, how long a head may be, and that no two readers can differ about where a body ends. Pure:
bytes in, requests out. What is done with them: http_connection.
"""

from __future__ import annotations

from functools import lru_cache

import httptools

from ...providers.llm.serve_dialect import Problem, RequestRefusal
from .http_request import BODY_BYTES_MAX, HttpRequest, RequestHead, too_large

# The most bytes of one header or of the request's target, and of a head that is not whole yet.
LINE_MAX = 8_190
HEAD_MAX = 64 << 10
# A chunk has fewer bytes around it than this for each byte in it.
_FRAME_MAX = 32
_VERSIONS = ("1.1", "1.0")
_TOO_LONG = "the request's head is too long: cut the path or the headers"
_LINE_TOO_LONG = "a line of the request's head is too long: cut the path or the header"
_CODING = "expected Transfer-Encoding: chunked or none, and none in HTTP/1.0"
_VERSION = "expected HTTP/1.1 or HTTP/1.0"


@lru_cache(512)
def _name(name: bytes) -> str:
    """Returns a header's name in lower case. Cached, since there are few and clients write them in few ways."""
    return name.decode("latin-1").lower()


class RequestFramer:
    """The parser of one connection. `remote` and `local`: the addresses at its two ends. `is_over`: nothing more is
    read, since no other request may follow, or it is unknown where it would begin."""

    def __init__(self, remote: str, local: str) -> None:
        self.is_over = False
        self._remote = remote
        self._local = local
        self._parser = httptools.HttpRequestParser(self)
        self._requests: list[HttpRequest] = []
        self._request: HttpRequest | None = None  # the one whose body is being received
        self._is_in_message = False
        self._is_read_anew = False
        self._target = b""
        self._headers: dict[str, list[str]] = {}
        self._fed = 0  # bytes of the piece that is being read
        self._beside = 0  # bytes of a message that was received in pieces, beside its body
        self._fault: str | None = None

    @property
    def coming(self) -> HttpRequest | None:
        """The request whose body is being received; None: there is none."""
        return self._request

    @property
    def is_between(self) -> bool:
        """Whether every request that has begun was received whole."""
        return not self._is_in_message

    def feed(self, data: bytes) -> list[HttpRequest]:
        """Parses `data` and returns the requests whose heads are whole now; their bodies may still be on their way. One
        with a fault is the last."""
        if self.is_over:
            return []
        self._fed = len(data)
        taken = 0 if self._request is None else self._request.body.size
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_behind(data, upgrade.args[0])
        except httptools.HttpParserError as error:
            if not self.is_over:  # else it stands behind a request that is the last
                self._fault = self._fault or self._message_of(error)
        if self._is_in_message:
            request = self._request
            size = 0 if request is None else request.body.size
            if size <= taken:
                self._beside += len(data)
                if self._beside > HEAD_MAX + _FRAME_MAX * size:
                    self._fault = self._fault or _TOO_LONG
        if self._fault is not None:
            self._refuse(self._fault)
        requests = self._requests
        if requests:
            self._requests = []
        return requests

    def _refuse(self, problem: str) -> None:
        """Rejects the request that is being read, and everything that might follow it."""
        self._fault = None
        self.is_over = True
        if self._request is not None:
            self._request.body.end(
                RequestRefusal(f"the body can't be read ({problem}): send it whole, unpacked or in gzip")
            )
        else:
            self._requests.append(HttpRequest(self._seen("GET"), is_last=True, fault=Problem(400, "invalid", problem)))

    def _message_of(self, error: Exception) -> str:
        text = " ".join(str(error).split())[:200]
        return text if self._request is not None else f"this is no HTTP request that can be read ({text})"

    def _seen(self, method: str) -> RequestHead:
        target = self._target.decode("utf-8", "surrogateescape")
        return RequestHead(method, target, self._headers, self._remote, self._local)

    def _go_on_behind(self, data: bytes, offset: int) -> None:
        """Continues after a client's offer to upgrade the protocol, which is ignored. llhttp takes the body of such a
        request for another protocol, so a new parser is given its framing again."""
        request = self._request
        rest = data[offset:]
        if self.is_over:
            return
        self._parser = httptools.HttpRequestParser(self)
        framing = b""
        if request is not None:
            is_chunked = "transfer-encoding" in request.seen.headers
            framing = b"POST / HTTP/1.1\r\n%b\r\n\r\n" % (
                b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % request.length
            )
        self._is_read_anew = bool(framing)
        try:
            self._parser.feed_data(framing + rest)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_behind(framing + rest, upgrade.args[0])
        except httptools.HttpParserError as error:
            if not self.is_over:
                self._fault = self._fault or self._message_of(error)

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if self._is_read_anew or self.is_over:
            return
        self._is_in_message = True
        self._beside = -self._fed
        self._target, self._headers = b"", {}

    def on_url(self, url: bytes) -> None:
        if not self._is_read_anew:
            self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._request is not None or self.is_over:
            return  # a trailer behind a body in chunks, or a head that is read again
        if len(name) + len(value) > LINE_MAX:
            self._fault = self._fault or _LINE_TOO_LONG
        key = _name(name)
        values = self._headers.get(key)
        if values is None:
            self._headers[key] = [value.decode("utf-8", "surrogateescape")]
        else:
            values.append(value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        if self._is_read_anew or self.is_over or self._fault is not None:
            self._is_read_anew = False
            return
        parser, headers = self._parser, self._headers
        version = parser.get_http_version()
        if len(self._target) > LINE_MAX:
            self._fault = _LINE_TOO_LONG
        elif version not in _VERSIONS:
            self._fault = _VERSION
        elif "transfer-encoding" in headers and (
            version == "1.0" or [one.strip().lower() for one in headers["transfer-encoding"]] != ["chunked"]
        ):
            self._fault = _CODING
        else:
            declared = headers.get("content-length")
            request = self._request = HttpRequest(
                self._seen(parser.get_method().decode("latin-1")),
                is_new=version == "1.1",
                is_last=not parser.should_keep_alive(),
                length=0 if declared is None else int(declared[0]),
            )
            self._requests.append(request)

    def on_body(self, data: bytes) -> None:
        request = self._request
        if request is None or self.is_over:
            return
        body = request.body
        body.take(data)
        if body.size > BODY_BYTES_MAX:
            body.end(too_large())
            self.is_over = True

    def on_message_complete(self) -> None:
        request = self._request
        if request is None or self.is_over:
            return
        seen = request.seen
        has_body = request.length > 0 or "transfer-encoding" in seen.headers
        if has_body and self._parser.should_upgrade() and seen.method != "CONNECT":
            return  # only its head is whole
        self._request, self._is_in_message = None, False
        self.is_over = request.is_last or seen.method == "CONNECT"
        request.is_last = self.is_over
        request.body.end()
