"""One request as it came on a connection, its body as far as it came, and what answers it.

Owns the bound on bodies. Knows no socket, no path and no JSON: framing makes requests, handling reads them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from ....providers.llm.serve_dialect import Problem, RequestRefusal
from .body_memory import LONG_BYTES, BodyMemory, MemoryShare
from .http_response import HttpResponse

BODY_BYTES_MAX = 16 << 20
# The rest of so short a body is on its way, and not worth a connection.
_SOON_BYTES = 64 << 10
_PIECE_BYTES = 256 << 10


def too_large() -> RequestRefusal:
    return RequestRefusal(f"the body is larger than {BODY_BYTES_MAX >> 20} MiB: cut it", None, "too_large", 413)


class RequestHead(Struct, frozen=True):
    """One request as it came: of each header, by its name in lower case, all that it was given, in order. `remote` and
    `local`: the addresses at the two ends of its connection."""

    method: str
    target: str
    headers: Mapping[str, list[str]]
    remote: str
    local: str


class Body:
    """What came of a request's body, packed as it came."""

    __slots__ = ("_fault", "_pieces", "_waiter", "is_whole", "size")

    def __init__(self) -> None:
        self.size = 0
        self.is_whole = False
        # Small ones grow together, since each would cost many times its length; none grows so that it would take long
        # to move.
        self._pieces: list[bytes | bytearray] = []
        self._fault: RequestRefusal | None = None
        self._waiter: asyncio.Future[None] | None = None

    def take(self, data: bytes) -> None:
        self.size += len(data)
        last = self._pieces[-1] if self._pieces else b""
        if isinstance(last, bytearray) and len(last) < _PIECE_BYTES:
            last += data
        else:
            self._pieces.append(data if not last or len(data) >= _PIECE_BYTES else bytearray(data))

    def end(self, fault: RequestRefusal | None = None) -> None:
        """All of it has come; `fault`: why it never will."""
        self.is_whole = fault is None
        self._fault = fault
        if fault is not None:
            self._pieces.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def forget(self) -> None:
        """Nobody needs the bytes any more."""
        self._pieces.clear()

    @property
    def is_broken(self) -> bool:
        return self._fault is not None

    @property
    def data(self) -> bytes:
        """The bytes in one piece: made anew where they came in several."""
        return b"".join(self._pieces)

    async def whole(self) -> None:
        """Wait until all of it is there, one at a time. Raises RequestRefusal where it can't be had."""
        if not self.is_whole and self._fault is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._fault is not None:
            raise self._fault


class HttpRequest:
    """`seen`: what the guard looks at. `is_new`: HTTP/1.1; `is_last`: none follows it on its connection; `length`: its
    body's as declared; `fault`: why it can't be read at all; `share`: a long body's part of the room."""

    __slots__ = ("_admitted", "body", "fault", "is_last", "is_new", "length", "seen", "share")

    def __init__(
        self,
        seen: RequestHead,
        *,
        is_new: bool = True,
        is_last: bool = False,
        length: int = 0,
        fault: Problem | None = None,
    ) -> None:
        self.seen = seen
        self.is_new = is_new
        self.is_last = is_last
        self.length = length
        self.fault = fault
        self.body = Body()
        self.share: MemoryShare | None = None
        self._admitted: asyncio.Future[None] | None = None

    @property
    def is_long(self) -> bool:
        """Its body is long, or may become so when it is unpacked."""
        return max(self.length, self.body.size) > LONG_BYTES or "content-encoding" in self.seen.headers

    @property
    def is_waiting(self) -> bool:
        """There is no room for its body yet."""
        return self.share is not None and not self.share.is_granted

    def enter(self, room: BodyMemory, granted: Callable[[], None]) -> None:
        """Take a part of the room, or wait for one."""

        def admitted() -> None:
            if self._admitted is not None and not self._admitted.done():
                self._admitted.set_result(None)
            granted()

        size = self.length
        if "content-encoding" in self.seen.headers or not size:
            size = BODY_BYTES_MAX  # nobody knows before it is there
        self.share = room.enter(min(size, BODY_BYTES_MAX), admitted)

    async def admitted(self) -> None:
        """There is room for the body. Waited for by one."""
        if self.is_waiting:
            self._admitted = asyncio.get_running_loop().create_future()
            await self._admitted

    def leave(self) -> None:
        if self.share is not None:
            share, self.share = self.share, None
            share.release()

    @property
    def is_soon_whole(self) -> bool:
        """Where the next request begins is known, or will be in a moment: a client that waits for a word before it
        sends its body may not send it any more."""
        body = self.body
        if body.is_whole or body.is_broken:
            return body.is_whole
        return 0 < self.length <= _SOON_BYTES and "expect" not in self.seen.headers

    def header(self, name: str) -> str | None:
        """As HTTP reads one that came twice: so none of its values is taken for the only one."""
        given = self.seen.headers.get(name)
        return None if given is None else ", ".join(given)


class ClientStream(Protocol):
    """The way back to whoever asked, for what is not told at once."""

    @property
    def has_begun(self) -> bool:
        """A head is out, and no other answer can be given any more."""

    def invite(self) -> None:
        """Tell a client that waits for it to send its body."""

    async def begin(self, fields: str, data: bytes) -> None:
        """Head and first piece of a stream. As every piece, it waits until the client takes what there is."""

    async def write(self, data: bytes) -> None: ...

    def end(self) -> None:
        """The stream is whole."""


class PendingAnswer(Protocol):
    """A request on its way to its answer. `whole`: the answer, once it is there. `is_begun`: it goes on by itself, and
    calls `told` when it comes to an end: then `finish` has the answer, or it has to be waited for with `answer` as any
    other. `end` is called once, when the answer has been handed over or nobody waits for it any more."""

    whole: HttpResponse | None
    told: Callable[[], None] | None

    @property
    def is_begun(self) -> bool: ...

    def finish(self) -> HttpResponse | None: ...

    async def answer(self, back: ClientStream) -> HttpResponse | None:
        """None: it went back as a stream."""

    def end(self) -> None: ...
